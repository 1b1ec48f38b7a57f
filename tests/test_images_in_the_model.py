"""Images of any size: resizing, cropping and scaling are nodes of the model, ONNX Runtime gives what predict gives."""

import csv
import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, cnn, save  # noqa: E402

NAMES = ["cat", "dog", "eel"]
SIZES = [(12, 12), (20, 9), (7, 31), (40, 25), (12, 13)]


def ppm(path, size, kind, seed):
    r = np.random.default_rng(seed)
    pixels = r.integers(0, 90, (*size, 3)).astype(np.uint8)
    pixels[:, :, kind] += 150
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"P6\n%d %d\n255\n" % (size[1], size[0]) + pixels.tobytes())
    return pixels


def triangle(size, to, scale):
    """Weights [to, size] of a triangle filter that widens when the image shrinks and ends at its edges."""
    weights = np.zeros((to, size))
    for i in range(to):
        distance = np.abs(np.arange(size) + 0.5 - (i + 0.5) / scale) / max(1, 1 / scale)
        weights[i] = np.maximum(0, 1 - distance)
    return weights / weights.sum(1, keepdims=True)


def resized(pixels, height, width, how):
    h, w = pixels.shape[:2]
    down, across = height / h, width / w
    if how != "stretch":
        down = across = (max if how == "crop" else min)(down, across)
    x = np.moveaxis(pixels.astype(np.float64), 2, 0)
    tall, wide = int(down * h + 0.5), int(across * w + 0.5)
    x = triangle(h, tall, down) @ x @ triangle(w, wide, across).T
    out = np.zeros((3, height, width))
    rows, columns = min(tall, height), min(wide, width)
    y0, x0, y1, x1 = (max(0, n) // 2 for n in (tall - height, wide - width, height - tall, width - wide))
    out[:, y1:y1 + rows, x1:x1 + columns] = x[:, y0:y0 + rows, x0:x0 + columns]
    return out


def folder(top, count=8):
    for kind, name in enumerate(NAMES):
        for k in range(count):
            ppm(top / name / f"{k:02d}.ppm", SIZES[k % len(SIZES)], kind, 100 * kind + k)


def predicted(work, *options):
    r = cli("predict", "run", "--data", "new", *options, cwd=work)
    assert r.returncode == 0, r.stderr
    rows = list(csv.DictReader(r.stdout.splitlines()))
    return rows, np.array([[float(row[n]) for n in NAMES] for row in rows])


@pytest.mark.parametrize("resize", ["stretch", "crop", "pad"])
def test_onnxruntime_gives_what_predict_gives(tmp_path, resize):
    folder(tmp_path / "d")
    r = cli("new", "cnn", "--data", "d", "--image-size", "16,12", "--resize", resize, "-o", "m.onnx", cwd=tmp_path)
    assert r.returncode == 0 and "antialiasing, in the model" in r.stderr, r.stderr
    r = cli("train", "m.onnx", "--data", "d", "--epochs", "4", "--out", "run", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    raw = [ppm(tmp_path / f"new/{k}.ppm", size, k % 3, 7 + k) for k, size in enumerate([*SIZES, (16, 12), (16, 12)])]
    rows, scores = predicted(tmp_path)
    assert [row["file"] for row in rows] == [f"new/{k}.ppm" for k in range(len(raw))]
    assert cli("export", "run", "-o", "e.onnx", cwd=tmp_path).returncode == 0
    onnx.checker.check_model(str(tmp_path / "e.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(str(tmp_path / "e.onnx"))
    took = session.get_inputs()[0]
    assert took.type == "tensor(uint8)" and took.shape[1] == 3 and not isinstance(took.shape[2], int)
    want = np.vstack([session.run(None, {took.name: np.moveaxis(p, 2, 0)[None].copy()})[0] for p in raw])
    np.testing.assert_allclose(scores, want, rtol=2e-4, atol=2e-5)
    assert np.abs(want).max() > 0.1
    # the graph does the same to one image of the right size as to none: training and predict agree
    one = cli("predict", "e.onnx", "--data", "new/5.ppm", "--scale", "0,1", cwd=tmp_path)
    assert one.returncode == 2 and "twice" in one.stderr


def test_reading_does_what_the_graph_does(tmp_path):
    """Training reads images resized to bytes; the graph's own result differs by the rounding alone."""
    for resize in ("stretch", "crop", "pad"):
        folder(tmp_path / "d", 5)
        made = cli("new", "cnn", "--data", "d", "--image-size", "10,14", "--resize", resize, "-o", "m.onnx",
                   cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        m = onnx.load(tmp_path / "m.onnx")
        rule = {p.key: p.value for p in m.metadata_props}["onnxtrain.image"]
        assert f'"resize":"{resize}"' in rule and '"height":10' in rule
        after = [n for n in m.graph.node if n.op_type in ("Resize", "CenterCropPad")][-1].output[0]
        del m.graph.output[:]
        m.graph.output.append(onnx.helper.make_tensor_value_info(after, onnx.TensorProto.FLOAT, None))
        session = onnxruntime.InferenceSession(m.SerializeToString())
        name = session.get_inputs()[0].name
        plain = onnx.helper.make_model(
            onnx.helper.make_graph([onnx.helper.make_node("Cast", ["x"], ["y"], to=1)], "g",
                                   [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, ["N", 3, 10, 14])],
                                   [onnx.helper.make_tensor_value_info("y", 1, ["N", 3, 10, 14])]),
            opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        save(plain, tmp_path / "plain.onnx")
        for k, size in enumerate(SIZES):
            pixels = ppm(tmp_path / "one/a.ppm", size, 1, k)
            want = session.run(None, {name: np.moveaxis(pixels, 2, 0)[None].copy()})[0]
            np.testing.assert_allclose(want[0], resized(pixels, 10, 14, resize), atol=1e-2)
            if resize != "stretch":
                continue
            got = cli("predict", "plain.onnx", "--data", "one/a.ppm", "--scale", "none", "-o", "p.npy", cwd=tmp_path)
            assert got.returncode == 0, got.stderr
            assert np.abs(np.load(tmp_path / "p.npy") - want).max() < 0.501


def test_eval_scores_what_predict_predicts(tmp_path):
    """Images of any size: the loss of eval is that of the probabilities that predict gives, to float rounding."""
    folder(tmp_path / "d")
    r = cli("new", "cnn", "--data", "d", "--image-size", "9,11", "-o", "m.onnx", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    r = cli("train", "m.onnx", "--data", "d", "--epochs", "1", "--valid", "0", "--augment", "flip,color:0.1", "--out",
            "run", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    losses = []
    for kind, name in enumerate(NAMES):
        r = cli("predict", "run", "--data", f"d/{name}", "--proba", "-o", "p.npy", cwd=tmp_path)
        assert r.returncode == 0, r.stderr
        losses += (-np.log(np.load(tmp_path / "p.npy").astype(np.float64)[:, kind])).tolist()
    r = cli("eval", "run", "--data", "d", "--json", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    assert abs(json.loads(r.stdout)["loss"] - np.mean(losses)) < 2e-6 * max(1, np.mean(losses))
    # a file of an earlier version reads images as it did: rounded to bytes
    m = onnx.load(tmp_path / "run/model.onnx")
    for p in m.metadata_props:
        if p.key == "onnxtrain.image":
            p.value = p.value.replace(',"read":"numbers"', "")
    save(m, tmp_path / "old.onnx")
    old = cli("eval", "old.onnx", "--data", "d", "--json", cwd=tmp_path)
    assert old.returncode == 0 and abs(json.loads(old.stdout)["loss"] - np.mean(losses)) > 1e-6, old.stderr


def test_images_in_front_of_a_model_that_is_there(tmp_path):
    save(cnn(), tmp_path / "cnn.onnx")
    folder(tmp_path / "d")
    r = cli("train", "cnn.onnx", "--data", "d", "--preprocess", "auto", "--resize", "crop", "--scale",
            "0.4:0.5:0.6,0.2:0.25:0.3", "--epochs", "3", "--out", "run", cwd=tmp_path)
    assert r.returncode == 0 and "(v - 102) / 51" in r.stderr and "its middle kept" in r.stderr, r.stderr
    raw = [ppm(tmp_path / f"new/{k}.ppm", size, k % 3, 7 + k) for k, size in enumerate(SIZES)]
    _, scores = predicted(tmp_path)
    session = onnxruntime.InferenceSession(str(tmp_path / "run/model.onnx"))
    name = session.get_inputs()[0].name
    want = np.vstack([session.run(None, {name: np.moveaxis(p, 2, 0)[None].copy()})[0] for p in raw])
    np.testing.assert_allclose(scores, want, rtol=2e-4, atol=2e-5)
    r = cli("train", "--resume", "run", "--epochs", "4", cwd=tmp_path)
    assert r.returncode == 0, r.stderr


def test_damaged_images_are_counted(tmp_path):
    folder(tmp_path / "d")
    (tmp_path / "d/dog/zz.ppm").write_bytes(b"P6\n9 9\n255\nshort")
    (tmp_path / "d/eel/zz.png").write_bytes(b"no image at all")
    r = cli("new", "cnn", "--data", "d", "-o", "m.onnx", cwd=tmp_path)
    assert r.returncode == 4 and "d/dog/zz.ppm" in r.stderr and "--skip-bad" in r.stderr
    r = cli("new", "cnn", "--data", "d", "--skip-bad", "-o", "m.onnx", cwd=tmp_path)
    assert r.returncode == 0 and "2 damaged images of 26 are left out" in r.stderr, r.stderr
    r = cli("train", "m.onnx", "--data", "d", "--skip-bad", "--epochs", "1", "--out", "run", cwd=tmp_path)
    assert r.returncode == 0 and "2 damaged images of 26" in r.stderr and "d/eel/zz.png" in r.stderr
    r = cli("train", "--resume", "run", "--epochs", "2", cwd=tmp_path)  # as the run began
    assert r.returncode == 0 and "2 damaged images" in r.stderr, r.stderr
    r = cli("predict", "run", "--data", "d/dog", "--skip-bad", cwd=tmp_path)
    assert r.returncode == 0 and len(r.stdout.splitlines()) == 9 and "zz.ppm" not in r.stdout


def test_grey_images_and_standard_scale(tmp_path):
    for kind in range(2):
        for k in range(6):
            pixels = np.random.default_rng(k).integers(0, 120, (9, 11)).astype(np.uint8) + np.uint8(100 * kind)
            path = tmp_path / f"d/{kind}/{k}.pgm"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"P5\n11 9\n255\n" + pixels.tobytes())
    r = cli("new", "cnn", "--data", "d", "-o", "m.onnx", cwd=tmp_path)
    assert r.returncode == 0 and "9 x 11, grey" in r.stderr and "per channel: (v - 1" in r.stderr, r.stderr
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    took = session.get_inputs()[0]
    assert took.shape[1] == 1
    assert session.run(None, {took.name: np.zeros((2, 1, 30, 5), np.uint8)})[0].shape == (2, 2)
