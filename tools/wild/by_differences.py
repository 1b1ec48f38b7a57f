"""The stage `gradients` of try_file.py: slopes along a few directions, in float64 where the operators have it."""

import time

import numpy as np
import onnx
from answers import is_float, lift_constants, refused
from fine_tuning import STRAIGHT
from in_double import in_double, in_double_feeds

import onnxtrain as ot

SLOW = 0.5  # seconds of one run of a model, from which on there is one direction
TOO_SLOW = 1.0  # of one run in float64, from which on the fall of the loss in a step of training has to do
NEAR = 0.02  # relative: a difference this near to the slope is enough
IN_DOUBLE = (1e-8, 1e-6, 1e-10, 1e-12)  # lengths of steps beside the length of all weights; the first usually does
IN_SINGLE = (1e-4, 1e-3, 1e-5, 1e-6, 1e-7)


class LengthChanges(Exception):
    """The shape of an output depends on the weights: there are no differences."""


def answer(trial):
    """[outcome, words]"""
    if trial.large:
        return by_a_step(trial)
    if trial.random:
        return ["not tried", "random operators"]
    of = [n for n, v in trial.got.items() if is_float(v)]
    try:
        model = ot.load(str(trial.path))
        lift_constants(trial.proto.graph)
        stored = {i.name for i in trial.proto.graph.initializer}
        names = [w["name"] for w in model.weights()
                 if w["role"] == "trained" and w["dtype"] in ("float", "double", "float16") and w["name"] in stored]
        if not names and trial.fell is not None:  # they are in attributes or in bodies
            return by_a_step(trial)
        if not names or not of:
            return ["not tried", "no weights that train" if of else "no floating-point output"]
        draw = np.random.default_rng(1)
        cotangent = {n: draw.normal(size=trial.got[n].shape).astype(trial.got[n].dtype) for n in of}
        given = ot.gradients(model, trial.feeds, of=of, wrt=names, cotangent=cotangent, threads=1)
        if not all(np.isfinite(np.asarray(g, np.float64)).all() for g in given.values()):
            return ["not tried", "a gradient is infinite at these inputs"]
        return judge(trial, names, given, cotangent, draw)
    except ot.Error as e:
        return refused(e)


def by_a_step(trial):
    if trial.fell is not None and STRAIGHT[0] < trial.fell < STRAIGHT[1]:
        return ["right", f"by a step of training: the loss fell by {trial.fell:.2g} of what the gradient says"]
    return ["not tried", "too large for differences, or its weights are no initializers"]


def judge(trial, names, given, cotangent, draw):
    """Against differences in float64; where the model has no such form, in its own types."""
    wide = in_double(trial.proto)
    try:
        if wide is not None:
            feeds = in_double_feeds(trial.feeds)
            ones = {n: c.astype(np.float64) for n, c in cotangent.items()}
            model = ot.load(wide.SerializeToString())
            start = time.process_time()
            ot.Session(model, threads=1).run(feeds)
            if time.process_time() - start > TOO_SLOW:
                return by_a_step(trial)
            exact = ot.gradients(model, feeds, of=list(ones), wrt=names, cotangent=ones, threads=1)
            result = compare(wide, feeds, names, exact, ones, draw, IN_DOUBLE)
            if result[0] == "WRONG":
                result = beside_kinks(wide, feeds, names, ones, draw) or result
                return result
            return alike(names, given, exact) if result[0] == "right" else result
    except ot.Error:  # an operator without a kernel for float64
        pass
    except LengthChanges:
        return ["not tried", "the length of an output changes with the weights"]
    result = compare(trial.proto, trial.feeds, names, given, cotangent, draw, IN_SINGLE)
    return ["not tried", f"only in float32: {result[1]}"] if result[0] == "WRONG" else result


def beside_kinks(wide, feeds, names, ones, draw):
    """Zeros of a Relu or Clip have a slope on each side: the same a little beside, where nothing is exactly at one."""
    for i in wide.graph.initializer:
        if i.name in names:
            w = onnx.numpy_helper.to_array(i)
            size = np.sqrt(np.mean(w * w)) if w.any() else 1.0
            i.CopyFrom(onnx.numpy_helper.from_array(w + 1e-3 * size * draw.normal(size=w.shape), i.name))
    exact = ot.gradients(ot.load(wide.SerializeToString()), feeds, of=list(ones), wrt=names, cotangent=ones, threads=1)
    result = compare(wide, feeds, names, exact, ones, draw, IN_DOUBLE)
    return ["right", f"a thousandth beside a kink: {result[1]}"] if result[0] == "right" else None


