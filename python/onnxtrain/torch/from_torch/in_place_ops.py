"""Which graphs can be walked as torch.export gives them, and what their in-place operators mean.

torch's own functional form costs more time than the export. It is only needed where views and in-place operators meet;
everywhere else a changed tensor is simply read under its new value from then on.
"""

import torch

from ..shared import versions
from .lower import TABLE, key_of

_VIEWS = {"view", "reshape", "_unsafe_view", "transpose", "permute", "t", "slice", "select", "narrow", "unsqueeze",
          "squeeze", "expand", "expand_as", "flatten", "unflatten", "view_as", "reshape_as", "split",
          "split_with_sizes", "chunk", "unbind", "tensor_split", "diagonal", "unfold", "movedim", "swapaxes", "alias",
          "detach", "contiguous", "to", "numpy_T", "mT", "broadcast_to", "real", "positive", "lift_fresh", "type_as",
          "float", "double", "atleast_1d", "atleast_2d", "ravel", "dropout", "feature_dropout"}


def plain_name(target):
    """"aten.add_" -> "aten.add"; None for an operator that changes nothing."""
    if not versions.is_mutating(target):
        return None
    key = key_of(target)
    return key.removesuffix("_") if key.endswith("_") and not key.endswith("__") else key


def is_view(node):
    return node.op == "call_function" and key_of(node.target).removeprefix("aten.").removesuffix("_") in _VIEWS


def _base(node):
    """Whether a node is memory of its own: no view of something else."""
    return not is_view(node) and not (node.op == "call_function" and key_of(node.target) == "_operator.getitem")


def changed_arguments(node):
    """The FX nodes that an operator writes to: (argument position, node)."""
    if key_of(node.target) == "aten.batch_norm":
        training = node.args[5] if len(node.args) > 5 else node.kwargs.get("training")
        return (
            [(k, node.args[k]) for k in (3, 4) if k < len(node.args) and node.args[k] is not None] if training else []
        )
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    return [(k, a) for k, (s, a) in enumerate(zip(schema.arguments, node.args))
            if s.alias_info is not None and s.alias_info.is_write and isinstance(a, torch.fx.Node)]


class Aliases:
    """An in-place operator gives its argument back: x.mul_(a).add_(b) writes to x twice. All names of one memory are a
    family."""

    def __init__(self):
        self.families = {}

    def family(self, node):
        return self.families.get(node, [node])

    def joined(self, result, changed):
        """`result` is `changed` itself."""
        family = self.family(changed)
        family.append(result)
        for member in family:
            self.families[member] = family


def walkable(gm):
    """True when no in-place operator meets a view and every operator is in the table."""
    order = {n: k for k, n in enumerate(gm.graph.nodes)}
    aliases = Aliases()
    for n in gm.graph.nodes:
        if n.op != "call_function":
            continue
        if versions.is_grad_mode_region(n.target):
            if not _region_walkable(gm, n):
                return False
            continue
        if isinstance(n.target, torch._ops.HigherOrderOperator):
            return False
        key = plain_name(n.target) or key_of(n.target)
        if key not in TABLE and key != "_operator.getitem":
            return False
        for position, changed in changed_arguments(n):
            if position != 0 and key != "aten.batch_norm":
                return False
            family = aliases.family(changed)
            if any(not _base(m) or m.op == "get_attr" for m in family) or any(
                is_view(u) and u is not n and any(order[w] > order[n] for w in u.users) for m in family for u in m.users
            ):
                return False
            if plain_name(n.target) is not None:
                aliases.joined(n, changed)
    return True


def _region_walkable(gm, n):
    """A region without gradients (or with) that only computes."""
    sub = getattr(gm, n.args[1].target, None) if isinstance(n.args[1], torch.fx.Node) else None
    if sub is None or any(k.op == "call_function" and changed_arguments(k) for k in sub.graph.nodes):
        return False
    return walkable(sub)
