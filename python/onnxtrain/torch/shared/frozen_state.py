"""The optimizer's state of parameters that the step does not move: frozen after some training, or out of the loss's
reach.

The file keeps it beside the rest, so that they go on from there when they are thawed in PyTorch. A tensor of one and
the same number (Adagrad's sum before the first step) is that number in the metadata (key "resting"), others are
initializers that no node reads."""

import torch


def write(plan, add):
    """{parameter: {state key: number or name of the initializer}} of what stays as it is. add(name, tensor): adds an
    initializer and gives its name."""
    moved = {name for _, name, *_ in plan.entries}
    found = {}
    for p, state in plan.optimizer.state.items():
        name = plan.names.get(id(p))
        if name is None or name in moved:
            continue
        kept = {key: _kept(f"{name}.{key}", v, add) for key, v in state.items() if v is not None}
        if kept:
            found[name] = kept
    return found


def _kept(name, value, add):
    if not isinstance(value, torch.Tensor):
        return value if isinstance(value, (bool, int, float)) else None
    value = value.detach()
    first = value.reshape(-1)[:1]
    if value.numel() and bool(((value == first) & first.isfinite()).all()):
        return first.item()
    return add(name, value)


def read(module, optimizer, info, stored):
    """Puts it into the optimizer of to_torch."""
    for name, state in ((info or {}).get("optimizer") or {}).get("resting", {}).items():
        if not module.has(name):
            continue
        p = module.tensor(name)
        for key, value in state.items():
            if isinstance(value, str):
                if value in stored:
                    optimizer.state[p][key] = stored[value]
            elif value is not None:
                optimizer.state[p][key] = _tensor(key, value, p)


def _tensor(key, value, p):
    """`step` and NAdam's product are scalars in PyTorch."""
    if key in ("step", "mu_product"):
        return torch.tensor(float(value))
    return torch.full_like(p, value, requires_grad=False)