def alike(names, given, exact):
    """The gradient in the model's own types against the one in float64."""
    a = np.concatenate([np.asarray(given[n], np.float64).ravel() for n in names])
    b = np.concatenate([np.asarray(exact[n], np.float64).ravel() for n in names])
    off = float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))
    if off > 0.05:
        return ["right", f"in float64; float32 is off by {off:.2g} at these inputs"]
    return ["right", f"{off:.1e}"]


def directions(gradient, weights, draw):
    """Along parts of the gradient; then every tensor by the same share of its size, also where its gradient is 0."""
    yield {n: g * draw.uniform(0.2, 1, g.shape) for n, g in gradient.items()}
    even = {}
    for n, g in gradient.items():
        way = g * draw.uniform(0.2, 1, g.shape) if g.any() else draw.normal(size=g.shape)
        even[n] = way * ((np.linalg.norm(weights[n]) + 1e-6) / max(np.linalg.norm(way), 1e-300))
    yield even


def compare(proto, feeds, names, given, cotangent, draw, steps):
    session = ot.Session(open_weights(proto, names), threads=1)
    stored = {i.name: onnx.numpy_helper.to_array(i) for i in proto.graph.initializer if i.name in names}
    weights = {n: w.astype(np.float64) for n, w in stored.items()}

    def value(shift):
        moved = {n: (w + shift.get(n, 0)).astype(stored[n].dtype) for n, w in weights.items()}
        out = session.run({**feeds, **moved})
        if any(out[n].shape != c.shape for n, c in cotangent.items()):
            raise LengthChanges
        return sum(float(np.sum(out[n].astype(np.float64) * c.astype(np.float64))) for n, c in cotangent.items())

    gradient = {n: np.asarray(given[n], np.float64) for n in names}
    if not any(g.any() for g in gradient.values()):
        return zero_everywhere(value, weights, draw)
    size = np.sqrt(sum(float(np.sum(w * w)) for w in weights.values())) + 1e-6
    start = time.process_time()
    here = value({})
    slow = time.process_time() - start > SLOW
    noise = np.finfo(widest(proto)).eps * abs(here) / size
    worst = 0.0
    for number, direction in enumerate(directions(gradient, weights, draw)):
        if slow and number:
            break
        length = np.sqrt(sum(float(np.sum(d * d)) for d in direction.values()))
        slope = sum(float(np.sum(gradient[n] * d)) for n, d in direction.items()) / length
        if abs(slope) < 100 * noise / max(steps):
            return ["not tried", f"a slope of {slope:.2g}: smaller than differences can show"]
        off, words = along(value, direction, length, slope, size, steps)
        if words is not None:
            return [words[0], f"direction {number}: {words[1]}"]
        worst = max(worst, off)
    return ["right", f"{worst:.1e}"]


def along(value, direction, length, slope, size, steps):
    """(how far the nearest difference is, None), or what is wrong with it."""
    measured = {}
    for h in steps:
        shift = {n: d * (h * size / length) for n, d in direction.items()}
        measured[h] = (value(shift) - value({n: -d for n, d in shift.items()})) / (2 * h * size)
        if abs(measured[h] - slope) <= NEAR * abs(slope):
            return abs(measured[h] - slope) / abs(slope), None
    found = np.array([measured[h] for h in sorted(measured, reverse=True)])
    off = float(np.min(np.abs(found - slope))) / abs(slope)
    spread = float(np.min(np.abs(np.diff(found)))) / abs(slope)
    if off > 3 * spread:
        words = f"gradient {slope:.6g}, differences {found[-1]:.6g}, off by {off:.2g}, spread {spread:.2g}"
        return off, ["WRONG", words]
    return off, ["not tried", f"differences do not settle (spread {spread:.2g})"]


def widest(proto):
    doubles = any(i.data_type == onnx.TensorProto.DOUBLE for i in proto.graph.initializer)
    return np.float64 if doubles else np.float32


def zero_everywhere(value, weights, draw):
    here = value({})
    for h in (1e-3, 1e-2):
        there = value({n: h * draw.normal(size=w.shape) for n, w in weights.items()})
        if abs(there - here) > 1e-3 * max(1.0, abs(here)):
            return ["WRONG", f"the gradient is zero, the outputs change by {there - here:.3g}"]
    return ["right", "zero: the outputs do not change"]


def open_weights(source, names):
    proto = onnx.ModelProto()
    proto.CopyFrom(source)
    kept = [i for i in proto.graph.initializer if i.name not in names]
    opened = [i for i in proto.graph.initializer if i.name in names]
    known = {i.name for i in proto.graph.input}
    for i in opened:
        if i.name not in known:
            proto.graph.input.append(onnx.helper.make_tensor_value_info(i.name, i.data_type, i.dims))
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    return ot.load(proto.SerializeToString())
