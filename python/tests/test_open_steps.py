"""Portable steps with open sizes where gradients need them: ONNX Runtime and the ReferenceEvaluator as this library."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onnxtrain as ot

ROOT = Path(__file__).parents[2]
onnxruntime = pytest.importorskip("onnxruntime")
reference = pytest.importorskip("onnx.reference")


def driven(folder):
    sys.path.insert(0, str(ROOT / "examples/portable_step"))
    import drive

    return drive.Steps(folder / "step.manifest.json")


def states(folder):
    steps = driven(folder)
    return steps.manifest["sections"][0], steps.state


def agree(train, feeds, folder, **options):
    """Steps on these feeds, one after the other, in three places; the operators of the step."""
    ot.export_step(train, folder / "step.onnx", **options)
    section, start = states(folder)
    names = [o["name"] for o in section["outputs"]]
    evaluator = reference.ReferenceEvaluator(str(folder / "step.onnx"))
    session = onnxruntime.InferenceSession(folder / "step.onnx", providers=["CPUExecutionProvider"])
    for run in (lambda given: evaluator.run(names, given), lambda given: session.run(names, given)):
        native, state = ot.Trainer(train), dict(start)
        for f in feeds:
            loss = native.step(f).loss
            got = dict(zip(names, run({i["name"]: (state | f)[i["name"]] for i in section["inputs"]})))
            state |= {x["input"]: got[x["output"]] for x in section["feedback"]}
            assert float(got[section["loss"]["output"]]) == pytest.approx(loss, rel=1e-4, abs=1e-5)
        for name, value in native.state.items():
            np.testing.assert_allclose(state[name], value, atol=1e-4)
    import onnx

    return {n.op_type for n in onnx.load(folder / "step.onnx").graph.node}


def test_sums_over_axes_that_may_have_been_broadcast(tmp_path):
    """Height and width of the target are not said to be those of the output: gradients undo broadcasting, or not."""
    model = ot.parse("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,h,w] x, float[n,k,m] z) => (float[a,b,c] y)
    <float p = {0.5}, float q = {-0.7}> { s = Mul (x, p) t = Tanh (z) u = Mul (t, q) v = Add (s, u) y = Tanh (v) }""")
    train = ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.1))
    rng = np.random.RandomState(0)

    def batch(*z):
        return {"x": rng.randn(3, 4, 5).astype(np.float32), "z": rng.randn(*z).astype(np.float32),
                "label": rng.randn(3, 4, 5).astype(np.float32)}

    used = agree(train, [batch(3, 4, 5), batch(1, 4, 1), batch(3, 1, 1)], tmp_path)
    assert "NonZero" not in used


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_images_of_any_size_resized_in_the_step(tmp_path, policy):
    model = ot.parse("""<ir_version: 8, opset_import: ["" : 18]>
    g (uint8[N,1,height,width] image) => (float[N,2] scores)
    <float[2,1,3,3] w = {0.1, 0.2, 0.3, -0.1, 0.5, 0.2, 0.3, -0.4, 0.1, 0.6, -0.2, 0.3, 0.1, 0.5, -0.2, 0.3, 0.4, 0.1}>
    { size = Constant <value = int64[2] {6, 7}> ()
      number = Cast <to = 1> (image)
      small = Resize <mode = "linear", antialias = 1, exclude_outside = 1, axes = [2, 3],
                      keep_aspect_ratio_policy = "%s"> (number, , , size)
      whole = CenterCropPad <axes = [2, 3]> (small, size)
      k = Constant <value = float {0.004}> ()
      unit = Mul (whole, k)
      c = Conv (unit, w)
      m = GlobalAveragePool (c)
      scores = Flatten (m) }""" % policy)
    train = ot.prepare(model, loss="cross_entropy", optimizer=ot.SGD(lr=0.5))
    rng = np.random.RandomState(1)

    def batch(height, width):
        return {"image": rng.randint(0, 256, (3, 1, height, width)).astype(np.uint8), "label": rng.randint(0, 2, 3)}

    assert "Resize" not in agree(train, [batch(6, 7), batch(13, 9), batch(4, 15), batch(20, 21)], tmp_path)
    assert "Range" not in agree(train, [batch(13, 9)], tmp_path, dims={"height": 13, "width": 9})


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "tinygrad", "iree"])
def test_image_models_of_new_train_in_engines(tmp_path, engine):
    pytest.importorskip({"iree": "iree.compiler"}.get(engine, engine))
    rng = np.random.default_rng(2)
    for kind in range(2):
        (tmp_path / f"images/{kind}").mkdir(parents=True)
        for k in range(12):
            high, wide = (12, 12) if k % 2 else (14, 17)
            pixels = rng.integers(0, 150, (high, wide, 3)).astype(np.uint8) + np.uint8(90 * kind)
            Path(tmp_path / f"images/{kind}/{k}.ppm").write_bytes(b"P6\n%d %d\n255\n" % (wide, high) + pixels.tobytes())
    model = ot.prepare(ot.new("cnn", tmp_path / "images", image_size=12, verbose=False), loss="cross_entropy",
                       optimizer=ot.SGD(lr=0.05))
    model.save(tmp_path / "model.train.onnx")
    runs = []
    for other in ("native", engine):
        done = subprocess.run(
            [ROOT / ".venv/bin/onnxtrain", "train", "model.train.onnx", "--data", "images", "--epochs", "2", "--batch",
             "8", "--valid", "0.25", "--out", other, "--engine", other], capture_output=True, text=True, cwd=tmp_path,
            env=os.environ | {"ONNXTRAIN_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python")})
        assert done.returncode == 0, done.stderr
        runs.append([json.loads(x) for x in (tmp_path / other / "metrics.jsonl").read_text().splitlines()])
    for a, b in zip(*runs, strict=True):
        assert b["train_loss"] == pytest.approx(a["train_loss"], abs=1e-4)
        assert b["valid_loss"] == pytest.approx(a["valid_loss"], abs=1e-4)


