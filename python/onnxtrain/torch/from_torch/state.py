"""Parameters and buffers under their original names: ties, what is trained, what is stored."""

import itertools

import torch

from .emit import Value


class State:
    def __init__(self, module, loss):
        self.tensors = {}  # stored name -> tensor
        self.parameters, self.buffers, self.non_persistent = [], [], []
        self.ties, self.frozen = {}, []
        self._ids, self._full = {}, {}
        self._add(module, "", "module.")
        self.loss_prefix, self.of_loss = "loss.", []
        if hasattr(loss, "named_parameters"):
            # the module has a part of that name
            while any(n.startswith(self.loss_prefix) for n in [*self.tensors, *self.ties]):
                self.loss_prefix = "_" + self.loss_prefix
            own = set(self.tensors) | set(self.ties)
            self._add(loss, self.loss_prefix, "loss.")
            self.of_loss = [n for n in [*self.tensors, *self.ties] if n not in own]
        self.used, self.captured = set(), set()  # captured: parameters that a function reads as objects of its own
        self.written = set()  # parameters that forward writes to

    def _add(self, module, prefix, full):
        for name, p in module.named_parameters(remove_duplicate=False):
            if self._store(prefix + name, full + name, p, self.parameters) and not p.requires_grad:
                self.frozen.append(prefix + name)
        for owner, sub in module.named_modules(remove_duplicate=False):
            dotted = owner + "." if owner else ""
            for name, b in sub.named_buffers(recurse=False, remove_duplicate=False):
                if (
                    self._store(prefix + dotted + name, full + dotted + name, b, self.buffers)
                    and name in sub._non_persistent_buffers_set
                ):
                    self.non_persistent.append(prefix + dotted + name)

    def _store(self, name, full, tensor, names):
        known = self._ids.get(id(tensor))
        if known is not None:
            self._full[full] = known
            if known != name:
                self.ties[name] = known
            return False
        self._ids[id(tensor)], self._full[full], self.tensors[name] = name, name, tensor
        names.append(name)
        return True

    def name_of(self, target):
        """The stored name of a full name within the traced wrapper."""
        return self._full[target]

    def value(self, target):
        return self.named(self._full[target])

    def by_identity(self, tensor):
        """The stored tensor that this is, or whose memory it is: a loss that reads a parameter of the module gets it as
        another object."""
        name = self._ids.get(id(tensor))
        if name is None and tensor.numel():
            name = next((n for n, t in self.tensors.items() if _memory(t) == _memory(tensor)), None)
        if name is None:
            return None
        if name in self.parameters:
            self.captured.add(name)
        return self.named(name)

    def named(self, name):
        self.used.add(name)
        t = self.tensors[name]
        return Value(name, t.dtype, list(t.shape))

    def stored_name(self, tensor):
        return self._ids.get(id(tensor))

    def overlaps(self, changing):
        """Pairs of names whose tensors share memory without being one, where training changes one of them."""
        by_storage = {}
        for name, t in self.tensors.items():
            if t.numel():
                by_storage.setdefault((t.device, t.untyped_storage().data_ptr()), []).append(name)
        pairs = [p for names in by_storage.values() for p in itertools.combinations(names, 2)]
        return [
            (a, b) for a, b in pairs if (a in changing or b in changing) and _overlap(self.tensors[a], self.tensors[b])
        ]


def _overlap(a, b):
    (a0, a1), (b0, b1) = _bytes(a), _bytes(b)
    if a1 <= b0 or b1 <= a0:
        return False
    if a.is_contiguous() and b.is_contiguous() or a.dtype != b.dtype:
        return True
    places = torch.arange(max(a1, b1) // a.element_size() + 1)
    of = [places.as_strided(t.shape, t.stride(), t.storage_offset()).reshape(-1) for t in (a, b)]
    return bool(torch.isin(*of).any())


def _bytes(t):
    """From where to where a tensor lies in its storage."""
    last = sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    return t.storage_offset() * t.element_size(), (t.storage_offset() + last + 1) * t.element_size()


def _memory(t):
    return t.device, t.dtype, t.data_ptr(), t.shape, t.stride()
