"""Complex numbers as pairs of real ones: a complex tensor is a real one with a last axis of two, its real and
imaginary part.

ONNX trains real tensors only. TABLE has the operators that make pairs and leave them; COMPLEX has what stands for an
operator of TABLE when one of its tensors is complex.
"""

import math

import torch

from .base import Unsupported, Value, lower, static
from .resample import along

REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}
COMPLEX = {}  # "aten.mul" -> function(context, arguments)
MAKERS = {"aten.view_as_complex", "aten.complex", "aten.polar", "prims.fft_r2c"}  # complex of real ones


def is_complex(x):
    return isinstance(x, Value) and x.dtype in REAL


def constant(emitter, tensor):
    """A complex tensor that is written into the file."""
    made = emitter.const(torch.view_as_real(tensor.resolve_conj()))
    return Value(made.name, tensor.dtype, list(tensor.shape))


def _of(*names):
    def add(f):
        for n in names:
            COMPLEX[n if "." in n else f"aten.{n}"] = f
        return f

    return add


def _raw(x):
    """The real tensor behind a complex one."""
    return Value(x.name, REAL[x.dtype], [*x.shape, 2])


def _parts(c, x, like=None):
    """Real and imaginary part; the latter None for a real tensor or number."""
    if isinstance(x, complex):
        return c.tensor(x.real, like), c.tensor(x.imag, like)
    if not is_complex(x):
        return c.tensor(x, like), None
    return tuple(
        Value(c.op("Gather", _raw(x), c.e.const(k), axis=-1).name, REAL[x.dtype], list(x.shape)) for k in (0, 1)
    )


def _pair(c, real, imag):
    """A complex tensor of both, which have one shape."""
    y = c.op("Concat", c.unsqueeze(real, [-1]), c.unsqueeze(imag, [-1]), axis=-1)
    return Value(y.name, c.dtype, c.shape)


# ---- to and from pairs
@lower("aten.view_as_complex")
def view_as_complex(c, a):
    return Value(a.self.name, c.dtype, c.shape)


@_of("view_as_real")
def view_as_real(c, a):
    return _raw(a.self)


@lower("aten.view_as_real", "aten.imag", "aten.angle")
def only_complex(c, a):
    raise Unsupported("of a real tensor")


@lower("aten.complex")
def complex_(c, a):
    return _pair(c, a.real, a.imag)


@lower("aten.polar")
def polar(c, a):
    return _pair(c, c.op("Mul", a.abs, c.op("Cos", a.angle)), c.op("Mul", a.abs, c.op("Sin", a.angle)))


@_of("real", "imag")
def part(c, a):
    return _parts(c, a.self)[c.operator.endswith("imag")]


@_of("abs")
def abs_(c, a):
    real, imag = _parts(c, a.self)
    return c.op("Sqrt", c.op("Add", c.op("Mul", real, real), c.op("Mul", imag, imag)))


@_of("conj", "_conj", "_conj_physical", "conj_physical")
def conj(c, a):
    real, imag = _parts(c, a.self)
    return _pair(c, real, c.op("Neg", imag))


@_of("_to_copy", "to")
def convert(c, a):
    if is_complex(a.self) and c.dtype == a.self.dtype:
        return a.self
    if is_complex(a.self) or c.dtype not in REAL:
        raise Unsupported("a complex tensor as one of another type")
    real = c.tensor(a.self, REAL[c.dtype])
    return _pair(c, real, c.op("Mul", real, c.num(0.0, real)))


# ---- arithmetic
def _product(c, x, y):
    (a, b), (u, v) = x, y
    if b is None and v is None:
        return c.op("Mul", a, u), None
    if v is None or b is None:
        scale, (p, q) = (u, x) if v is None else (a, y)
        return c.op("Mul", p, scale), c.op("Mul", q, scale)
    return c.op("Sub", c.op("Mul", a, u), c.op("Mul", b, v)), c.op("Add", c.op("Mul", a, v), c.op("Mul", b, u))


@_of("mul", "multiply")
def mul(c, a):
    kind = REAL[c.dtype]
    return _pair(c, *_product(c, _parts(c, a.self, kind), _parts(c, a.other, kind)))


@_of("div", "true_divide", "divide")
def div(c, a):
    kind = REAL[c.dtype]
    (x, y), (u, v) = _parts(c, a.self, kind), _parts(c, a.other, kind)
    if v is None:
        return _pair(c, c.op("Div", x, u), c.op("Div", y, u))
    size = c.op("Add", c.op("Mul", u, u), c.op("Mul", v, v))
    real, imag = _product(c, (x, y), (u, c.op("Neg", v)))
    return _pair(c, c.op("Div", real, size), c.op("Div", imag, size))


@_of("add", "sub", "subtract", "rsub")
def add(c, a):
    if a.alpha not in (None, 1):
        raise Unsupported("a sum with alpha of complex numbers")
    kind, op = REAL[c.dtype], "Add" if c.operator.endswith("add") else "Sub"
    (x, y), (u, v) = [
        _parts(c, t, kind) for t in ((a.other, a.self) if c.operator.endswith("rsub") else (a.self, a.other))
    ]
    real = c.op(op, x, u)
    none = c.op("Mul", real, c.num(0.0, real))  # as wide as the result
    return _pair(c, real, c.op(op, none if y is None else y, none if v is None else v))


@_of("neg")
def neg(c, a):
    return Value(c.op("Neg", _raw(a.self)).name, c.dtype, c.shape)


