"""Augmentation: in the training form only, the same bits again and again, each change as it is described."""

import hashlib
import sys

import numpy as np
import onnx
import onnx.helper as h
import pytest
from onnx import TensorProto as T

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, cnn, save  # noqa: E402

ALL = "flip,crop:2,rotate:10,color:0.2,cutout:3,mixup:0.2"


def weighted_sum(size=6, kind=T.FLOAT):
    """The model's output is a parameter per pixel times the image: its gradient is the image that training saw."""
    nodes = [h.make_node("Cast", ["x"], ["f"], to=1), h.make_node("Mul", ["f", "w"], ["p"]),
             h.make_node("ReduceSum", ["p", "axes"], ["y"], keepdims=0)]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", kind, ["N", 3, size, size])],
                     [h.make_tensor_value_info("y", T.FLOAT, ["N"])],
                     [onnx.numpy_helper.from_array(np.zeros((3, size, size), np.float32), "w"),
                      onnx.numpy_helper.from_array(np.array([1, 2, 3], np.int64), "axes")])
    return ot.load(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString())


def seen(x, augment, steps=1, seed=0, **options):
    """What the model was shown in every step: with SGD of rate 1 on mean(y), w changes by -mean(image)."""
    kind = T.UINT8 if x.dtype == np.uint8 else T.FLOAT
    model = weighted_sum(x.shape[-1], kind)
    t = ot.Trainer(ot.prepare(model, loss="output", optimizer=ot.SGD(lr=1.0), augment=augment, **options), seed=seed)
    out = []
    for _ in range(steps):
        before = t.state["w"].copy()
        t.step({"x": x})
        out.append(before - t.state["w"])
    return np.array(out)


def images(n=1, size=6, seed=0, dtype=np.float32):
    x = np.random.default_rng(seed).integers(1, 200, (n, 3, size, size))
    return x.astype(dtype)


def test_flip_is_a_mirror_image_half_of_the_time():
    x = images()
    got = seen(x, "flip", 60)
    same = [np.array_equal(g, x[0]) for g in got]
    mirrored = [np.array_equal(g, x[0, :, :, ::-1]) for g in got]
    assert all(a != b for a, b in zip(same, mirrored)) and 15 < sum(same) < 45
    assert all(np.array_equal(g, x[0]) for g in seen(x, "flip:1e-9", 5))
    assert all(np.array_equal(g, x[0, :, :, ::-1]) for g in seen(x, "flip:1", 5))


def test_crop_moves_by_whole_pixels():
    x = images(dtype=np.uint8)
    padded = np.pad(x[0], ((0, 0), (2, 2), (2, 2)))
    places = {padded[:, i:i + 6, j:j + 6].astype(np.float32).tobytes(): (i, j) for i in range(5) for j in range(5)}
    found = [places[g.tobytes()] for g in seen(x, "crop:2", 120)]  # KeyError: something else
    assert {i for i, _ in found} == {j for _, j in found} == set(range(5))
    assert len(set(found)) > 18


def test_rotate_by_a_right_angle_and_back():
    x = images()
    for g in seen(x, "rotate:180", 20):
        assert g.max() < 201 and g.min() >= 0
    torch = pytest.importorskip("torch")
    got = seen(x, "rotate:30", 40)
    best = []
    for g in got:  # some angle between -30 and 30 degrees explains the image
        error = []
        for angle in np.deg2rad(np.linspace(-30, 30, 601)):
            c, s = np.cos(angle), np.sin(angle)
            theta = torch.tensor([[[c, s, 0], [-s, c, 0]]], dtype=torch.float32)
            grid = torch.nn.functional.affine_grid(theta, x.shape, align_corners=False)
            want = torch.nn.functional.grid_sample(torch.from_numpy(x), grid, align_corners=False).numpy()[0]
            error.append(np.abs(want - g).max())
        best.append((min(error), int(np.argmin(error))))
    assert max(e for e, _ in best) < 1.5  # a step of 0.1 degrees
    angles = [k for _, k in best]
    assert min(angles) < 100 and max(angles) > 500


