"""The file against TensorFlow: outputs and gradients on examples, before the file is returned."""

import warnings

import numpy as np
import tensorflow as tf

from ...converters.compare import Comparison, Sensitivity
from ...errors import ModelError
from ...session import Session, gradients
from .values import numpy_dtype


def compare(read, file, examples):
    """Raises a ModelError (OT1605) that names the first tensor that differs. A function that draws random numbers is
    not compared: both sides draw their own."""
    if file.random:
        return
    feeds = _feeds(file.inputs, examples, read)
    here = _Here(file, feeds)
    there = _There(read, file, feeds)
    plain = there.results()
    checks = Comparison("TensorFlow", lambda: Sensitivity(plain, there.changed))
    for name in file.outputs:
        want = plain["output", name]
        checks.same(f"output '{name}'", here.outputs[name], want, ("output", name) if want.dtype.kind == "f" else None)
    for name, out in file.assigned.items():
        checks.same(f"new value of '{name}'", here.outputs[out], plain["assigned", name], ("assigned", name))
    if there.no_gradient:
        lines = [s for s in there.no_gradient[1:] if s[:1].isalpha() and "Detected at" not in s]
        reason = [*lines, there.no_gradient[0]][0].strip()[:200]
        warnings.warn(f"TensorFlow itself cannot compute the gradient of this function here ({reason}): the file's "
                      "gradients were not compared", stacklevel=4)
        return
    got = here.gradients(there.cotangents)
    largest = max((float(np.abs(v).max()) for (kind, _), v in plain.items() if kind == "gradient" and v.size),
                  default=0.0)
    for name, g in got.items():
        if not file.variables[name].variable.trainable:  # TensorFlow's kernels do not differentiate all of them
            continue
        try:
            checks.same(f"gradient of '{name}'", g, plain["gradient", name], ("gradient", name), floor=largest * 1e-3)
        except ModelError as e:
            raise _said(e, read) from None


def _said(error, read):
    """The same error; where the function has a gradient of its own, that is why."""
    graph = read.function.graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    if not any(n.attr["_gradient_op_type"].s.startswith(b"CustomGradient") for n in nodes):
        return error
    return ModelError(f"{error.message}; the function has a gradient of its own (tf.custom_gradient), which a file "
                      "does not carry", error.code,
                      "x + tf.stop_gradient(f(x) - x) has the value of f and the gradient of x")


def _feeds(inputs, examples, read):
    """Examples by name, or numbers that fit: floats around zero, integers 0 or 1, three in place of open sizes."""
    given = tf.nest.flatten(examples) if examples is not None else []
    if len(given) == len(inputs) and not any(isinstance(x, tf.TypeSpec) for x in given):
        flat = given
        if isinstance(examples, dict) and set(examples) == {n for n, _ in read.inputs}:
            flat = [examples[n] for n, _ in read.inputs]
        return {n: np.asarray(x).astype(numpy_dtype(s.dtype)) for (n, s), x in zip(inputs, flat)}
    rng, feeds = np.random.default_rng(0), {}
    for name, s in inputs:
        shape = [3 if d is None else d for d in (s.shape if s.shape.rank is not None else [])]
        if s.dtype == tf.string:
            feeds[name] = np.full(shape, "a", object)
        elif s.dtype.is_floating:
            feeds[name] = rng.standard_normal(shape).astype(s.dtype.as_numpy_dtype)
        else:
            feeds[name] = rng.integers(0, 2, shape).astype(s.dtype.as_numpy_dtype)
    return feeds


class _Here:
    """What the file computes."""

    def __init__(self, file, feeds):
        self.file, self.feeds = file, feeds
        self.outputs = Session(file.model).run(feeds)

    def gradients(self, cotangents):
        wanted = _differentiable(self.file)
        if not cotangents or not wanted:
            return {}
        total = {}
        for name, c in cotangents.items():
            got = gradients(self.file.model, self.feeds, of=name, wrt=wanted, cotangent={name: c})
            for key, g in got.items():
                total[key] = g if key not in total else total[key] + g
        return total