@_of("exp")
def exp(c, a):
    real, imag = _parts(c, a.self)
    size = c.op("Exp", real)
    return _pair(c, c.op("Mul", size, c.op("Cos", imag)), c.op("Mul", size, c.op("Sin", imag)))


@_of("sum", "mean")
def reduce(c, a):
    x = a.self
    axes = [d % len(x.shape) for d in ([a.dim] if isinstance(a.dim, int) else a.dim or range(len(x.shape)))]
    y = c.reduce("Sum" if c.operator.endswith("sum") else "Mean", _raw(x), axes, bool(a.keepdim))
    return Value(y.name, c.dtype, c.shape)


# ---- movement: the same of the real tensor behind it
@_of("clone", "contiguous", "alias", "lift_fresh_copy", "resolve_conj", "resolve_neg")
def same(c, a):
    return a.self


@_of("detach")
def detach(c, a):
    return Value(c.detach(_raw(a.self)).name, c.dtype, c.shape)


def _moved(c, y):
    return Value(y.name, c.dtype, c.shape)


@_of("view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as")
def reshape(c, a):
    known = [static(s) for s in c.shape]
    if known.count(None) > 1:
        raise Unsupported("a shape with several open sizes")
    return _moved(c, c.reshape(_raw(a.self), [-1 if k is None else k for k in known] + [2]))


@_of("expand", "broadcast_to", "expand_as")
def expand(c, a):
    x, lead = a.self, len(c.shape) - len(a.self.shape)
    known = [static(s) for s in c.shape]
    sizes = [
        k if k is not None else c.dim(x, n - lead) if n >= lead and static(x.shape[n - lead]) is None else None
        for n, k in enumerate(known)
    ]
    if None in sizes:
        raise Unsupported("an expansion to an open size")
    return _moved(c, c.op("Expand", _raw(x), c.ints([*sizes, 2])))


@_of("transpose", "permute", "t")
def transpose(c, a):
    rank = len(a.self.shape)
    perm = list(range(rank))
    if a.dims is not None:
        perm = [d % rank for d in a.dims]
    else:
        i, j = (a.dim0 % rank, a.dim1 % rank) if a.dim0 is not None else (0, 1)
        perm[i], perm[j] = perm[j], perm[i]
    return _moved(c, c.transpose(_raw(a.self), [*perm, rank]))


@_of("slice")
def slice_(c, a):
    end = 2**63 - 1 if a.end is None else a.end
    return _moved(c, c.slice(_raw(a.self), (a.dim or 0) % len(a.self.shape), a.start or 0, end, a.step or 1))


@_of("select")
def select(c, a):
    return _moved(c, c.op("Gather", _raw(a.self), c.tensor(a.index, torch.int64), axis=a.dim % len(a.self.shape)))


@_of("index_select")
def index_select(c, a):
    return _moved(c, c.op("Gather", _raw(a.self), a.index, axis=a.dim % len(a.self.shape)))


@_of("cat", "concat")
def cat(c, a):
    return _moved(c, c.op("Concat", *[_raw(t) for t in a.tensors], axis=(a.dim or 0) % len(c.shape)))


# ---- Fourier transforms: each axis times the matrix of waves
def _waves(now, wanted, sign, dtype):
    turn = torch.outer(torch.arange(now), torch.arange(wanted)).remainder(now) * (2 * math.pi / now)
    return torch.cos(turn.double()).to(dtype), (sign * torch.sin(turn.double())).to(dtype)


def _sizes(a, axes):
    sizes = [static(a.self.shape[d]) for d in axes]
    if None in sizes:
        raise Unsupported("a Fourier transform over an open size")
    return sizes


def _turned(c, x, axis, wanted, sign):
    """One axis of (real, imaginary or None); `wanted` of its frequencies."""
    (real, imag), now = x, static(x[0].shape[axis])
    cos, sin = _waves(now, wanted, sign, real.dtype)
    a, b = along(c, real, axis, cos), along(c, real, axis, sin)
    if imag is None:
        return a, b
    u, v = along(c, imag, axis, sin), along(c, imag, axis, cos)
    return Value(c.op("Sub", a, u).name, real.dtype, a.shape), Value(c.op("Add", b, v).name, real.dtype, a.shape)


@lower("prims.fft_r2c")
@_of("prims.fft_c2c")
def fft(c, a):
    rank = len(a.self.shape)
    axes = [d % rank for d in a.dim]
    sizes = _sizes(a, axes)
    x, sign = _parts(c, a.self), 1 if a.forward is False else -1
    for k, (axis, n) in enumerate(zip(reversed(axes), reversed(sizes))):
        x = _turned(c, x, axis, n // 2 + 1 if a.onesided and k == 0 else n, sign)
    return _pair(c, *x)


@_of("prims.fft_c2r")
def fft_back(c, a):
    """Half of the frequencies; the other half is their mirror, so that they count twice."""
    rank, n = len(a.self.shape), int(a.last_dim_size)
    axes = [d % rank for d in a.dim]
    sizes = _sizes(a, axes)
    x = _parts(c, a.self)
    for axis, size in zip(axes[:-1], sizes[:-1]):
        x = _turned(c, x, axis, size, 1)
    have = sizes[-1]
    turn = torch.outer(torch.arange(have), torch.arange(n)).remainder(n) * (2 * math.pi / n)
    times = torch.full([have, 1], 2.0, dtype=torch.float64)
    times[0] = 1
    if n % 2 == 0 and have == n // 2 + 1:
        times[-1] = 1
    real, imag = (
        along(c, v, axes[-1], (f(turn.double()) * times).to(v.dtype)) for v, f in zip(x, (torch.cos, torch.sin))
    )
    return c.op("Sub", real, imag)
