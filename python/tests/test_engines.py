"""Portable steps and engines: the same training in other runtimes, under the same loop."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onnxtrain as ot
from onnxtrain import engines
from onnxtrain.engines import driver

ROOT = Path(__file__).parents[2]
ort = pytest.importorskip("onnxruntime")


@pytest.fixture
def train():
    rng = np.random.RandomState(0)
    w = {"w1": rng.randn(6, 16) * 0.3, "w2": rng.randn(16, 3) * 0.3}
    text = """<ir_version: 8, opset_import: ["" : 17]>
    mlp (float[N,6] x) => (float[N,3] logits) <float[6,16] w1 = {%s}, float[16,3] w2 = {%s}>
    { h = MatMul (x, w1) a = Relu (h) logits = MatMul (a, w2) }""" % tuple(
        ", ".join(repr(float(v)) for v in a.astype(np.float32).reshape(-1)) for a in w.values())
    return ot.prepare(ot.parse(text), loss="cross_entropy", optimizer=ot.AdamW(lr=1e-2))


def data(rows=48):
    rng = np.random.RandomState(1)
    return rng.randn(rows, 6).astype(np.float32), rng.randint(0, 3, rows)


def test_the_step_runs_in_the_reference_evaluator_and_in_onnxruntime(train, tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    sys.path.insert(0, str(ROOT / "examples/portable_step"))
    import drive

    report = ot.export_step(train, tmp_path / "step.onnx")
    assert [Path(f).name for f in report["files"]] == ["step.onnx", "step.state.safetensors", "step.manifest.json"]
    proto = onnx.load(tmp_path / "step.onnx")
    onnx.checker.check_model(proto, full_check=True)
    assert not proto.functions and {n.domain for n in proto.graph.node} == {""}
    inside = {p.key: p.value for p in proto.metadata_props}["onnxtrain.step_manifest"]
    assert json.loads(inside) == json.loads((tmp_path / "step.manifest.json").read_text())
    steps = drive.Steps(tmp_path / "step.manifest.json")
    evaluator, state = ReferenceEvaluator(proto), dict(steps.state)
    section = steps.manifest["sections"][0]
    native = ot.Trainer(train)
    x, y = data()
    for k in range(5):
        feeds = {"x": x[8 * k:8 * k + 8], "label": y[8 * k:8 * k + 8]}
        loss = native.step(feeds).loss
        assert steps.step(feeds) == pytest.approx(loss, abs=1e-5)
        names = [o["name"] for o in section["outputs"]]
        got = dict(zip(names, evaluator.run(names, {**state, **feeds})))
        state |= {f["input"]: got[f["output"]] for f in section["feedback"]}
        assert float(got["loss"]) == pytest.approx(loss, abs=1e-5)
    for name, value in native.state.items():
        np.testing.assert_allclose(steps.state[name], value, atol=1e-5)
        np.testing.assert_allclose(state[name], value, atol=1e-5)


def test_the_manifest_follows_its_schema(train, tmp_path):
    schema = json.loads((ROOT / "docs/step-manifest.schema.json").read_text())
    ot.export_step(train, tmp_path / "step.onnx", dims={"N": 4})
    manifest = json.loads((tmp_path / "step.manifest.json").read_text())

    def follows(value, rule, where="manifest"):
        """The part of JSON schema that the schema uses."""
        if "$ref" in rule:
            rule = schema["$defs"][rule["$ref"].rsplit("/", 1)[1]]
        for part in rule.get("allOf", []):
            follows(value, part, where)
        kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
        said = rule.get("type", [])
        said = [said] if isinstance(said, str) else said
        assert not said or isinstance(value, tuple(kinds[k] for k in said)), where
        assert value == rule.get("const", value) and value in rule.get("enum", [value]), where
        if isinstance(value, dict):
            assert set(rule.get("required", [])) <= set(value), where
            for key, sub in rule.get("properties", {}).items():
                if key in value:
                    follows(value[key], sub, f"{where}.{key}")
        if isinstance(value, list) and "items" in rule:
            for k, v in enumerate(value):
                follows(v, rule["items"], f"{where}[{k}]")

    follows(manifest, schema)
    assert manifest["sections"][0]["inputs"][0]["shape"] == [4, 6]


def test_a_run_begun_in_one_engine_resumes_in_another(train, tmp_path):
    x, y = data()
    whole = ot.Trainer(train)
    whole.fit(x, y, epochs=4, batch_size=10, out=tmp_path / "whole")  # a ragged last batch
    first = ot.Trainer(train, engine="onnxruntime")
    h = first.fit(x, y, valid=None, epochs=2, batch_size=10, out=tmp_path / "run")
    assert len(h) == 2 and (tmp_path / "run/checkpoints/last.train.onnx").exists()
    second = ot.resume(tmp_path / "run")
    second.fit(epochs=3)
    third = ot.resume(tmp_path / "run", engine="onnxruntime")
    third.fit(epochs=4)
    assert third.step_count == whole.step_count
    for name, value in whole.state.items():
        np.testing.assert_allclose(third.state[name], value, atol=1e-4)
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert len(lines) == 4


def test_state_is_read_and_written_while_an_engine_steps(train):
    x, y = data()
    feeds = {"x": x[:8], "label": y[:8]}
    t, native = ot.Trainer(train, engine="onnxruntime"), ot.Trainer(train)
    for _ in range(3):
        assert t.step(feeds).loss == pytest.approx(native.step(feeds).loss, abs=1e-5)
    t.state["w1"] = np.zeros((6, 16), np.float32)
    native.state["w1"] = np.zeros((6, 16), np.float32)
    t.lr = native.lr = 0.5
    for _ in range(3):
        assert t.step(feeds).loss == pytest.approx(native.step(feeds).loss, abs=1e-5)
    np.testing.assert_allclose(t.state["w2"], native.state["w2"], atol=1e-4)


def test_an_engine_keeps_the_state_between_steps(train, monkeypatch):
    read, state = [], driver.Driver.state
    monkeypatch.setattr(driver.Driver, "state", lambda self: read.append(1) or state(self))
    t = ot.Trainer(train, engine="onnxruntime")
    x, y = data()
    for _ in range(5):
        t.step({"x": x[:8], "label": y[:8]})
    assert not read
    t.state["w1"], t.state["w2"]
    assert len(read) == 1


def test_unknown_engines_and_devices_say_what_there_is(train):
    with pytest.raises(ot.UsageError, match="there is no engine 'abacus'"):
        ot.Trainer(train, engine="abacus")
    with pytest.raises(ot.UsageError, match="no device 'cuda:9'") as e:
        ot.Trainer(train, engine="onnxruntime:cuda:9")
    assert "cpu" in str(e.value)
    assert {"onnxruntime", "openvino", "iree", "tinygrad"} <= set(engines.names())


class _Faulty:
    """An engine with one fault, over a good one."""

    name = runtime = "onnxruntime"

    def __init__(self, fault):
        self.fault, self.good = fault, engines.find("onnxruntime")

    def compile(self, step, device, threads=0):
        runner, fault = self.good.compile(step, device, threads=threads), self.fault
        step_of, state_of, count = runner.step, runner.state, [0]

        def step(feeds):
            got = step_of(feeds)
            count[0] += 1
            if fault == "nan" and count[0] == 3:
                got["loss"] = np.float32("nan")
            if fault == "fewer":
                got.pop("loss")
            if fault == "vector":
                got["loss"] = np.zeros(8, np.float32)
            if fault == "raises" and count[0] == 3:
                raise MemoryError("no room on the device")
            return got

        runner.step = step
        if fault == "lost":
            runner.state = lambda: {k: v for k, v in state_of().items() if k != "w1"}
        if fault == "nan weights":
            runner.state = lambda: {k: v * np.float32("nan") if k == "w2" and count[0] > 4 else v
                                    for k, v in state_of().items()}
        if fault == "shape":
            runner.state = lambda: {k: v[None] if k == "w1" else v for k, v in state_of().items()}
        return runner


@pytest.mark.parametrize(("fault", "said"), [
    ("nan", "loss became NaN at step 3"), ("fewer", "did not return the output 'loss'"),
    ("raises", "no room on the device"), ("shape", "returned 'w1' as float"), ("vector", "not one number"),
    ("nan weights", "returned 'w2' with NaN"), ("lost", "did not return the state variable 'w1'")])
def test_faulty_engines_are_found_and_the_checkpoint_is_whole(train, tmp_path, monkeypatch, fault, said):
    monkeypatch.setattr(driver, "open_engine", lambda spec: (_Faulty(fault), "cpu"))
    x, y = data(32)
    t = ot.Trainer(train, engine="onnxruntime")
    with pytest.raises(ot.Error, match=said):
        t.fit(x, y, epochs=3, batch_size=8, save_every=1, out=tmp_path / "run")
    if fault in ("nan", "raises"):
        kept = ot.resume(tmp_path / "run")
        assert kept.step_count == 2
    if fault == "nan weights":
        kept = ot.resume(tmp_path / "run")
        assert kept.step_count == 4
    if (tmp_path / "run/checkpoints/last.train.onnx").exists():
        kept = ot.resume(tmp_path / "run")
        assert all(np.isfinite(v).all() for v in kept.state.values())


class _Answers:
    """An engine that answers as no engine may."""

    name = runtime = "onnxruntime"

    def __init__(self, answers):
        self.answers = answers

    def devices(self):
        return self.answers.get("devices", lambda: ["npu0"])()

    def compile(self, step, device, threads=0):
        runner = engines.find("onnxruntime").compile(step, "cpu", threads=threads)
        if "runner" in self.answers:
            return self.answers["runner"]()
        for name in ("step", "state"):
            if name in self.answers:
                good, change = getattr(runner, name), self.answers[name]
                setattr(runner, name, lambda *feeds, good=good, change=change: change(good(*feeds)))
        return runner


def _raise(error):
    raise error


@pytest.mark.parametrize(("answers", "said"), [
    ({"devices": list}, "engine onnxruntime finds no device"),
    ({"devices": lambda: _raise(OSError("no driver"))}, "cannot say its devices: OSError: no driver"),
    ({"runner": lambda: None}, "returned no runner for the step"),
    ({"runner": object}, "object has no step and no state and no set_state"),
    ({"step": lambda got: None}, "its step returned NoneType"),
    ({"step": lambda got: list(got.values())}, "its step returned list"),
    ({"step": lambda got: got | {"loss": None}}, "it returned 'loss' as NoneType, not as numbers"),
    ({"step": lambda got: got | {"loss": "0.5"}}, "it returned 'loss' as <U3, not as numbers"),
    ({"step": lambda got: got | {"loss": np.complex64(1)}}, "it returned 'loss' as complex64"),
    ({"step": lambda got: _raise(MemoryError)}, "the engine failed: MemoryError$"),
    ({"state": lambda got: None}, "its state returned NoneType"),
    ({"state": lambda got: got | {"w1": [[1.0], [1.0, 2.0]]}}, "it returned 'w1' as list that is no array"),
    ({"state": lambda got: got | {"w1": got["w1"].astype(np.float64)}}, "returned 'w1' as double")])
def test_answers_that_no_engine_may_give_are_one_error(train, answers, said):
    x, y = data()
    with pytest.raises(ot.Error, match=said):
        ot.Trainer(train, engine=_Answers(answers)).fit(x, y, valid=None, epochs=1, batch_size=8)


class _KnownSizes(_Answers):
    """An engine that refuses open sizes."""

    def __init__(self):
        super().__init__({})
        self.asked = []

    def compile(self, step, device, threads=0):
        self.asked.append([step.shape_of(k) for k in step.data])
        if any(isinstance(n, str) for shape in self.asked[-1] for n in shape):
            raise NotImplementedError("dynamic dimension")
        return super().compile(step, device, threads)


def test_an_engine_that_refuses_open_sizes_gets_the_sizes_that_come(train):
    x, y = data()
    engine = _KnownSizes()
    t, native = ot.Trainer(train, engine=engine), ot.Trainer(train)
    for rows in (8, 5, 8):
        feeds = {"x": x[:rows], "label": y[:rows]}
        assert t.step(feeds).loss == pytest.approx(native.step(feeds).loss, abs=1e-5)
    assert engine.asked == [[["N", 6], ["N"]], [[8, 6], [8]], [[5, 6], [5]]]
    got, want = t.evaluate(x, y), native.evaluate(x, y)
    assert got["loss"] == pytest.approx(want["loss"], abs=1e-5) and engine.asked[-1][0] == [48, 6]


def test_a_step_that_is_refused_at_every_size_is_one_error(train):
    x, y = data()
    with pytest.raises(ot.Error, match="the engine failed: ValueError: no such operator"):
        ot.Trainer(train, engine=_Answers({"runner": lambda: _raise(ValueError("no such operator"))})).step(
            {"x": x, "label": y})


@pytest.mark.parametrize("engine", [5, None, object()])
def test_what_is_no_engine(train, engine):
    with pytest.raises(ot.UsageError, match="an engine is a name, or an object with `devices` and `compile`"):
        ot.Trainer(train, engine=engine)


def test_the_native_engine_has_no_device_to_choose(train):
    with pytest.raises(ot.UsageError, match="has no device 'gpu'"):
        ot.Trainer(train, engine="native:gpu")


def test_a_package_that_cannot_be_loaded(monkeypatch):
    class Entry:
        name = "mychip"

        def load(self):
            raise OSError("libmychip.so: cannot open shared object file")

    monkeypatch.setattr(engines.importlib.metadata, "entry_points", lambda group: [Entry()])
    with pytest.raises(ot.UsageError, match="engine mychip cannot be loaded: OSError: libmychip.so") as e:
        engines.open_engine("mychip")
    assert e.value.code == "OT1271"


def _fed(section, name):
    return next(f for f in section["feedback"] if f["input"] == name)


def _exchange(section, one, other):
    a, b = _fed(section, one), _fed(section, other)
    a["input"], b["input"] = other, one


@pytest.mark.parametrize(("change", "said"), [
    (lambda s: s["feedback"][0].update(input="nothing"), "has no input 'nothing'"),
    (lambda s: s["feedback"][0].update(output="nothing"), "has no output 'nothing'"),
    (lambda s: _fed(s, "w1").update(input="w2"), "they do not fit"),
    (lambda s: _fed(s, "w1").update(input="w1.exp_avg"), "feeds both"),
    (lambda s: _exchange(s, "w1", "w1.exp_avg"), "do not agree: only one of them feeds"),
    (lambda s: s["feedback"].remove(_fed(s, "w1")), "do not agree: only one of them feeds 'w1_new' back to 'w1'"),
    (lambda s: s["inputs"].pop(0), "do not agree on the inputs"),
    (lambda s: s["inputs"][0].update(type="float33"), "the type 'float33'"),
    (lambda s: s["inputs"][0].update(shape=6), "the shape 6"),
    (lambda s: s["inputs"][0].update(role="date"), "the role 'date'"),
    (lambda s: next(i for i in s["inputs"] if i["name"] == "w1").update(role="data"), "is no state"),
    (lambda s: s["inputs"][0].pop("name"), "an entry of 'inputs' without 'name'"),
    (lambda s: s.update(feedback="w1"), "has no list 'feedback'"),
    (lambda s: s["loss"].update(output="nothing"), "the step has no such output"),
    (lambda s: s.update(section=3), "is of section 3")])
def test_a_manifest_whose_feedback_does_not_fit(train, tmp_path, change, said):
    ot.export_step(train, tmp_path / "step.onnx")
    manifest = json.loads((tmp_path / "step.manifest.json").read_text())
    change(manifest["sections"][0])
    with pytest.raises(ot.UsageError, match=said) as e:
        engines.Step.of((tmp_path / "step.onnx").read_bytes(), json.dumps(manifest), {})
    assert e.value.code == "OT1773"


@pytest.mark.parametrize(("text", "said"), [
    ("", "is no JSON"), ("[1]", "has no list of sections"), ('{"sections": []}', "has no list of sections"),
    ('{"version": 99, "sections": [{}]}', "version 99"), ('{"sections": [1]}', "has no list 'inputs'")])
def test_a_manifest_that_is_none(train, text, said):
    with pytest.raises(ot.UsageError, match=said):
        engines.Step.of(b"", text, {})


def test_a_step_of_fixed_size_says_a_wrong_batch(train, tmp_path):
    ot.export_step(train, tmp_path / "step.onnx", dims={"N": 8})
    sys.path.insert(0, str(ROOT / "examples/portable_step"))
    import drive

    x, y = data(5)
    with pytest.raises(Exception, match="(?s)x.*Got: 5 Expected: 8|label.*Got: 5 Expected: 8"):
        drive.Steps(tmp_path / "step.manifest.json").step({"x": x, "label": y})
    feeds = {"x": x, "label": y} | drive.Steps(tmp_path / "step.manifest.json").state
    with pytest.raises(ot.DataError, match="5"):
        ot.Session(tmp_path / "step.onnx").run(feeds)


def _cli(*args, cwd):
    return subprocess.run([str(ROOT / ".venv/bin/onnxtrain"), *map(str, args)], capture_output=True, text=True, cwd=cwd,
                          env=os.environ | {"ONNXTRAIN_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python")})


def test_the_command_line_trains_with_an_engine(train, tmp_path):
    train.save(tmp_path / "m.train.onnx")
    x, y = data(64)
    np.savez(tmp_path / "d.npz", x=x, label=y)
    common = ("--data", "d.npz", "--batch", 8, "--epochs", 2, "--valid", 0.25)
    native = _cli("train", "m.train.onnx", *common, "--out", "a", cwd=tmp_path)
    assert native.returncode == 0, native.stderr
    other = _cli("train", "m.train.onnx", *common, "--out", "b", "--engine", "onnxruntime", cwd=tmp_path)
    assert other.returncode == 0, other.stderr
    assert "onnxruntime on cpu" in other.stderr
    one, two = ([json.loads(x) for x in (tmp_path / n / "metrics.jsonl").read_text().splitlines()] for n in "ab")
    for p, q in zip(one, two, strict=True):
        assert q["valid_loss"] == pytest.approx(p["valid_loss"], abs=1e-4)
    wrong = _cli("train", "m.train.onnx", *common, "--out", "c", "--engine", "onnxruntime:abacus", cwd=tmp_path)
    assert wrong.returncode == 2 and "no device 'abacus'" in wrong.stderr and "there is: cpu" in wrong.stderr


def test_an_engine_that_crashes_is_an_error_and_the_checkpoint_is_whole(train, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nfrom onnxtrain.engines import onnxruntime_engine as e\ncount = [0]\nold = e.Runner.step\n"
        "def step(self, feeds):\n    count[0] += 1\n    if count[0] == 6:\n        os.abort()\n"
        "    return old(self, feeds)\ne.Runner.step = step\n")
    train.save(tmp_path / "m.train.onnx")
    x, y = data(64)
    np.savez(tmp_path / "d.npz", x=x, label=y)
    done = subprocess.run(
        [str(ROOT / ".venv/bin/onnxtrain"), "train", "m.train.onnx", "--data", "d.npz", "--batch", "8", "--epochs", "3",
         "--valid", "0", "--out", "run", "--save-every", "2", "--engine", "onnxruntime"],
        capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"ONNXTRAIN_PYTHON": sys.executable, "PYTHONPATH": f"{tmp_path}:{ROOT / 'python'}"})
    assert done.returncode == 1 and "crashed (signal 6)" in done.stderr, done.stderr
    assert ot.resume(tmp_path / "run").step_count == 4


def test_isolated_in_python(train):
    x, y = data()
    feeds = {"x": x[:8], "label": y[:8]}
    t, native = ot.Trainer(train, engine="onnxruntime", isolated=True), ot.Trainer(train)
    for _ in range(3):
        assert t.step(feeds).loss == pytest.approx(native.step(feeds).loss, abs=1e-5)
    np.testing.assert_allclose(t.state["w1"], native.state["w1"], atol=1e-5)


def test_export_step_on_the_command_line(train, tmp_path):
    train.save(tmp_path / "m.train.onnx")
    done = _cli("export", "m.train.onnx", "--step", "-o", "step.onnx", "--dim", "N=4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    session = ort.InferenceSession(tmp_path / "step.onnx")
    assert next(i for i in session.get_inputs() if i.name == "x").shape == [4, 6]
    assert _cli("export", "m.train.onnx", "--step", "0", "-o", "s0.onnx", cwd=tmp_path).returncode == 0
    none = _cli("export", "m.train.onnx", "--step", "3", "-o", "s3.onnx", cwd=tmp_path)
    assert none.returncode == 2 and "there is no section 3" in none.stderr
    embedded = _cli("export", "m.train.onnx", "--step", "-o", "e.onnx", "--embed-state", cwd=tmp_path)
    assert embedded.returncode == 0 and "IREE" in embedded.stderr
    unknown = _cli("export", "m.train.onnx", "--step", "-o", "u.onnx", "--for", "abacus", cwd=tmp_path)
    assert unknown.returncode == 2 and "abacus" in unknown.stderr
