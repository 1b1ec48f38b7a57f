"""Runs Keras' own Python code on symbolic tensors and writes what it does as nodes.

Every operation of keras.ops, every layer and every function of the backend that meets a traced tensor or a variable of
the model comes here: a layer of the table (lower/layers.py) or an operation of the table (lower/) becomes nodes, any
other layer is opened by running its `call`. Nothing depends on the backend; no data is computed.
"""

import contextlib

import numpy as np

from ...converters.onnx_file import remove_dead
from ..shared import versions
from .values import Dim, Traced, inverse, is_open, prime


class Tracer:
    def __init__(self, emitter, state, obstacles, semantics, training=False):
        self.e, self.state, self.obstacles = emitter, state, obstacles
        self.semantics, self.training = semantics, training
        self.layers = []  # the layers that are running, outermost first
        self.logits = {}  # value -> (operator, Traced before it): the loss looks behind a last Softmax
        self.vectors = {}  # value -> (a vector, the axis along which it lies): biases of convolutions
        self.rows = {}  # variable -> [(values, indices)] of gathers from it
        self.other_uses = set()  # variables that are read in another way
        self.stops = semantics == "tensorflow" or versions.backend_name() == "torch"
        self.near_maxima = False  # the gradient of MaxPooling3D goes to all values near the largest
        self.opened = []  # operations whose own code is running
        self.sent_back = []  # functions of the backend whose namesake in keras.ops is running
        self.scope = None
        self.dims = {}
        self.losses = []

    # ---- running Keras code
    @contextlib.contextmanager
    def running(self):
        """Within: operations on traced tensors and on the model's variables come here."""
        with versions.tracing(self) as scope:
            self.scope = scope
            yield self
            self.losses += scope.losses

    def is_symbolic(self, x):
        return isinstance(x, (Traced, Dim)) or versions.is_variable(x) and id(x) in self.state.by_id

    def operation(self, op, args, kwargs):
        """Operation.symbolic_call."""
        from .lower.table import OPERATIONS

        kind = type(op).__name__
        handler = next((OPERATIONS[c.__name__] for c in type(op).__mro__ if c.__name__ in OPERATIONS), None)
        self.e.hint = self.place() or kind.lower()
        if handler is not None:
            return handler(self, op, *args, **kwargs)
        if kind not in self.opened:  # many are written in other functions of the backend
            self.opened.append(kind)
            try:
                return op.call(*args, **kwargs)
            finally:
                self.opened.pop()
        return self.refuse(f"keras.ops operation {kind} has no form here", self._spec(op, args, kwargs))

    def _spec(self, op, args, kwargs):
        """Stand-ins with the right shapes, so that the rest is looked at too."""
        try:
            spec = op.compute_output_spec(*args, **kwargs)
        except Exception:  # noqa: BLE001 - whatever Keras raises
            self.obstacles.raise_()
            raise
        return versions.map_structure(
            lambda t: Traced(self.e.claim("refused"), t.shape, t.dtype) if hasattr(t, "shape") else t, spec)

    def refuse(self, what, stand_in=None, fix=""):
        self.obstacles.add(what, self.where(), fix)
        if stand_in is None:
            self.obstacles.raise_()
        return stand_in

    def where(self):
        from .refusals import user_line

        layer = self.layers[-1] if self.layers else None
        at = f"layer '{layer.name}' ({type(layer).__name__})" if layer is not None else ""
        line = user_line()
        return f"{line}, {at}" if line and at else line or at

    def layer(self, layer, args, kwargs):
        """Layer.symbolic_call: nodes of the table, or what its `call` does."""
        from .lower.layers import handler_of

        self.layers.append(layer)
        try:
            handler = handler_of(layer)
            if handler is not None:
                self.e.hint = self.place()
                made = handler(self, layer, *args, **kwargs)
                if made is not NotImplemented:
                    return made
            return layer.call(*args, **kwargs)
        finally:
            self.layers.pop()

    def place(self):
        """Name of the innermost layer, for values."""
        return "/".join(versions.layer_path(layer) for layer in self.layers[-1:])

    def trains(self, name):
        """Whether a trained weight is behind this value."""
        reads = {self.e.current(name)}
        remove_dead(self.e.main + self.e.algorithm, reads)
        return any(e.trainable and e.name in reads for e in self.state.weights)

    # ---- values
    def value(self, x, dtype=None):
        """Anything that Keras code may hand to an operation, as a Traced in dtype."""
        if isinstance(x, Traced):
            made = self.dense(x)
        elif versions.is_variable(x):
            made = self.variable(x)
        elif isinstance(x, Dim):
            made = Traced(x.onnx, (), "int64")
        else:
            made = self.constant(x, dtype)
        return made if dtype is None else self.cast(made, dtype)

    def constant(self, x, dtype=None):
        if isinstance(x, (tuple, list)) and any(self.is_symbolic(v) for v in versions.flatten(x)):
            return self.stacked(x, dtype)
        array = versions.to_numpy(x)
        if dtype is not None:
            array = array.astype(versions.numpy_dtype(dtype))
        elif array.dtype == np.float64 and not hasattr(x, "dtype"):
            array = array.astype(versions.floatx())
        elif array.dtype == np.int64 and not hasattr(x, "dtype"):
            array = array.astype(np.int32)
        return Traced(self.e.const(array), array.shape, array.dtype.name)

    def stacked(self, values, dtype=None):
        """A list with traced elements as one tensor."""
        parts = [self.stacked(v, dtype) if isinstance(v, (tuple, list)) else self.value(v, dtype) for v in values]
        parts = [self.logical(self.cast(p, dtype or "int32")) for p in parts]
        rows = [self.e.op("Unsqueeze", p.onnx, self.e.ints([0])) for p in parts]
        return Traced(self.e.op("Concat", *rows, axis=0), (len(parts), *parts[0].shape), parts[0].dtype)

    def variable(self, v, row_use=False):
        """A variable's present value: as it is stored, or as the running code has assigned it."""
        now = self.scope.state_mapping.get(id(v)) if self.scope is not None else None
        if id(v) not in self.state.by_id:
            return now if isinstance(now, Traced) else self.constant(versions.variable_array(v))
        if not row_use and not isinstance(now, Traced):
            self.other_uses.add(id(v))
        if isinstance(now, Traced):
            if now.onnx == self.state.by_id[id(v)].name and not row_use:
                self.other_uses.add(id(v))
            return now
        return self.state.by_id[id(v)].traced()

    def assigned(self, v, value):
        """Code of a layer assigns: reading the variable later stops gradients in TensorFlow and PyTorch; JAX computes
        through it."""
        value = self.dense(self.value(value))
        if self.stops and value.dtype.startswith("float"):
            value = value.like(self.e.op("Detach", value.onnx, domain="ai.onnxtrain"))
        self.assign(v, value)

    def assign(self, v, value):
        self.scope.state_mapping[id(v)] = value

    def zeros(self, shape, dtype):
        name = self.e.op("ConstantOfShape", self.shape_vector(shape), value=np.zeros([1], versions.numpy_dtype(dtype)))
        return Traced(name, shape, dtype)

    def zeros_like(self, x):
        kind = np.zeros([1], versions.numpy_dtype(x.dtype))
        return x.like(self.e.op("ConstantOfShape", self.e.op("Shape", x.onnx), value=kind))

    def dense(self, x):
        """Rows of a gradient (IndexedSlices) added up at their places."""
        if x.slices is None:
            return x
        values, indices = x.slices
        zero = self.zeros(x.shape, x.dtype)
        return x.like(self.e.op("ScatterND", zero.onnx, indices, values, reduction="add"))

    # ---- element types
    def cast(self, x, dtype):
        dtype = versions.standardize_dtype(dtype)
        if x.dtype == dtype:
            return x
        return x.like(self.e.cast(x.onnx, dtype), dtype=dtype)

    # ---- order of axes
    def logical(self, x):
        """The value with its axes in Keras' order."""
        return x if x.layout is None else self.physical(x, tuple(range(x.rank)))

    def physical(self, x, layout):
        """The value with its axes in this order; a Transpose only where one is needed, and none behind another."""
        layout = tuple(layout)
        have = x.layout or tuple(range(x.rank))
        if have == layout:
            return x
        name, perm = x.onnx, [have.index(a) for a in layout]
        before = self.e.maker.get(self.e.current(name))
        if before is not None and before.op == "Transpose":
            name, perm = before.inputs[0], [before.attrs["perm"][p] for p in perm]
        if perm != sorted(perm):
            ones = [x.shape[have[p]] == 1 for p in range(x.rank)]
            array = self.e.value_of(name)
            if array is not None:
                name = self.e.const(np.ascontiguousarray(array.transpose(perm)))
            elif before is None or before.op != "Transpose":
                moved = [p for p in perm if not ones[p]]
                if moved == sorted(moved) and sum(is_open(x.shape[have[p]]) for p in perm) <= 1:
                    name = self.e.op("Reshape", name, self.shape_vector([x.shape[a] for a in layout], infer=True))
                else:
                    name = self.e.op("Transpose", name, perm=perm)
            else:
                name = self.e.op("Transpose", name, perm=perm)
        return x.like(name, layout=layout)

    def aligned(self, values, rank=None):
        """Values of an elementwise operation (all Traced) in one order of axes; (values, layout)."""
        rank = rank or max(v.rank for v in values)
        layout = next((v.layout for v in values if v.rank == rank and v.layout is not None), None)
        if layout is None:
            return [self.logical(v) for v in values], None
        out = []
        for v in values:
            if v.rank == 0:
                out.append(v)
                continue
            if v.rank < rank:
                v = self.logical(v)
                shape = (1,) * (rank - v.rank) + tuple(v.shape)
                array = self.e.value_of(v.onnx)
                if array is not None:
                    v = v.like(self.e.const(array.reshape(shape)), shape)
                else:
                    v = v.like(self.e.op("Unsqueeze", v.onnx, self.e.ints(range(rank - v.rank))), shape)
            out.append(self.physical(v, layout))
        return out, layout

    # ---- sizes
    def shape_of(self, x):
        """keras.ops.shape: numbers, and a Dim for every open size."""
        x = self.value(x)
        return tuple(self.dim(x, k) if d is None else d for k, d in enumerate(x.shape))

    def dim(self, x, axis):
        place = x.layout.index(axis) if x.layout else axis
        name = self.e.op("Gather", self.e.op("Shape", x.onnx), self.e.const(place, np.int64), axis=0)
        if name not in self.dims:
            self.dims[name] = prime(0 if axis == 0 else 1 + len(self.dims))
        return Dim(self.dims[name], self, name)

    def shape_vector(self, shape, infer=False):
        """Sizes as an int64 tensor; infer: one open size that is not a Dim may stand as -1."""
        shape = [int(d) if not isinstance(d, Dim) and d is not None else d for d in shape]
        if infer and sum(d is None or isinstance(d, Dim) or d == -1 for d in shape) <= 1:
            return self.e.ints([-1 if d is None or isinstance(d, Dim) else d for d in shape])
        if not any(isinstance(d, Dim) for d in shape):
            if None in shape:
                self.refuse("a shape with an open size that nothing tells")
            return self.e.ints(shape)
        parts = [self.e.op("Unsqueeze", d.onnx, self.e.ints([0])) if isinstance(d, Dim) else self.e.ints([d])
                 for d in shape]
        return self.e.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


def transposed_layout(layout, rank, axes):
    """The layout of a value after keras.ops.transpose(axes) when the file's tensor stays as it is."""
    have = layout or tuple(range(rank))
    where = inverse(list(axes))
    return tuple(where[a] for a in have)
