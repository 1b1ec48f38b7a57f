"""The entire training as one ONNX file: one call is the same as its steps, bit by bit."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onnxtrain as ot

ROOT = Path(__file__).parents[2]
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def module(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


whole = module(ROOT / "tests/engines/whole.py")
ROWS, BATCH = 21, 8


@pytest.fixture(scope="module")
def train():
    rng = np.random.RandomState(0)

    def numbers(*shape):
        return ", ".join(repr(float(v)) for v in (rng.randn(*shape) * 0.4).astype(np.float32).reshape(-1))
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    mlp (float[N,6] x) => (float[N,3] logits)
    <float[6,8] w1 = {{{numbers(6, 8)}}}, float[8] s = {{{numbers(8)}}}, float[8] o = {{{numbers(8)}}},
     float[8] m = {{{numbers(8)}}}, float[8] v = {{1, 1, 1, 1, 1, 1, 1, 1}}, float[8,3] w2 = {{{numbers(8, 3)}}}>
    {{ h = MatMul (x, w1) n = BatchNormalization (h, s, o, m, v) a = Relu (n) d = Dropout (a)
       logits = MatMul (d, w2) }}"""
    return ot.prepare(ot.parse(text), loss="cross_entropy", optimizer=ot.AdamW(lr=3e-2),
                      schedule=ot.Schedule("cosine", {"total_steps": 20}))


def arrays():
    rng = np.random.RandomState(1)
    return {"x": rng.randn(ROWS, 6).astype(np.float32), "label": rng.randint(0, 3, ROWS)}


@pytest.mark.parametrize("runtime", ["native", "onnxruntime", "reference"])
@pytest.mark.parametrize("form", list(whole.FORMS))
def test_one_call_is_the_same_as_its_steps(train, tmp_path, form, runtime):
    kind, fixed = whole.FORMS[form]
    far, same = whole.compare(train, arrays(), {}, "N", BATCH, kind, fixed, runtime, tmp_path)
    # unrolled, ONNX Runtime knows the first step's weights and computes with them beforehand
    assert same or (kind == "unrolled" and runtime == "onnxruntime" and far < 1e-6)


def test_several_sections_share_the_state(tmp_path):
    gan = ot.load(ROOT / "examples/gan/gan.train.onnx")
    rows = {i["name"]: i["shape"] for i in gan.info["inputs"]}
    report = ot.export_whole(gan, tmp_path / "w.onnx", 2, 4, rows=8)
    rng = np.random.RandomState(0)
    data = {}
    for i in report["inputs"]:
        if i["role"] in ("data", "target"):
            shape = [int(n) for n in i["type"].split("[")[1][:-1].split(",") if n]
            data[i["name"]] = rng.rand(*shape).astype(np.float32)
    symbol = next(s[0] for s in rows.values() if s and isinstance(s[0], str))
    assert len([o for o in report["outputs"] if o["role"] == "losses"]) == 2
    far, same = whole.compare(gan, data, {}, symbol, 4, "loop", True, "onnxruntime", tmp_path)
    assert same, far


def valid_run(path, **given):
    rng = np.random.default_rng(0)
    feeds = arrays() | {"valid_x": arrays()["x"][:13], "valid_label": arrays()["label"][:13]}
    feeds["order"] = np.stack([rng.permutation(ROWS) for _ in range(6)])
    return whole.runner(given.pop("runtime", "onnxruntime"), path)(feeds), feeds


@pytest.mark.parametrize("kind,fixed", [("loop", False), ("loop", True), ("scan", True), ("unrolled", True)])
def test_validation_best_epoch_and_early_stop(train, tmp_path, kind, fixed):
    sizes = {"rows": ROWS, "valid_rows": 13} if fixed else {}
    path = tmp_path / "w.onnx"
    ot.export_whole(train, path, 6, BATCH, loop=kind, valid=True, best=True, patience=1, **sizes)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    got, feeds = valid_run(path)
    ran, best = int(got["epochs"]), int(got["best_epoch"])
    accuracy, losses = got["valid_accuracy"][:ran], got["valid_loss"][:ran]
    order = sorted(range(ran), key=lambda k: (-accuracy[k], losses[k], k))
    assert best == order[0] + 1
    assert ran == 6 or ran == best + 1
    model = onnx.load_from_string(train.proto())
    del model.training_info[:]
    for t in model.graph.initializer:
        if "best/" + t.name in got:
            t.CopyFrom(onnx.numpy_helper.from_array(np.asarray(got["best/" + t.name]), t.name))
    logits = ot.Session(model.SerializeToString()).run({"x": feeds["valid_x"]})["logits"]
    assert np.mean(logits.argmax(1) == feeds["valid_label"]) == pytest.approx(accuracy[best - 1])
    native, _ = valid_run(path, runtime="native")
    np.testing.assert_allclose(native["valid_loss"][:ran], losses, rtol=1e-4)


