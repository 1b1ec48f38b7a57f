"""The file's loss as a callable of (outputs, targets)."""

import torch
from torch import nn

from ...errors import DataError
from .module import INNER


class OnnxLoss(nn.Module):
    """loss(outputs, targets) -> scalar tensor.

    outputs: what the module returned (a tensor, a tuple, or {output name: tensor}). targets: a tensor, a tuple in the
    file's order, or {name: tensor}; None when the loss takes none. Where the loss reads a tensor inside the model
    (scores before a Softmax), the module hands it over with its first output: pass the module's outputs themselves.
    """

    def __init__(self, module, compiled, parts, output_names):
        super().__init__()
        object.__setattr__(self, "_model", module)  # not a submodule: its parameters are the model's
        self.targets, self.outputs = list(parts.loss.targets), list(output_names)
        self._compiled, self._train_names, self._reads = compiled, list(parts.outputs), list(parts.loss.reads)

    def _outputs(self, outputs):
        if isinstance(outputs, dict):
            missing = [n for n in self.outputs if n not in outputs]
            if missing:
                raise DataError(
                    f"output '{missing[0]}' is missing", "OT1722", f"the outputs are {', '.join(self.outputs)}"
                )
            return [outputs[n] for n in self.outputs]
        got = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        if len(got) != len(self.outputs):
            raise DataError(
                f"the loss takes the model's {len(self.outputs)} output(s) ({', '.join(self.outputs)}), got {len(got)}",
                "OT1722",
            )
        return got

    def _targets(self, targets):
        if isinstance(targets, dict):
            values = dict(targets)
        elif targets is None:
            values = {}
        else:
            values = dict(zip(self.targets, targets if isinstance(targets, (tuple, list)) else [targets]))
        missing = [n for n in self.targets if n not in values]
        if missing:
            raise DataError(f"target '{missing[0]}' is missing", "OT1722", f"the targets are {', '.join(self.targets)}")
        return {n: torch.as_tensor(values[n]) for n in self.targets}

    def forward(self, outputs, targets=None):
        got = self._outputs(outputs)
        feeds = {n: v for n, v in zip(self._train_names, got) if n in self._reads}
        inside = [n for n in self._reads if n not in feeds]
        if inside:
            inner = next((getattr(v, INNER) for v in got if hasattr(v, INNER)), None)
            if inner is None or any(inner.get(n) is None for n in inside):
                raise DataError(
                    f"the loss reads '{inside[0]}' inside the model, these outputs do not carry it",
                    "OT1723",
                    "pass what module(...) returned itself, not a copy of it",
                )
            feeds.update({n: inner[n] for n in inside})
        feeds.update(self._targets(targets))
        return self._compiled(self._model, feeds)[0]
