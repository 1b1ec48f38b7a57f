"""What every lowering uses: the table of operators, and the context with its arguments made ready."""

import math

import torch

from ....converters.table import entered_in
from ...shared.dtypes import TO_ONNX
from ..emit import Value, static

TABLE = {}  # "aten.add" -> function(context, arguments)


class Unsupported(Exception):
    """This use of an operator has no form in ONNX; the text says why."""


lower = entered_in(TABLE)


def key_of(target):
    """The table's key of an FX target: an operator without its overload, or a Python function."""
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return schema.name.replace("::", ".")
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', target)}"


class Args:
    """Arguments by the names of the operator's schema; what an overload does not have is None."""

    def __init__(self, target, args, kwargs):
        self.positional = list(args)
        schema = getattr(target, "_schema", None)
        if schema is None:
            self.__dict__.update(kwargs)
            return
        for k, s in enumerate(schema.arguments):
            name = "dim_" if s.name == "from" else s.name
            if k < len(args):
                value = args[k]
            elif s.name in kwargs:
                value = kwargs[s.name]
            else:
                value = s.default_value if s.has_default_value() else None
            setattr(self, name, value)
        self.overload = target._overloadname

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)


class Context:
    """The emitter, and what is known about the node that is being lowered."""

    def __init__(self, emitter, node, training):
        self.e, self.node, self.training = emitter, node, training
        val = node.meta.get("val")
        self.val = val[0] if isinstance(val, (tuple, list)) and val else val
        self.vals = val

    @property
    def dtype(self):
        return self.val.dtype

    @property
    def operator(self):
        """Its name; a form that writes in place has the name of the other."""
        return self.node.target._schema.name.rstrip("_")

    @property
    def shape(self):
        return list(self.val.shape)

    def op(self, name, *inputs, **attrs):
        return self.e.op(name, *inputs, **attrs)

    def node_n(self, name, inputs, outputs, dtype=None, **attrs):
        names = self.e.node(name, inputs, outputs=outputs, **attrs)
        return [Value(n, dtype or inputs[0].dtype) for n in names]

    # ---- arguments
    def tensor(self, x, dtype=None):
        """A Value of a Value or number, cast to `dtype` when that is given."""
        if isinstance(x, Value):
            return self.e.cast(x, dtype) if dtype is not None else x
        if isinstance(x, torch.Tensor):
            return self.e.const(x, dtype)
        if isinstance(x, (bool, int, float)):
            return self.e.const(_fitting(x, dtype), dtype or _dtype_of_number(x))
        if isinstance(x, complex):
            raise Unsupported("complex numbers")
        raise Unsupported(f"an argument of kind {type(x).__name__}")

    def common(self, *xs):
        """The operands in PyTorch's common type."""
        dtype = promote(*xs)
        return [self.tensor(x, dtype) for x in xs]

    def num(self, number, like):
        """A scalar of the type of `like`."""
        return self.tensor(number, like.dtype)

    def ints(self, sizes):
        """A one-dimensional int64 tensor of numbers and scalar Values."""
        if all(isinstance(s, int) for s in sizes):
            return self.e.ints(sizes)
        parts = []
        for s in sizes:
            parts.append(self.e.ints([s]) if isinstance(s, int) else self.unsqueeze(self.tensor(s, torch.int64), [0]))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    # ---- frequent nodes
    def unsqueeze(self, x, axes):
        return self.op("Unsqueeze", x, self.e.ints(axes))

    def squeeze(self, x, axes):
        return self.op("Squeeze", x, self.e.ints(axes))

    def dim(self, x, axis):
        """Size of an axis of x: a number when it is known."""
        n = static(x.shape[axis]) if x.shape is not None else None
        if n is not None:
            return n
        axis = axis % len(x.shape) if x.shape is not None else axis
        s = self.op("Shape", x, start=axis, end=axis + 1 if axis != -1 else None)
        return self.squeeze(s, [0])

    def dims(self, x):
        return [self.dim(x, k) for k in range(len(x.shape))]

    def reshape(self, x, sizes):
        """To `sizes`, numbers and scalar Values; one that is not known becomes -1."""
        open_ = [k for k, s in enumerate(sizes) if not isinstance(s, int)]
        zero = any(isinstance(s, int) and s == 0 for s in sizes)
        if len(open_) == 1 and -1 not in [s for s in sizes if isinstance(s, int)] and not zero:
            sizes = [-1 if k == open_[0] else s for k, s in enumerate(sizes)]
        y = self.op("Reshape", x, self.ints(sizes), allowzero=1 if zero else None)
        y.shape = [s if isinstance(s, int) and s >= 0 else None for s in sizes]
        return y

    def transpose(self, x, perm):
        if list(perm) == list(range(len(perm))):
            return x
        y = self.op("Transpose", x, perm=list(perm))
        y.shape = [x.shape[p] for p in perm] if x.shape is not None else None
        return y

    def slice(self, x, axis, start, end, step=1):
        return self.op("Slice", x, self.ints([start]), self.ints([end]), self.e.ints([axis]), self.ints([step]))

    def reduce(self, kind, x, axes=None, keepdims=False):
        if axes is not None and len(axes) == 0:
            axes = None
        return self.op("Reduce" + kind, x, None if axes is None else self.e.ints(axes), keepdims=int(bool(keepdims)))

    def detach(self, x):
        """Stops the gradient; nothing to stop in the inference form."""
        if not self.training or (x.dtype is not None and not x.dtype.is_floating_point):
            return x
        y = self.op("Detach", x, domain="ai.onnxtrain")
        y.shape = x.shape
        return y

    def where(self, cond, yes, no):
        return self.op("Where", cond, yes, no)

    def typed(self, y, shape=None):
        """Gives a result the type and shape that torch says, casting when it differs."""
        val = self.val
        y = self.e.cast(y, val.dtype)
        return Value(y.name, val.dtype, list(val.shape))


def inexact(x, *numbers):
    """Whether an attribute, which is float32, would change one of these numbers for a tensor in float64."""
    return x.dtype == torch.float64 and any(
        float(torch.tensor(float(n), dtype=torch.float32)) != float(n) for n in numbers
    )


def _dtype_of_number(x):
    return torch.bool if isinstance(x, bool) else torch.int64 if isinstance(x, int) else torch.get_default_dtype()


def _fitting(x, dtype):
    """Infinities and bounds of other types as the nearest number of an integer type."""
    if dtype is not None and not dtype.is_floating_point and dtype != torch.bool and isinstance(x, float):
        if math.isinf(x):
            info = torch.iinfo(dtype)
            return info.max if x > 0 else info.min
        return int(x)
    return x


def promote(*xs):
    """PyTorch's result type of tensors (Value) and numbers."""
    made = []
    for x in xs:
        if isinstance(x, Value):
            rank = 0 if x.shape is not None and len(x.shape) == 0 else 1
            made.append(torch.empty([1] * rank, dtype=x.dtype, device="meta"))
        else:
            made.append(x)
    if len(made) == 1:
        return made[0].dtype if isinstance(made[0], torch.Tensor) else _dtype_of_number(made[0])
    result = torch.result_type(made[0], made[1])
    for m in made[2:]:
        result = torch.result_type(torch.empty([1], dtype=result, device="meta"), m)
    return result


__all__ = [
    "TABLE",
    "TO_ONNX",
    "Args",
    "Context",
    "Unsupported",
    "Value",
    "inexact",
    "key_of",
    "lower",
    "promote",
    "static",
]