def _texts(tensor):
    """TensorFlow's bytes as texts, which a file's strings are."""
    held = np.asarray(tensor.numpy(), object)
    made = np.empty(held.size, object)
    made[:] = [v.decode("utf-8", "surrogateescape") for v in held.ravel()]
    return made.reshape(held.shape)


def _differentiable(file):
    return [n for n, v in file.variables.items() if v.variable.dtype.is_floating and n not in file.assigned]


class _There:
    """What TensorFlow computes, with variables that may be changed in their last bits for a moment."""

    def __init__(self, read, file, feeds):
        self.read, self.file = read, file
        self.args = [tf.constant(v) for v in feeds.values()]
        self.wanted = _differentiable(file)
        self.cotangents = {}
        self.no_gradient = None  # what TensorFlow says where it cannot differentiate

    def _variable(self, name):
        v = self.file.variables[name].variable
        return getattr(v, "variable", v)

    def results(self):
        """{(kind, name): array}. Variables are as they were afterwards."""
        kept = {n: self._variable(n).numpy() for n in self.file.variables}
        try:
            for n, v in self.file.variables.items():
                if v.variable is not self._variable(n):  # the value of a checkpoint
                    self._variable(n).assign(v.variable.numpy())
            return self._compute()
        finally:
            for n, value in kept.items():
                self._variable(n).assign(value)

    def _compute(self):
        watched = {n: self._variable(n) for n in self.wanted}
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            for v in watched.values():
                tape.watch(v)
            try:
                found = self._outputs()
            except LookupError as e:  # an operation without a gradient; nothing has run yet
                self.no_gradient = str(e).strip().split("\n")
                with tape.stop_recording():
                    found, watched = self._outputs(), {}
            total = tf.add_n([tf.cast(tf.reduce_sum(found["output", n] * c), tf.float64)
                              for n, c in self.cotangents.items()]) if self.cotangents else None
        results = {k: _texts(t) if t.dtype == tf.string else t.numpy() for k, t in found.items()}
        results.update({("assigned", n): self._variable(n).numpy() for n in self.file.assigned})
        if total is None or not watched:
            return results
        try:
            got = tape.gradient(total, list(watched.values()), unconnected_gradients="zero")
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as e:  # no kernel on this machine
            self.no_gradient = str(e).strip().split("\n")
            return results
        return results | {("gradient", n): tf.convert_to_tensor(g).numpy() for n, g in zip(watched, got)}

    def _outputs(self):
        """{("output", name): tensor}; the first time also makes what they are multiplied with."""
        flat = self._call()
        found = {("output", n): flat[at] for (_, at), n in zip(self.read.outputs, self.file.outputs)}
        if not self.cotangents:
            rng = np.random.default_rng(1)
            self.cotangents = {n: rng.standard_normal(t.shape).astype(t.dtype.as_numpy_dtype)
                               for (_, n), t in found.items() if t.dtype.is_floating}
        return found

    def _call(self):
        """The function's flat results."""
        got = self.read.function(*self.args) if self._positional() else self._by_name()
        return [t for t in tf.nest.flatten(got, expand_composites=True) if t is not None]

    def _positional(self):
        args, kwargs = self.read.function.structured_input_signature
        return not kwargs and len(tf.nest.flatten(args)) == len(self.args) and all(
            isinstance(a, tf.TensorSpec) for a in args)

    def _by_name(self):
        args, kwargs = self.read.function.structured_input_signature
        flat = iter(self.args)

        def fill(x):
            return tf.nest.map_structure(lambda s: next(flat) if isinstance(s, tf.TensorSpec) else s, x)

        return self.read.function(*fill(args), **fill(kwargs))

    def changed(self, units):
        """The same with every variable changed by up to `units` in the last place."""
        rng = np.random.default_rng(units)
        kept = {n: self._variable(n).numpy() for n in self.wanted}
        try:
            for n, value in kept.items():
                step = np.spacing(np.abs(value)) * rng.integers(-units, units + 1, value.shape)
                self._variable(n).assign((value + step).astype(value.dtype))
            return self._compute()
        finally:
            for n, value in kept.items():
                self._variable(n).assign(value)
