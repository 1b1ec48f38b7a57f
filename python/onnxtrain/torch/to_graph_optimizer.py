"""An optimizer that computes what the file's nodes say: every rule that a file can hold, where torch has no class of
its own for it (Lion, Lamb, Keras' variants, a user's rule, accumulation over steps).
"""

import torch

from .to_clock import decimal
from .to_file import reads
from .to_program import Program, needed

SHARED = "onnxtrain"  # state that belongs to no single parameter


class GraphOptimizer(torch.optim.Optimizer):
    """step() is one step of the file; param_groups[k]["lr"] is its k-th rate. State is in state_dict() as usual."""

    def __init__(self, module, source, section, split, rates, values):
        algorithm = section.algorithm
        nodes = source.inlined(algorithm.nodes)
        dtypes = {**source.main.constants, **algorithm.constants}
        self._module, self._rates = [module], list(rates)
        self._rate_types = [dtypes[r].dtype if r in dtypes else torch.float32 for r in rates]
        self._gradients = dict(split.gradients)
        self._updates = self._own_updates(section, split, nodes, rates)
        state = [k for k in self._updates if k in algorithm.constants]
        given = [*self._gradients, *rates, *state, *(n for n in source.main.constants if module.has(n))]
        fixed = {k: v for k, v in dtypes.items() if k not in given}
        self._program = Program(nodes, list(dict.fromkeys(given)), list(self._updates.values()), fixed)
        self._used = {v for n in needed(nodes, self._updates.values(), given) for v in reads(n)} | set(self._updates.values())
        groups = self._by_rate(nodes, module, rates, values)
        super().__init__(groups, {"lr": values[0] if values else 0.0})
        self._places = {}
        for name in state:
            owner, key = self._owner(name)
            self._places[name] = (owner, key)
            table = self.state[SHARED if owner is None else module.tensor(owner)]
            table[key] = algorithm.constants[name].clone()

    @staticmethod
    def _own_updates(section, split, nodes, rates):
        """Assignments that the optimizer makes: not the forward pass's, not the rates' own (a scheduler has those)."""
        own = section.algorithm.constants
        behind = {v for n in needed(nodes, rates) for v in reads(n)} | set(rates)
        return {k: v for k, v in split.after_update.items()
                if not (k in behind and k in own and own[k].numel() == 1 and own[k].dtype.is_floating_point)}

    def _by_rate(self, nodes, module, rates, values):
        parameters = list(dict.fromkeys(self._gradients.values()))
        if not rates:
            return [{"params": [module.tensor(p) for p in parameters]}]
        groups, placed = [], set()
        for r, value in zip(rates, values):
            own = []
            for p in parameters:
                made_of = {v for n in needed(nodes, [self._updates[p]], self._gradients) for v in reads(n)} if p in self._updates else set()
                if p not in placed and r in made_of:
                    own.append(module.tensor(p))
                    placed.add(p)
            groups.append({"params": own, "lr": decimal(value)})
        groups[0]["params"] += [module.tensor(p) for p in parameters if p not in placed]
        return groups

    def _owner(self, name):
        """fc.weight.exp_avg -> (fc.weight, exp_avg)."""
        found = [p for p in self._gradients.values() if name.startswith(p + ".")]
        if not found:
            return None, name
        owner = max(found, key=len)
        return owner, name[len(owner) + 1:]

    def place(self, name):
        """(table, key) of a state variable of the file."""
        owner, key = self._places[name]
        return self.state[SHARED if owner is None else self._module[0].tensor(owner)], key

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        module, device = self._module[0], self._module[0].device
        values = {}
        for g, p in self._gradients.items():
            t = module.tensor(p)
            values[g] = torch.zeros_like(t) if t.grad is None else t.grad
        for r, dtype, group in zip(self._rates, self._rate_types, self.param_groups):
            values[r] = torch.tensor(float(group["lr"]), dtype=dtype, device=device)
        for name in self._places:
            table, key = self.place(name)
            values[name] = table[key] if table[key].device == device else table[key].to(device)
        for name in self._program.inputs:
            if name not in values:
                values[name] = module.tensor(name)
        for key, new in zip(self._updates, self._program(values, device)):
            if key in self._places:
                table, k = self.place(key)
                table[k] = new.clone() if new.data_ptr() == values[key].data_ptr() else new
            else:
                module.tensor(key).copy_(new)
        return loss
