"""What one run of a model may take: arguments -> (bytes, loop iterations, seconds); 0: not given."""

from .errors import UsageError

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _bytes(memory):
    """A number of bytes, or text such as "500M"."""
    try:
        text = str(memory).strip()
        unit = _UNITS.get(text[-1:].upper(), 1)
        n = int(float(text[:-1] if unit > 1 else text) * unit)
    except (ValueError, OverflowError):
        n = 0
    if not 0 < n < 1 << 62:
        raise UsageError(f"memory={memory!r} is not a number of bytes", "OT0003", 'for example memory="500M"')
    return n


def _positive(name, value, kind):
    try:
        n = kind(value)
    except (TypeError, ValueError, OverflowError):
        n = 0
    if isinstance(value, bool) or not 0 < n < 1 << 62:
        raise UsageError(f"{name}={value!r} is not a positive number", "OT0003", f"for example {name}=60")
    return n


def limits(memory=None, max_loop_trips=None, time=None):
    return (0 if memory is None else _bytes(memory),
            0 if max_loop_trips is None else _positive("max_loop_trips", max_loop_trips, int),
            0.0 if time is None else _positive("time", time, float))