def test_what_only_large_sizes_have_in_common_is_not_taken_for_known(tmp_path):
    """The first 50 of an axis are 50 for every large size, and fewer for small ones."""
    model = ot.parse("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,T] x) => (float[N,1] y) <float w = {0.5}>
    { from = Constant <value = int64[1] {0}> () to = Constant <value = int64[1] {50}> ()
      axis = Constant <value = int64[1] {1}> () m = Mul (x, w) first = Slice (m, from, to, axis)
      s = ReduceMean <axes = [1], keepdims = 1> (first) y = Tanh (s) }""")
    train = ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.5))
    rng = np.random.RandomState(3)
    agree(train, [{"x": rng.randn(4, n).astype(np.float32) + 1, "label": rng.randn(4, 1).astype(np.float32)}
                  for n in (7, 60, 200)], tmp_path)


def test_a_target_has_the_sizes_of_an_output_behind_a_resize():
    """Sizes that are computed from a shape and do not depend on it are known (unet of tests/trajectories)."""
    model = ot.parse("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,1,4,4] x) => (float[N,1,8,8] y) <float[1,1,1,1] w = {0.5}>
    { two = Constant <value = int64[2] {2, 2}> () last = Constant <value = int64[2] {2, 3}> ()
      first = Constant <value = int64[2] {0, 1}> () shape = Shape (x) high = Gather (shape, last)
      large = Mul (high, two)
      rows = Gather (shape, first) size = Concat <axis = 0> (rows, large) up = Resize <mode = "linear"> (x, , , size)
      y = Conv (up, w) }""")
    train = ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.5))
    assert train.info["training"][0]["inputs"][0]["shape"] == ["N", 1, 8, 8]


def test_a_whole_training_for_runtimes_without_loops(tmp_path):
    model = ot.parse("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {0.5, 0.2}> { y = MatMul (x, w) }""")
    train = ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.5))
    with pytest.raises(ot.UsageError, match="MNN computes a Loop over an open number of rows wrongly"):
        ot.export_whole(train, tmp_path / "w.onnx", epochs=1, batch=4, runtime="mnn")
    ot.export_whole(train, tmp_path / "w.onnx", epochs=1, batch=4, rows=8, runtime="mnn")
    said = ot.export_whole(train, tmp_path / "w.onnx", epochs=1, batch=4, runtime="iree")["warnings"]
    assert any("iree has no operator for --loop loop" in line for line in said)
    assert not ot.export_whole(train, tmp_path / "w.onnx", epochs=1, batch=4, rows=8, loop="unrolled",
                               runtime="iree")["warnings"]


def test_random_nodes_with_an_open_batch(tmp_path):
    model = ot.prepare(ot.parse("""<ir_version: 8, opset_import: ["" : 17]>
    net (float[N,3] x) => (float[N,3] y) <float[3,3] w = {1, 0, 0, 0, 1, 0, 0, 0, 1}>
    { h = MatMul (x, w) z = RandomNormalLike <scale = 0.5> (h) u = RandomUniformLike <low = -1.0, high = 1.0> (h)
      a = Add (h, z) y = Add (a, u) }"""), loss="mse", optimizer=ot.SGD(lr=0.1))
    ot.export_step(model, tmp_path / "step.onnx")
    x = np.zeros((500, 3), np.float32)
    steps = driven(tmp_path)
    losses = [steps.step({"x": x, "label": x}) for _ in range(2)]
    assert losses[0] != losses[1]  # other numbers in every step
    assert losses[0] == pytest.approx(0.25 + 1 / 3, abs=0.06)  # the variances of both


def test_sizes_and_opsets_that_are_named_work(tmp_path):
    model = ot.prepare(ot.parse("""<ir_version: 9, opset_import: ["" : 20]>
    net (float[N,1,4,4] x, float[N,4,4,2] grid) => (float[N,1,4,4] y) <float w = {1.0}>
    { a = Mul (x, w) y = GridSample (a, grid) }"""), loss="mse", only=["w"])
    with pytest.raises(ot.Error, match="GridSample.*needs known shapes") as e:
        ot.export_step(model, tmp_path / "step.onnx", opset=13)
    assert "dims={'N': 32}" in e.value.hint
    with pytest.raises(ot.UsageError, match="size 0 given for dimension 'N'"):
        ot.export_step(model, tmp_path / "step.onnx", dims={"N": 0})
    with pytest.raises(ot.Error, match="GridSample.*does not exist there") as e:
        ot.export_step(model, tmp_path / "step.onnx", opset=13, dims={"N": 32})
    opset = int(e.value.hint.split("opset=")[1])
    rng = np.random.RandomState(0)
    feeds = {"x": rng.randn(3, 1, 4, 4), "grid": rng.rand(3, 4, 4, 2), "label": rng.randn(3, 1, 4, 4)}
    for version in (opset, 20):  # its modes have other names from 20 on
        agree(model, [{k: v.astype(np.float32) for k, v in feeds.items()}], tmp_path, opset=version, dims={"N": 3})
