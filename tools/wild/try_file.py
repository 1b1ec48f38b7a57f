"""One ONNX file against ONNX Runtime, in this process: inference, gradients, a short training, the trained export.

Usage: python tools/wild/try_file.py FILE        prints a line of JSON after each stage: {stage: [outcome, words]}

Outcomes: same, right, trained, as trained (good); refused (with the words that were printed); not tried (why);
WRONG (numbers differ), CRASHED (an exception that is no answer). tools/wild/report.py runs it for every file with
limits.
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import onnxtrain as ot

sys.path.insert(0, str(Path(__file__).parent))
import feeds as made_up  # noqa: E402
from in_double import in_double  # noqa: E402

RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
STEPS = 2
SLOW = 0.5  # seconds of one run of a model, from which on there are fewer differences


def reference(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def operators(graph):
    for node in graph.node:
        yield node.op_type
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from operators(a.g)


def lift_constants(graph):
    """Constant nodes as initializers: some writers keep all weights there."""
    kept = []
    for node in graph.node:
        value = node.attribute[0] if node.op_type == "Constant" and node.attribute else None
        if value is not None and value.name == "value":
            value.t.name = node.output[0]
            graph.initializer.append(value.t)
        else:
            kept.append(onnx.NodeProto.FromString(node.SerializeToString()))
    del graph.node[:]
    graph.node.extend(kept)


def tolerance(arrays):
    return 2e-2 if any(a.dtype == np.float16 for a in arrays) else 2e-3


def gap(got, want):
    """Largest difference beside the largest number; None where they are the same. What is not finite must be so in
    both."""
    if isinstance(want, dict) or isinstance(got, dict):
        if not isinstance(got, dict) or not isinstance(want, dict) or list(got) != list(want):
            return np.inf
        return gap(np.array(list(got.values())), np.array(list(want.values())))
    if isinstance(want, list) or isinstance(got, list):
        if not isinstance(got, list) or not isinstance(want, list) or len(got) != len(want):
            return np.inf
        return max((g for g in map(gap, got, want) if g is not None), default=None)
    if want is None or got is None:
        return None if want is got else np.inf
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return np.inf
    if want.dtype.kind not in "fc":
        same = np.mean(got == want) if want.size else 1.0
        return None if same == 1 else 1 - same  # a few classes or bits may flip on a tie
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(np.isfinite(got), finite):
        return np.inf
    if not finite.any():
        return None
    return float(np.max(np.abs(got[finite] - want[finite])) / max(1e-3, np.max(np.abs(want[finite]))))


def refused(e):
    return ["refused", f"{e.code} {str(e).splitlines()[0][:300]}"]


class LengthChanges(Exception):
    """The shape of an output depends on the weights: there are no differences."""


class Trial:
    def __init__(self, path):
        self.path = Path(path)
        self.proto = onnx.load(path)
        self.stages = {}
        self.random = bool(RANDOM & set(operators(self.proto.graph)))

    def run(self):
        """A line after each stage, so that a limit of time keeps what was done before."""
        self.inference()
        print(json.dumps(self.stages), flush=True)
        if self.stages["inference"][0] in ("same", "not tried") and self.feeds is not None:
            self.training()
            print(json.dumps(self.stages), flush=True)
            self.gradients()
        return self.stages

    def find_feeds(self):
        """Inputs that ONNX Runtime runs, and what it makes of them."""
        session, words = reference(self.path), "an input is no tensor"
        for feeds in made_up.guesses(self.proto):
            try:
                values = session.run(None, feeds)
                return feeds, dict(zip([o.name for o in session.get_outputs()], values, strict=True)), ""
            except Exception as e:  # another guess
                words = str(e)[:160]
        return None, None, words

    def inference(self):
        self.feeds = None
        try:
            self.feeds, want, words = self.find_feeds()
        except Exception as e:
            words = f"ONNX Runtime refuses the file: {str(e)[:160]}"
        try:
            session = ot.Session(str(self.path))
            if self.feeds is None:
                self.stages["inference"] = ["not tried", words]
                return
            got = session.run(self.feeds)
        except ot.Error as e:
            self.stages["inference"] = ["not tried", words] if self.feeds is None else refused(e)
            return
        self.got = got
        if self.random:
            self.stages["inference"] = ["same", "random: shapes only"]
            return
        gaps = {n: gap(got[n], v) for n, v in want.items()}
        bad = self.farther_from_double(self.beyond_noise(gaps, self.path, want), want)
        worst = max([g or 0 for g in gaps.values()] or [0])
        self.stages["inference"] = ["WRONG", f"{bad}"] if bad else ["same", f"{worst:.1e}"]

    def beyond_noise(self, gaps, path, want):
        """Gaps that are larger than what ONNX Runtime itself makes of the last bit of inputs and weights."""
        limit = tolerance(list(self.feeds.values()))
        bad = {n: g for n, g in gaps.items() if g is not None and g > limit}
        if not bad:
            return bad
        draw = np.random.default_rng(5)

        def other_bit(v):
            return (v * (1 + 2e-7 * draw.choice([-1, 1], v.shape))).astype(v.dtype) if v.dtype == np.float32 else v

        proto = onnx.load(path)
        lift_constants(proto.graph)
        for i in proto.graph.initializer:
            if i.data_type == onnx.TensorProto.FLOAT:
                i.CopyFrom(onnx.numpy_helper.from_array(other_bit(onnx.numpy_helper.to_array(i)), i.name))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "moved.onnx").write_bytes(proto.SerializeToString())
            session = reference(Path(folder) / "moved.onnx")
        other = dict(zip(want, session.run(list(want), {n: other_bit(v) for n, v in self.feeds.items()}), strict=True))
        return {n: g for n, g in bad.items() if g > 10 * (gap(other[n], want[n]) or 0)}

    def farther_from_double(self, bad, want):
        """Of these outputs those that are farther from the same model in float64 than ONNX Runtime's."""
        wide = in_double(self.proto) if bad else None
        if wide is None:
            return bad
        feeds = {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in self.feeds.items()}
        try:
            exact = ot.Session(ot.load(wide.SerializeToString())).run(feeds)
        except ot.Error:  # an operator without a kernel for float64
            return bad
        return {n: g for n, g in bad.items() if (gap(self.got[n], exact[n]) or 0) > (gap(want[n], exact[n]) or 0)}

    # ---- gradients
    def gradients(self):
        if self.random:
            self.stages["gradients"] = ["not tried", "random operators"]
            return
        of = [n for n, v in self.got.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.size]
        try:
            model = ot.load(str(self.path))
            names = [w["name"] for w in model.weights() if w["role"] == "trained" and w["dtype"] in ("float", "double")]
            lift_constants(self.proto.graph)
            stored = {i.name for i in self.proto.graph.initializer}
            names = [n for n in names if n in stored]
            if not names or not of:
                self.stages["gradients"] = ["not tried", "no weights that train" if of else "no floating-point output"]
                return
            draw = np.random.default_rng(1)
            cotangent = {n: draw.normal(size=self.got[n].shape).astype(self.got[n].dtype) for n in of}
            given = ot.gradients(model, self.feeds, of=of, wrt=names, cotangent=cotangent)
            if not all(np.isfinite(np.asarray(g, np.float64)).all() for g in given.values()):
                self.stages["gradients"] = ["not tried", "a gradient is infinite at these inputs"]
                return
            self.stages["gradients"] = self.judge(names, given, cotangent, draw)
        except ot.Error as e:
            self.stages["gradients"] = refused(e)

    def judge(self, names, given, cotangent, draw):
        """Against differences in float64; where the model has no such form, in its own types."""
        wide = in_double(self.proto)
        try:
            if wide is not None:
                feeds = {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in self.feeds.items()}
                ones = {n: c.astype(np.float64) for n, c in cotangent.items()}
                exact = ot.gradients(ot.load(wide.SerializeToString()), feeds, of=list(ones), wrt=names, cotangent=ones)
                result = self.compare(wide, feeds, names, exact, ones, draw, np.logspace(-6, -12, 4))
                return self.alike(names, given, exact) if result[0] == "right" else result
        except ot.Error:  # an operator without a kernel for float64
            pass
        except LengthChanges:
            return ["not tried", "the length of an output changes with the weights"]
        result = self.compare(self.proto, self.feeds, names, given, cotangent, draw, np.logspace(-3, -7, 5))
        return ["not tried", f"only in float32: {result[1]}"] if result[0] == "WRONG" else result

    @staticmethod
    def alike(names, given, exact):
        """The gradient in the model's own types against the one in float64."""
        a = np.concatenate([np.asarray(given[n], np.float64).ravel() for n in names])
        b = np.concatenate([np.asarray(exact[n], np.float64).ravel() for n in names])
        off = float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))
        if off > 0.05:
            return ["right", f"in float64; float32 is off by {off:.2g} at these inputs"]
        return ["right", f"{off:.1e}"]

    def compare(self, proto, feeds, names, given, cotangent, draw, steps):
        """Differences along parts of the gradient, and along random directions where it is zero."""
        session = ot.Session(self.open_weights(proto, names))
        stored = {i.name: onnx.numpy_helper.to_array(i) for i in proto.graph.initializer if i.name in names}
        weights = {n: w.astype(np.float64) for n, w in stored.items()}

        def value(shift):
            moved = {n: (w + shift.get(n, 0)).astype(stored[n].dtype) for n, w in weights.items()}
            out = session.run({**feeds, **moved})
            if any(out[n].shape != c.shape for n, c in cotangent.items()):
                raise LengthChanges
            return sum(float(np.sum(out[n].astype(np.float64) * c.astype(np.float64))) for n, c in cotangent.items())

        gradient = {n: np.asarray(given[n], np.float64) for n in names}
        size = np.sqrt(sum(float(np.sum(w * w)) for w in weights.values())) + 1e-6
        worst, words = 0.0, ""
        start = time.process_time()
        here = value({})
        slow = time.process_time() - start > SLOW
        steps = steps[1::2] if slow else steps
        for trial in range(1 if slow else 2):
            direction = {n: g * draw.uniform(0.2, 1, g.shape) for n, g in gradient.items()}
            length = np.sqrt(sum(float(np.sum(d * d)) for d in direction.values()))
            if length == 0:
                return self.zero_everywhere(value, weights, draw)
            slope = sum(float(np.sum(gradient[n] * d)) for n, d in direction.items()) / length
            measured, digits = [], np.finfo(self.widest(proto)).eps * abs(here) / (size * steps[0])
            if abs(slope) < 100 * digits:
                return ["not tried", f"a slope of {slope:.2g}: smaller than differences can show"]
            for h in size * steps:
                shift = {n: d * (h / length) for n, d in direction.items()}
                ahead, behind = value(shift), value({n: -d for n, d in shift.items()})
                measured.append((ahead - behind) / (2 * h))
            off = np.abs(np.array(measured) - slope) / abs(slope)
            spread = float(np.min(np.abs(np.diff(measured)))) / abs(slope)
            if off.min() > 0.02 and off.min() > 3 * spread:
                return ["WRONG", f"direction {trial}: gradient {slope:.6g}, differences {measured[-1]:.6g}, "
                                 f"off by {off.min():.2g}, spread {spread:.2g}"]
            if off.min() > 0.02:
                words = f"differences do not settle (spread {spread:.2g})"
            worst = max(worst, float(off.min()))
        return ["not tried", words] if words else ["right", f"{worst:.1e}"]

    @staticmethod
    def widest(proto):
        doubles = any(i.data_type == onnx.TensorProto.DOUBLE for i in proto.graph.initializer)
        return np.float64 if doubles else np.float32

    @staticmethod
    def zero_everywhere(value, weights, draw):
        here = value({})
        for h in (1e-3, 1e-2):
            there = value({n: h * draw.normal(size=w.shape) for n, w in weights.items()})
            if abs(there - here) > 1e-3 * max(1.0, abs(here)):
                return ["WRONG", f"the gradient is zero, the outputs change by {there - here:.3g}"]
        return ["right", "zero: the outputs do not change"]

    @staticmethod
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

    # ---- training
    def training(self):
        target = next((n for n, v in self.got.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.size
                       and np.isfinite(v).all()), None)
        if target is None:
            self.train_classes()
            return
        try:
            first, lowest = self.trained(target, self.feeds, self.got[target])
        except ot.Error as e:
            more = self.two_rows(target) if e.code == "OT1286" else None  # one row has no variance
            if more is None:
                self.stages["training"] = refused(e)
                return
            first, lowest = more
        self.finish(first, lowest)

    def finish(self, first, lowest):
        if lowest is None:
            self.stages["training"] = ["not tried", f"no learning rate lowers the loss of {first:.4g}"]
            return
        self.stages["training"] = ["trained", f"{first:.4g} to {lowest[0]:.4g}"]
        self.export(lowest[1])

    def train_classes(self):
        """A classifier that gives labels and maps only: the loss that `auto` chooses, on the first class."""
        if not any(isinstance(v, list) for v in self.got.values()):
            self.stages["training"] = ["not tried", "no finite floating-point output"]
            return
        try:
            trained = ot.prepare(str(self.path), loss="auto", optimizer=ot.SGD(lr=0.0), label="wanted")
            rows = next(iter(self.feeds.values())).shape[0]
            feeds = {**{n: v for n, v in self.feeds.items() if n in trained.inputs}, "wanted": np.zeros(rows, np.int64)}
            first = ot.Trainer(trained).step(feeds).loss
            self.finish(first, self.descend(trained, feeds, first))
        except ot.Error as e:
            self.stages["training"] = refused(e)

    def trained(self, target, inputs, now):
        """The loss before, and (loss, trainer) after a few steps."""
        loss = ot.losses.MSE(output=target)
        trained = ot.prepare(str(self.path), loss=loss, optimizer=ot.SGD(lr=0.0), label="wanted")
        t = ot.Trainer(trained)
        wanted = now + np.random.default_rng(2).normal(size=now.shape).astype(now.dtype)
        feeds = {**{n: v for n, v in inputs.items() if n in trained.inputs}, "wanted": wanted}
        first = t.step(feeds).loss
        return first, self.descend(trained, feeds, first)

    def two_rows(self, target):
        """The same with two rows, where the model takes them."""
        session = ot.Session(str(self.path))
        for feeds in made_up.guesses(self.proto, batch=2):
            try:
                return self.trained(target, feeds, session.run(feeds)[target])
            except ot.Error:
                continue
        return None

    @staticmethod
    def descend(trained, feeds, first):
        """(loss, trainer) after a few steps at the first learning rate that lowers the loss."""
        for rate in (1e-2, 1e-4, 1e-6, 1e-8, 1e-11, 1.0, 1e3, 1e7):
            t = ot.Trainer(trained)
            t.lr = rate
            try:
                losses = [t.step(feeds).loss for _ in range(STEPS + 1)]
            except ot.DivergedError:
                continue
            if losses[-1] < losses[0]:
                return losses[-1], t
        return None

    def export(self, trainer):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trained.onnx"
            try:
                trainer.export(str(path))
                got = ot.Session(str(path)).run(self.feeds)
            except ot.Error as e:
                self.stages["export"] = refused(e)
                return
            try:
                session = reference(path)
                want = dict(zip([o.name for o in session.get_outputs()], session.run(None, self.feeds), strict=True))
            except Exception as e:
                self.stages["export"] = ["WRONG", f"ONNX Runtime refuses the trained file: {str(e)[:300]}"]
                return
            if self.random:
                self.stages["export"] = ["as trained", "random: runs"]
                return
            bad = self.beyond_noise({n: gap(got[n], v) for n, v in want.items()}, path, want)
            self.stages["export"] = ["WRONG", f"{bad}"] if bad else ["as trained", ""]


def outcome(path):
    try:
        trial = Trial(path)
    except Exception as e:  # the package onnx cannot read it: no protobuf, or external data that is not there
        try:
            ot.Session(path)
        except ot.Error as ours:
            return {"inference": ["not tried", f"the package onnx cannot read it; here {refused(ours)[1]}"]}
        return {"inference": ["not tried", f"the package onnx cannot read it: {str(e)[:160]}"]}
    try:
        return trial.run()
    except Exception as e:  # told, not hidden: it is no answer
        return {**trial.stages, "crash": ["CRASHED", f"{type(e).__name__}: {e}"[:300]]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(outcome(sys.argv[1])))
