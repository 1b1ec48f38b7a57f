"""An optimizer that computes what the file's nodes say: every rule that a file can hold, where torch has no class of
its own for it (Lion, Lamb, Keras' variants, a user's rule, accumulation over steps).
"""

import torch

from ...graph import needed, reads
from .program import Program
from .step_scalars import decimal

SHARED = "onnxtrain"  # state that belongs to no single parameter


class GraphOptimizer(torch.optim.Optimizer):
    """step() is one step of the file; param_groups[k]["lr"] is its k-th learning rate. State is in state_dict() as
    usual."""

    def __init__(self, module, graphs, index, parts, rates):
        """graphs: with the bodies of all optimizers; rates: {value that is a learning rate: number}."""
        section, main = graphs.sections[index], graphs.main.constants
        algorithm, nodes = section.algorithm, section.algorithm.nodes
        own = algorithm.constants
        self._module, self._rates = [module], list(rates)
        self._rate_types = [own[r].dtype if r in own else main[r].dtype if r in main else torch.float32 for r in rates]
        self._gradients = dict(parts.gradients)
        self._updates = self._own_updates(section, parts, nodes, rates)
        state = [k for k in self._updates if k in own]
        given = [*self._gradients, *rates, *state, *(n for n in main if module.has(n))]
        fixed = {k: c[k] for c in (main, own) for k in c if k not in given}
        self._program = Program(nodes, list(dict.fromkeys(given)), list(self._updates.values()), fixed)
        groups = self._by_rate(nodes, module, rates)
        super().__init__(groups, {"lr": next(iter(rates.values()), 0.0)})
        self._places = {}
        for name in state:
            owner, key = self._owner(name)
            self._places[name] = (owner, key)
            table = self.state[SHARED if owner is None else module.tensor(owner)]
            table[key] = own[name].clone()

    @staticmethod
    def _own_updates(section, parts, nodes, rates):
        """Assignments that the optimizer makes: not the forward pass's, not those of the learning rates (a scheduler
        has them)."""
        own = section.algorithm.constants
        behind = {v for n in needed(nodes, rates) for v in reads(n)} | set(rates)
        return {k: v for k, v in parts.after_update.items()
                if not (k in behind and k in own and own[k].numel() == 1 and own[k].dtype.is_floating_point)}

    def _by_rate(self, nodes, module, rates):
        parameters = list(dict.fromkeys(self._gradients.values()))
        if not rates:
            return [{"params": [module.tensor(p) for p in parameters]}]
        groups, placed = [], set()
        for r, value in rates.items():
            own = []
            for p in parameters:
                if p in placed or p not in self._updates:
                    continue
                if r in {v for n in needed(nodes, [self._updates[p]], self._gradients) for v in reads(n)}:
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
