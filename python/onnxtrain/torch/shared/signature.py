"""Names of a module's arguments."""

import inspect


def argument_names(module, count):
    """The first `count` argument names of forward."""
    names = []
    try:
        for p in inspect.signature(module.forward).parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
            elif p.kind == p.VAR_POSITIONAL:
                names += [f"{p.name}_{k}" for k in range(count - len(names))]
    except (TypeError, ValueError):
        pass
    if len(names) < count:
        names += [f"input_{k}" for k in range(len(names), count)]
    return names[:count]
