"""One ONNX file against ONNX Runtime, in this process: inference, a short training, the trained export, gradients.

Usage: python tools/wild/try_file.py FILE        prints a line of JSON after each stage: {stage: [outcome, words]}

Outcomes: same, right, trained, as trained (good); refused (with the words that were printed); not tried (why);
WRONG (numbers differ), CRASHED (an exception that is no answer). `seconds` says how much processor time each stage
took. tools/wild/report.py runs it for every file with limits.
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnx

import onnxtrain as ot

sys.path.insert(0, str(Path(__file__).parent))
import by_differences  # noqa: E402
import feeds as made_up  # noqa: E402
import fine_tuning  # noqa: E402
from answers import gap, lift_constants, operators, reference, refused, tolerance  # noqa: E402
from in_double import in_double, in_double_feeds, rounded_to_half  # noqa: E402

DRAWS = {"Multinomial", "Bernoulli"}  # random numbers that have no mean to take instead
LARGE_BYTES = 16 << 20  # of a file, and
LARGE_SECONDS = 0.2  # of one run: from here on there is one step of training, whose loss is the only difference


def still(graph):
    """Random operators give their mean, so that results can be compared; whether there are any."""
    found = [n for n in operators(graph) if n.op_type.startswith(("RandomNormal", "RandomUniform"))]
    for node in found:
        given = {a.name: a.f for a in node.attribute if a.name in ("low", "high", "mean", "scale")}
        kept = [a for a in node.attribute if a.name not in given]
        del node.attribute[:]
        node.attribute.extend(kept)
        if "Normal" in node.op_type:
            fixed = {"mean": given.get("mean", 0.0), "scale": 1e-30}  # ONNX Runtime ends the process at 0
        else:
            middle = (given.get("low", 0.0) + given.get("high", 1.0)) / 2
            fixed = {"low": middle, "high": middle}
        node.attribute.extend(onnx.helper.make_attribute(k, v) for k, v in fixed.items())
    return bool(found)


class Trial:
    def __init__(self, path):
        self.path = Path(path)
        self.proto = onnx.load(path)
        self.stages = {}
        self.seconds = {}
        self.fell = None  # of the loss in the first step of training, beside what the gradient says
        self.large = sum(f.stat().st_size for f in self.path.parent.iterdir()) > LARGE_BYTES
        self.random = bool(DRAWS & {n.op_type for n in operators(self.proto.graph)})
        self.folder = tempfile.TemporaryDirectory()
        self.still = still(self.proto.graph)
        if self.still:
            self.path = Path(self.folder.name) / "model.onnx"
            self.path.write_bytes(self.proto.SerializeToString())

    def run(self):
        """A line after each stage, so that a limit of time keeps what was done before."""
        self.timed("inference", self.inference)
        if self.stages["inference"][0] == "same" and self.feeds is not None:
            self.timed("training", lambda: fine_tuning.answer(self))
            self.timed("gradients", lambda: self.stages.update(gradients=by_differences.answer(self)))
        return {**self.stages, "seconds": self.seconds}

    def timed(self, stage, work):
        start = time.process_time()
        work()
        self.seconds[stage] = round(time.process_time() - start, 2)
        print(json.dumps({**self.stages, "seconds": self.seconds}), flush=True)

    def find_feeds(self):
        """Inputs that ONNX Runtime runs, and what it makes of them."""
        session, words = reference(self.path), "an input is no tensor"
        for feeds in made_up.guesses(self.proto):
            try:
                start = time.process_time()
                values = session.run(None, feeds)
                self.seconds["ONNX Runtime"] = round(time.process_time() - start, 2)
                return feeds, dict(zip([o.name for o in session.get_outputs()], values, strict=True)), ""
            except Exception as e:  # another guess
                words = f"ONNX Runtime runs none of the guessed inputs: {str(e)[:160]}"
        return None, None, words

    def inference(self):
        self.feeds = None
        try:
            self.feeds, want, words = self.find_feeds()
        except Exception as e:
            words = f"ONNX Runtime refuses the file: {str(e)[:160]}"
        try:
            session = ot.Session(str(self.path), threads=1)
            if self.feeds is None:
                self.stages["inference"] = ["not tried", words]
                return
            start = time.process_time()
            got = session.run(self.feeds)
            self.large = self.large or time.process_time() - start > LARGE_SECONDS
        except ot.Error as e:
            self.stages["inference"] = ["not tried", f"{words}; here {refused(e)[1]}"] if words else refused(e)
            return
        self.got = got
        if self.random:
            self.stages["inference"] = ["same", "random: it runs"]
            return
        gaps = {n: gap(got[n], v) for n, v in want.items()}
        bad = self.farther_from_double(self.beyond_noise(gaps, self.path, want), self.path, got, want)
        worst = max([g or 0 for g in gaps.values()] or [0])
        words = " with random numbers at their mean" if self.still else ""
        self.stages["inference"] = ["WRONG", f"{bad}{words}"] if bad else ["same", f"{worst:.1e}{words}"]

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
        sizes = {name for n in operators(proto.graph) if n.op_type in ("Resize", "Upsample") for name in n.input[1:]}
        for i in proto.graph.initializer:
            if i.data_type == onnx.TensorProto.FLOAT and i.name not in sizes:
                i.CopyFrom(onnx.numpy_helper.from_array(other_bit(onnx.numpy_helper.to_array(i)), i.name))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "moved.onnx").write_bytes(proto.SerializeToString())
            session = reference(Path(folder) / "moved.onnx")
        other = dict(zip(want, session.run(list(want), {n: other_bit(v) for n, v in self.feeds.items()}), strict=True))
        return {n: g for n, g in bad.items() if g > 10 * (gap(other[n], want[n]) or 0)}

    def farther_from_double(self, bad, path, got, want):
        """Of these outputs those that are farther from the same model in float64 than ONNX Runtime's."""
        wide = in_double(onnx.load(path)) if bad else None
        if wide is None:
            return bad
        def computed(proto):
            return ot.Session(ot.load(proto.SerializeToString()), threads=1).run(in_double_feeds(self.feeds))

        try:
            exact = computed(wide)
            halved = rounded_to_half(onnx.load(path))
            rounding = {n: gap(v, exact[n]) or 0 for n, v in computed(halved).items()} if halved else {}
        except ot.Error:  # an operator without a kernel for float64
            return bad

        def limit(n):  # ONNX Runtime keeps float16 in float32 between some nodes
            return max(gap(want[n], exact[n]) or 0, 2 * rounding.get(n, 0))

        return {n: g for n, g in bad.items() if (gap(got[n], exact[n]) or 0) > limit(n)}


def outcome(path):
    try:
        trial = Trial(path)
    except Exception as e:  # the package onnx cannot read it: no protobuf, or external data that is not there
        words = f"the package onnx cannot read it ({type(e).__name__})"
        try:
            ot.Session(path)
        except ot.Error as ours:
            return {"inference": ["not tried", f"{words}; here {refused(ours)[1]}"]}
        return {"inference": ["not tried", f"{words}: {str(e)[:160]}"]}
    try:
        return trial.run()
    except Exception as e:  # told, not hidden: it is no answer
        return {**trial.stages, "crash": ["CRASHED", f"{type(e).__name__}: {e}"[:300]], "seconds": trial.seconds}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(outcome(sys.argv[1])))