def test_epochs_after_the_stop_change_nothing(train, tmp_path):
    for name, kind in (("a", "loop"), ("b", "scan")):
        ot.export_whole(train, tmp_path / f"{name}.onnx", 6, BATCH, loop=kind, rows=ROWS, valid=True, valid_rows=13,
                        patience=1)
    a, b = (valid_run(tmp_path / f"{n}.onnx")[0] for n in "ab")
    assert a["epochs"] == b["epochs"] < 6, "this case is meant to stop early"
    np.testing.assert_array_equal(a["w1"], b["w1"])


def test_wrong_data_is_one_error_that_says_what(train, tmp_path):
    path = tmp_path / "w.onnx"
    ot.export_whole(train, path, 2, BATCH)
    few = {k: v[:5] for k, v in arrays().items()} | {"order": np.zeros((2, 5), np.int64)}
    uneven = arrays() | {"label": arrays()["label"][:-1], "order": np.zeros((2, ROWS), np.int64)}
    for runtime in ("native", "onnxruntime"):
        run = whole.runner(runtime, path)
        with pytest.raises(Exception, match="fewer_rows_than_a_batch_of_8"):
            run(few)
        with pytest.raises(Exception, match="different_numbers_of_rows"):
            run(uneven)
    ot.export_whole(train, path, 2, BATCH, rows=ROWS)
    for runtime in ("native", "onnxruntime"):
        with pytest.raises(Exception, match="(?s)21|dimension"):
            whole.runner(runtime, path)(few)


@pytest.mark.parametrize("rows", [0, ROWS])
def test_wrong_validation_arrays_are_one_error_that_says_what(train, tmp_path, rows):
    """One label that is left for eight rows would be repeated without a word; no rows give 0/0."""
    path = tmp_path / "w.onnx"
    ot.export_whole(train, path, 1, BATCH, rows=rows, valid=True)
    good = arrays() | {"order": np.arange(ROWS)[None]} | {f"valid_{k}": v[:16] for k, v in arrays().items()}
    for runtime in ("native", "onnxruntime"):
        run = whole.runner(runtime, path)
        assert np.isfinite(run(good)["valid_loss"]).all()
        with pytest.raises(Exception, match="validation_arrays_have_different_numbers_of_rows"):
            run(good | {"valid_label": good["valid_label"][:9]})
        with pytest.raises(Exception, match="validation_arrays_have_no_rows"):
            run(good | {f"valid_{k}": v[:0] for k, v in arrays().items()})
        for name in ("label", "valid_label"):
            with pytest.raises(Exception, match=f"numbers_in_{name}_are_not_from_0_to_2"):
                run(good | {name: good[name] + 1})


@pytest.mark.parametrize("options,words", [
    ({"batch": 8, "rows": 5}, "fewer than a batch"), ({"loop": "scan"}, "needs the number of rows"),
    ({"loop": "while"}, "known: loop, scan, unrolled"), ({"epochs": 0}, "at least 1"),
    ({"loop": "unrolled", "rows": 100000}, "nodes, more than"), ({"valid_rows": 3}, "no validation arrays"),
    ({"dims": {"N": 3}}, "counts the rows"),
    ({"loop": "scan", "rows": 16, "valid": True}, "validation rows")])
def test_options_that_do_not_fit(train, tmp_path, options, words):
    with pytest.raises(ot.Error, match=words) as e:
        ot.export_whole(train, tmp_path / "w.onnx", **({"batch": 2} | options))
    assert e.value.code == "OT1770"


def test_command_line(train, tmp_path):
    train.save(tmp_path / "m.train.onnx")
    cli = Path(sys.executable).parent / "onnxtrain"
    done = subprocess.run([cli, "export", tmp_path / "m.train.onnx", "--whole", "--epochs", "2", "--batch", "8", "-o",
                           tmp_path / "w.onnx"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "order" in done.stderr + done.stdout
    np.savez(tmp_path / "in.npz", order=np.zeros((2, ROWS), np.int64), **arrays())
    done = subprocess.run([cli, "run", tmp_path / "w.onnx", "--inputs", tmp_path / "in.npz", "-o", tmp_path / "o.npz"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "o.npz")["losses"].shape == (2, 3)


def test_the_sample_trains_in_plain_onnxruntime(capsys):
    run = module(ROOT / "examples/whole_training/run.py")
    trained, (x, y) = run.main(rows=2000)
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("epoch")]
    assert len(shown) == trained["epochs"]
    assert max(trained["valid_accuracy"]) > 0.8
    best = {k[len("best/"):]: v for k, v in trained.items() if k.startswith("best/")}
    logits = ot.Session(run.inference(best).SerializeToString()).run({"image": x})["logits"]
    assert np.mean(logits.argmax(1) == y) == pytest.approx(max(trained["valid_accuracy"]))
