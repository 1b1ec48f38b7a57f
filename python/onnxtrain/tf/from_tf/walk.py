"""A walk over a TensorFlow graph: every operation that the results need becomes nodes, calls are written out."""

import numpy as np
import tensorflow as tf

from ...converters.obstacles import UserCode
from ..shared import versions
from .lower.table import View, find
from .values import Behind, Sym, Unsupported, Writer, small

_EFFECTS = {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "StatefulPartitionedCall"}
_NEVER_FOLDED = {"Placeholder", "ReadVariableOp", "StatefulPartitionedCall", "PartitionedCall", "While",
                 "StatelessWhile", "If", "StatelessIf", "NoOp", "Assert"}
USER = UserCode(tf)


class Variable:
    """A variable of TensorFlow as the file has it: an initializer, and what the function assigns."""

    def __init__(self, name, variable):
        self.name, self.variable = name, variable
        self.read, self.new = False, None


class Walk:
    def __init__(self, library, problems):
        """library: {name: FunctionDef}."""
        self.library, self.problems, self.w = library, problems, Writer()
        self.opsets, self.random, self.depth = {}, False, 0
        self._graphs = {}

    # ---- variables
    def value_of(self, handle):
        v = handle.resource
        if not isinstance(v, Variable):
            raise Unsupported("it reads a resource that is no variable")
        v.read = True
        if v.new is not None:
            return v.new
        return Sym(v.name, dtype=v.variable.dtype, shape=v.variable.shape)

    def assign(self, handle, value):
        if not isinstance(handle.resource, Variable):
            raise Unsupported("it writes a resource that is no variable")
        if self.depth:
            raise Unsupported("a variable is written inside a branch or a loop")
        handle.resource.new = value

    # ---- functions
    def function(self, op, attribute, shapes):
        """The graph of the function that an attribute names."""
        return self.function_named(op.get_attr(attribute).name, shapes)

    def function_named(self, name, shapes):
        if name not in self.library:
            raise Unsupported(f"the function '{name}' is not in the file")
        return versions.function_graph(self.library[name], shapes)

    def inside(self, graph, args, wanted=None):
        """The same in a body of control flow."""
        self.depth += 1
        try:
            return self.inline(graph, args, wanted)
        finally:
            self.depth -= 1

    def inline(self, graph, args, wanted=None):
        """Values of the graph's results for these arguments, or of other tensors of the graph."""
        env = {id(t): s for t, s in zip(graph.inputs, args)}
        wanted = list(graph.outputs) if wanted is None else wanted
        for op in _needed(graph, wanted):
            if all(id(t) in env for t in op.outputs) and op.outputs:
                continue
            self._operation(op, env)
        got = [env.get(id(t)) for t in wanted]
        if any(s is None for s in got):
            raise Behind
        return got

    def _operation(self, op, env):
        inputs = [env.get(id(t)) for t in op.inputs]
        if any(s is None for s in inputs):
            return  # behind an obstacle
        try:
            made = self._constants(op, inputs) or self._lower(op, inputs, env)
        except Behind:
            return
        except Unsupported as e:
            self.problems.add(f"operation {op.type} '{op.name}': {e}", place(op))
            return
        for t, s in zip(op.outputs, made):
            if s.shape.rank is None and t.shape.rank is not None:
                s.shape = t.shape
            env[id(t)] = s

    def _lower(self, op, inputs, env):
        entry = find(op.type)
        if entry is None:
            raise Unsupported("ONNX has no form of it here")
        self.w.e.hint = _hint(op)
        view = View(op, inputs, self, _shapes(op, inputs), env)
        made = entry(view)
        made = view.out(made) if isinstance(made, str) else made
        return made if isinstance(made, list) else [made]

    def _constants(self, op, inputs):
        """Syms of results that are known while converting: constants, sizes and what follows from them."""
        if op.type == "Const":
            value = tf.get_static_value(op.outputs[0])
            if value is None:
                raise Unsupported("its value cannot be read")
            return [Sym(dtype=op.outputs[0].dtype, shape=op.outputs[0].shape, static=np.asarray(value))]
        if op.type in _NEVER_FOLDED or not op.outputs or op.type in _EFFECTS:
            return None
        if any(t.dtype not in (tf.int32, tf.int64, tf.bool) for t in op.outputs):
            return None
        values = [tf.get_static_value(t) for t in op.outputs]
        if any(v is None for v in values) and inputs and all(s.static is not None for s in inputs):
            values = _computed(op, inputs)
        if any(not small(v) for v in values):
            return None
        return [Sym(dtype=t.dtype, shape=np.shape(v), static=np.asarray(v)) for t, v in zip(op.outputs, values)]


def _shapes(op, inputs):
    """Shapes of the results. A stored function does not know those of its variables; the arguments do."""
    shapes = [t.shape for t in op.outputs]
    if all(s.is_fully_defined() for s in shapes) or not hasattr(tf.raw_ops, op.type):
        return shapes
    if all(str(s.shape) == str(t.shape) or t.dtype in (tf.resource, tf.variant) for s, t in zip(inputs, op.inputs)):
        return shapes
    known = [s.static if s.static is not None and s.dtype != tf.string else s.shape for s in inputs]
    try:
        better = versions.infer_shapes(op, known)
    except Exception:  # noqa: BLE001 - operations that cannot be made again keep what they say
        return shapes
    return [b if b.rank is not None else s for s, b in zip(shapes, better)]


def _computed(op, inputs):
    """An operation on constants, by TensorFlow itself."""
    try:
        got = versions.run_operation(op, [s.static for s in inputs])
    except Exception:  # noqa: BLE001 - it is written as a node then
        return [None] * len(op.outputs)
    return [np.asarray(v) for v in got]


def _needed(graph, wanted):
    """Operations on which results and assignments depend, in an order that respects control inputs too."""
    order, state = [], {}
    roots = [op for op in graph.get_operations() if op.type in _EFFECTS]
    position = {id(op): k for k, op in enumerate(graph.get_operations())}
    pending = sorted({id(o): o for o in [*roots, *(t.op for t in wanted)]}.values(), key=lambda o: position[id(o)])
    stack = [(op, False) for op in reversed(pending)]
    while stack:
        op, done = stack.pop()
        if done:
            order.append(op)
            continue
        if state.get(id(op)):
            continue
        state[id(op)] = True
        stack.append((op, True))
        before = [t.op for t in op.inputs] + [c for c in op.control_inputs if c.type in _EFFECTS or _reads(c)]
        stack += [(o, False) for o in before if not state.get(id(o))]
    return order


def _reads(op):
    return op.type in ("ReadVariableOp", "ResourceGather")


def _hint(op):
    return op.name.rsplit("/", 1)[-1] or op.type


def place(op):
    """Where the user's code made an operation, where TensorFlow still knows it."""
    try:
        frames = list(op.traceback)
    except Exception:  # noqa: BLE001 - operations of a file have no traceback
        return ""
    for f in reversed(frames):
        path = getattr(f, "filename", "")
        if path and USER.has(path) and "site-packages" not in path:
            return f"{path}:{f.lineno} in {f.name}: {(f.line or '').strip()}"
    return ""
