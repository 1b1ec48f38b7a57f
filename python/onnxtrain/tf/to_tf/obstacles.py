"""Nodes that TensorFlow cannot run, named all at once."""

from ...errors import ModelError


class Obstacles:
    def __init__(self):
        self.items = {}

    def add(self, node, reason):
        self.items.setdefault((node.label, reason))

    def raise_(self):
        if not self.items:
            return
        lines = [f"  {label}: {reason}" for label, reason in self.items]
        count = f"{len(lines)} nodes have" if len(lines) > 1 else "one node has"
        raise ModelError(f"the model cannot be converted to TensorFlow, {count} no form there:\n" + "\n".join(lines),
                         "OT1711", "keep it in onnxtrain, or write these nodes with other operators")