def test_color_changes_brightness_contrast_and_saturation():
    x = images()
    for g in seen(x, "color:0.3", 10):
        a = np.vstack([x[0].ravel(), np.broadcast_to(x[0].mean(0), x[0].shape).ravel(), np.ones(x[0].size)]).T
        solution, *_ = np.linalg.lstsq(a.astype(np.float64), g.ravel(), rcond=None)
        np.testing.assert_allclose(a @ solution, g.ravel(), atol=1e-3)  # of pixel, grey pixel and constant
        assert not np.allclose(g, x[0])
        assert 0.7 * 0.99 < g.mean() / x.mean() < 1.3 * 1.01


def test_cutout_clears_one_square():
    x = images()
    for g in seen(x, "cutout:3", 40):
        gone = (g == 0).all(0)
        rows, columns = np.where(gone.any(1))[0], np.where(gone.any(0))[0]
        assert 2 <= len(rows) <= 3 and 2 <= len(columns) <= 3 and gone.sum() == len(rows) * len(columns)
        assert np.array_equal(g[:, ~gone], x[0][:, ~gone])


def test_mixup_mixes_rows_and_targets():
    x = np.eye(4, dtype=np.float32)
    w = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    g = h.make_graph([h.make_node("Flatten", ["x"], ["f"]), h.make_node("MatMul", ["f", "w"], ["logits"])], "g",
                     [h.make_tensor_value_info("x", T.FLOAT, ["N", 1, 2, 2])],
                     [h.make_tensor_value_info("logits", T.FLOAT, ["N", 3])], [onnx.numpy_helper.from_array(w, "w")])
    model = ot.load(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString())
    t = ot.Trainer(ot.prepare(model, optimizer=ot.SGD(lr=0.0), augment="mixup:0.5"), seed=3)
    y = np.array([0, 1, 2, 1])
    target = np.eye(3)[y]

    def loss(share):
        rows = share * x + (1 - share) * np.roll(x, -1, 0)
        logits = rows @ w.astype(np.float64)
        logp = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        return -((share * target + (1 - share) * np.roll(target, -1, 0)) * logp).sum(1).mean()

    losses = [t.step({"x": x.reshape(4, 1, 2, 2), "label": y}).loss for _ in range(40)]
    shares = np.linspace(0, 1, 20001)
    known = np.array([loss(s) for s in shares])
    assert max(np.abs(known - value).min() for value in losses) < 1e-4
    assert len({round(v, 5) for v in losses}) > 30
    plain = ot.Session(model).run({"x": x.reshape(4, 1, 2, 2)})["logits"]
    logp = plain - np.log(np.exp(plain).sum(1, keepdims=True))
    valid = t.evaluate({"x": x.reshape(4, 1, 2, 2)}, y) if hasattr(t, "evaluate") else None
    if valid is not None:  # evaluation mixes nothing
        assert abs(valid["loss"] - (-(target * logp).sum(1).mean())) < 1e-5


def test_rows_are_changed_on_their_own():
    x = np.repeat(images(), 16, 0)
    mean = seen(x, "flip", 1)[0]
    assert not np.allclose(mean, x[0]) and not np.allclose(mean, x[0, :, :, ::-1])


def test_bytes_stay_bytes():
    x = images(dtype=np.uint8)
    for g in seen(x, "rotate:20,color:1", 10):
        assert np.array_equal(g, np.round(g)) and g.min() >= 0 and g.max() <= 255


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def work(tmp_path):
    save(cnn(), tmp_path / "cnn.onnx")
    r = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=r.normal(size=(96, 3, 8, 8)).astype(np.float32), y=r.integers(0, 3, 96))
    return tmp_path


def train(work, out, *more):
    r = cli("train", "cnn.onnx", "--data", "d.npz", "--augment", ALL, "--out", out, *more, cwd=work)
    assert r.returncode == 0, r.stderr
    return r


def weights(path):
    return {i.name: onnx.numpy_helper.to_array(i).tobytes() for i in onnx.load(path).graph.initializer}


