"""The nn.Module over an ONNX graph: parameters and buffers under their original dotted names.

In train() it runs the training form of the file (or, for a file without training, its own with live Dropout and
BatchNormalization), in eval() the main graph.
"""

import torch
from torch import nn

from ...errors import DataError
from ...graph import reads
from .program import Program

INNER = "_onnxtrain_inner"  # attribute of an output: what the loss reads of the inside


class Place:
    """Where a name lives: the dict of its submodule, so that .to() and load_state_dict are seen."""

    __slots__ = ("key", "table")

    def __init__(self, table, key):
        self.table, self.key = table, key

    def get(self):
        return self.table[self.key]


def _child(module, path):
    for part in path:
        if part not in module._modules:
            module._modules[part] = nn.Module()
        module = module._modules[part]
    return module


class OnnxModule(nn.Module):
    """Call it with the graph's inputs in order or by name; one output is a tensor, several are a tuple."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.input_names, self.output_names = list(inputs), list(outputs)
        self.section = 0  # whose training form train() runs
        self._places, self._ties, self._eval, self._train = {}, [], None, []
        self._constants = nn.Module()

    # ---- building
    def add_tensor(self, name, tensor, parameter, trained=False, persistent=True):
        *path, key = name.split(".")
        owner = _child(self, path)
        if parameter:
            tensor = nn.Parameter(
                tensor, requires_grad=trained and (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
            )
            owner._parameters[key] = tensor
            self._places[name] = Place(owner._parameters, key)
        else:
            owner._buffers[key] = tensor
            if not persistent:
                owner._non_persistent_buffers_set.add(key)
            self._places[name] = Place(owner._buffers, key)

    def tie(self, name, stored):
        """A second name for the same tensor."""
        *path, key = name.split(".")
        owner, place = _child(self, path), self._places[stored]
        table = owner._parameters if isinstance(place.get(), nn.Parameter) else owner._buffers
        table[key] = place.get()
        self._ties.append((Place(table, key), place))

    def _apply(self, fn, recurse=True):
        """.to(), .double() and their like; a device that takes new tensors must not part what is tied."""
        super()._apply(fn, recurse)
        for place, stored in self._ties:
            place.table[place.key] = stored.get()
        return self

    def tensor(self, name):
        """The parameter or buffer that the file stores under `name`."""
        return self._places[name].get()

    def has(self, name):
        return name in self._places

    def program(self, nodes, inputs, outputs, constants, problems):
        """A program over this module's tensors: (program, places of what it reads here)."""
        state = [n for n in self._places if n not in inputs]
        p = Program(nodes, [*inputs, *state], outputs, constants, problems)
        used = {v for n in nodes for v in reads(n)} | set(outputs)
        places = [(p.slot(n), self._places[n]) for n in state if n in used]
        return p, places

    def adopt(self, program, places):
        """Constants of the program become non-persistent buffers, so that .to() moves them."""
        places = list(places)
        table = self._constants._buffers
        for name, tensor in program.tensors.items():
            key = name.replace(".", "/") + f"@{len(table)}"
            same = [k for k, t in table.items() if t is tensor]
            if not same:
                table[key] = tensor
                self._constants._non_persistent_buffers_set.add(key)
            places.append((program.constant_slots[name], Place(table, same[0] if same else key)))
        return Compiled(program, places)

    # ---- running
    @property
    def device(self):
        for place in self._places.values():
            return place.get().device
        for t in self._constants._buffers.values():
            return t.device
        return torch.device("cpu")

    def feeds(self, args, kwargs):
        """Inputs in order or by name -> {name: tensor}."""
        if len(args) > len(self.input_names):
            raise DataError(
                f"the model takes {len(self.input_names)} input(s) ({', '.join(self.input_names)}), got {len(args)}",
                "OT1721",
            )
        given = dict(zip(self.input_names, args))
        for name, value in kwargs.items():
            if name not in self.input_names or name in given:
                raise DataError(
                    f"the model has no free input '{name}'; its inputs are {', '.join(self.input_names)}", "OT1721"
                )
            given[name] = value
        missing = [n for n in self.input_names if n not in given]
        if missing:
            raise DataError(
                f"input '{missing[0]}' is missing", "OT1721", f"the inputs are {', '.join(self.input_names)}"
            )
        return given

    def forward(self, *args, **kwargs):
        given = self.feeds(args, kwargs)
        form = self._train[self.section] if self.training and self._train else self._eval
        return form(self, given)


class Compiled:
    """A program together with the module's tensors that it reads."""

    def __init__(self, program, places):
        self.program, self.places = program, places

    def __call__(self, module, feeds):
        p = self.program
        v = p.start(module.device)
        for slot, place in self.places:
            if slot is not None:
                v[slot] = place.table[place.key]
        for name, value in feeds.items():
            slot = p.slot(name)
            if slot is not None:
                v[slot] = value
        return p.finish(v)


class Form:
    """One way to run the module: outputs, tensors for the loss, buffers that are assigned."""

    def __init__(self, compiled, outputs, inner, update):
        self.compiled, self.count, self.inner, self.update = compiled, outputs, inner, update

    def __call__(self, module, feeds):
        got = self.compiled(module, feeds)
        outputs = got[: self.count]
        inner = got[self.count: self.count + len(self.inner)]
        assign(module, self.update, got[self.count + len(self.inner):])
        if self.inner:
            outputs = self._attach(outputs, dict(zip(self.inner, inner)))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def _attach(outputs, inner):
        """The tensors inside travel with the outputs to the loss."""
        first = outputs[0]
        if isinstance(first, nn.Parameter) or any(first is t for t in inner.values()) or hasattr(first, INNER):
            first = first.view_as(first)
        setattr(first, INNER, inner)
        return [first, *outputs[1:]]


def assign(module, names, values):
    if not names:
        return
    with torch.no_grad():
        values = [v.detach() for v in values]
        for name, value in zip(names, values):
            target = module.tensor(name)
            target.copy_(value.reshape(target.shape) if value.shape != target.shape else value)