def test_same_bits_on_any_number_of_threads_and_after_a_resume(work):
    r = train(work, "one", "--epochs", "4", "--threads", "1")
    assert "augment" in r.stderr and "flip:0.5, crop:2, rotate:10, color:0.2, cutout:3, mixup:0.2" in r.stderr
    train(work, "two", "--epochs", "4", "--threads", "2")
    train(work, "half", "--epochs", "2")
    r = cli("train", "--resume", "half", "--epochs", "4", cwd=work)
    assert r.returncode == 0, r.stderr
    last = "checkpoints/last.train.onnx"
    assert weights(work / "one" / last) == weights(work / "two" / last) == weights(work / "half" / last)
    plain = cli("train", "cnn.onnx", "--data", "d.npz", "--epochs", "4", "--out", "plain", cwd=work)
    assert plain.returncode == 0 and weights(work / "plain" / last) != weights(work / "one" / last)


def test_the_exported_model_has_none_of_it(work):
    train(work, "run", "--epochs", "1")
    ops = [n.op_type for n in onnx.load(work / "run/model.onnx").graph.node]
    assert ops == ["Conv", "BatchNormalization", "Relu", "MaxPool", "Flatten", "Dropout", "Gemm"]
    a, b = (cli("eval", "run", "--data", "d.npz", "--json", cwd=work).stdout for _ in range(2))
    assert a == b and '"loss"' in a


def test_blocks_of_rows_are_changed_alike(work):
    last = "checkpoints/last.train.onnx"
    digests = set()
    save(no_norm(), work / "cnn.onnx")
    for out, more in (("a", ()), ("b", ("--threads", "1"))):
        r = cli("train", "cnn.onnx", "--data", "d.npz", "--augment", ALL, "--micro-blocks", "4", "--epochs", "2",
                "--out", out, *more, cwd=work)
        assert r.returncode == 0, r.stderr
        digests.add(str(sorted(weights(work / out / last).items())))
    assert len(digests) == 1
    first = cli("train", "cnn.onnx", "--data", "d.npz", "--augment", ALL, "--steps", "1", "--out", "c", "--json",
                cwd=work)
    cut = cli("train", "cnn.onnx", "--data", "d.npz", "--augment", ALL, "--steps", "1", "--micro-blocks", "2",
              "--out", "e", "--json", cwd=work)
    a, b = (onnx.load(work / k / last) for k in "ce")
    for x, y in zip(a.graph.initializer, b.graph.initializer):
        np.testing.assert_allclose(onnx.numpy_helper.to_array(x), onnx.numpy_helper.to_array(y), rtol=1e-4, atol=1e-6)
    assert first.returncode == cut.returncode == 0


def no_norm():
    m = cnn()
    nodes = [n for n in m.graph.node if n.op_type not in ("BatchNormalization", "Dropout")]
    for n in nodes:
        n.input[:] = [{"b": "c", "d": "f"}.get(v, v) for v in n.input]
    used = {v for n in nodes for v in n.input}
    kept = [i for i in m.graph.initializer if i.name in used]
    del m.graph.node[:], m.graph.initializer[:]
    m.graph.node.extend(nodes)
    m.graph.initializer.extend(kept)
    return m


def test_a_graph_of_ones_own(work):
    g = h.make_graph([h.make_node("RandomUniformLike", ["image"], ["noise"], "noise", low=-1.0, high=1.0),
                      h.make_node("Add", ["image", "noise"], ["changed"])], "noise",
                     [h.make_tensor_value_info("image", T.FLOAT, ["N", 3, 6, 6])],
                     [h.make_tensor_value_info("changed", T.FLOAT, ["N", 3, 6, 6])])
    path = work / "noise.onnx"
    save(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)
    x = images()
    a, b = seen(x, str(path), 2)
    assert 0 < np.abs(a - x[0]).max() <= 1 and not np.array_equal(a, b)
    assert np.array_equal(seen(x, ["flip:1", path], 2), seen(x, ["flip:1", path], 2))
    assert not np.array_equal(seen(x, path, 1), seen(x, path, 1, seed=1))
