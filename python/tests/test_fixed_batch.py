"""Files that were exported for one batch size: opened to any where the graph allows it; otherwise trained,
evaluated and asked for predictions in batches of that size."""

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import onnxtrain as ot

BINARY = Path(__file__).resolve().parents[2] / "build/release/onnxtrain"


def made(text, shapes, seed=0, opset=17):
    m = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    r = np.random.default_rng(seed)
    m.graph.initializer.extend(numpy_helper.from_array((0.4 * r.standard_normal(s)).astype(np.float32), n)
                               for n, s in shapes.items())
    return m


def convolution(batch, target):
    """`target`: where the images become rows; an exporter writes the batch size into it."""
    return made(f"""g (float[{batch},2,6,6] x) => (float[{batch},3] y) <int64[2] to = {{{target}}},
        int64[4] heads = {{{batch if batch != "N" else 0},2,2,16}}> {{
        c = Conv <kernel_shape = [3,3], strides = [1,1]> (x, w, b)  a = Relu (c)  h = Reshape (a, heads)
        f = Reshape (h, to)  y = Gemm <transB = 1> (f, v, d) }}""",
                {"w": (4, 2, 3, 3), "b": (4,), "v": (3, 64), "d": (3,)})


def recurrent():
    """The state at the start is a constant with a row for each row of the batch."""
    return made("""g (float[4,5,3] x) => (float[4,2] y) { t = Transpose <perm = [1,0,2]> (x)  s, h,
        c = LSTM <hidden_size = 6> (t, w, r, b, , h0, c0)
        q = Squeeze (h, zero)  y = MatMul (q, v) }""",
                {"w": (1, 24, 3), "r": (1, 24, 6), "b": (1, 48), "h0": (1, 4, 6), "c0": (1, 4, 6), "v": (6, 2)})


def with_axes(m):
    m.graph.initializer.append(numpy_helper.from_array(np.array([0]), "zero"))
    return m


def data(rows, *shape, classes=3):
    r = np.random.default_rng(3)
    return r.standard_normal((rows, *shape)).astype(np.float32), r.integers(0, classes, rows)


@pytest.mark.parametrize("batch,target", [(1, "1, -1"), (8, "8, 64"), (8, "-1, 64"), (8, "8, -1")])
def test_the_batch_is_opened(batch, target, tmp_path):
    """The same training as with the file that was exported with an open batch."""
    x, y = data(45, 2, 6, 6)
    weights = []
    for m in (convolution("N", "-1, 64"), convolution(batch, target)):
        onnx.checker.check_model(m, full_check=True)
        train = ot.prepare(m, loss="cross_entropy", optimizer=ot.Adam(lr=0.01))
        onnx.checker.check_model(onnx.load_from_string(train.proto()), full_check=True)
        t = ot.Trainer(train)
        t.fit(x, y, epochs=2, batch_size=16)
        t.export(tmp_path / "out.onnx")
        assert ot.load(tmp_path / "out.onnx").info["inputs"][0]["shape"] == ["N", 2, 6, 6]
        assert t.predict(x).shape == (45, 3) and "accuracy" in t.evaluate(x, y)
        weights.append({n: t.state[n].tobytes() for n in "wbvd"})
    assert weights[0] == weights[1]


def test_a_batch_that_cannot_be_opened(tmp_path):
    m, (x, y) = with_axes(recurrent()), data(22, 5, 3, classes=2)
    t = ot.Trainer(ot.prepare(m, loss="cross_entropy", optimizer=ot.SGD(lr=0.1), only=["w", "r", "b", "v"]))
    own = ot.Trainer(ot.prepare(m, loss="cross_entropy", optimizer=ot.SGD(lr=0.1), only=["w", "r", "b", "v"]))
    history = t.fit(x, y, epochs=1, shuffle=False)
    losses = [own.step({"x": x[k:k + 4], "label": y[k:k + 4]}).loss for k in range(0, 20, 4)]  # two rows are left out
    assert t.step_count == 5 and history["loss"][0] == pytest.approx(np.mean(losses), rel=1e-6)
    assert all(np.array_equal(t.state[n], own.state[n]) for n in "wrbv")
    # rows that only fill up a batch count nothing; here a row's result depends on its place in the batch
    s = ot.Session(t.model())
    padded = np.concatenate([x, x[-1:], x[-1:]])
    want = np.concatenate([s.run({"x": padded[k:k + 4]})["y"] for k in range(0, 24, 4)])[:22]
    assert np.array_equal(t.predict(x), want)
    assert t.evaluate(x, y)["accuracy"] == pytest.approx(np.mean(want.argmax(1) == y))
    for give, code in ((lambda: t.fit(x, y, epochs=1, batch_size=8), "OT2115"),
                       (lambda: t.fit(x[:3], y[:3], epochs=1), "OT2115")):
        with pytest.raises(ot.Error) as e:
            give()
        assert e.value.code == code and "4 at a time" in str(e.value).replace("4 rows", "4"), e.value


def run(folder, *arguments):
    return subprocess.run([str(BINARY), *map(str, arguments)], cwd=folder, capture_output=True, text=True)


def test_by_the_command_line(tmp_path):
    x, y = data(45, 2, 6, 6)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    onnx.save(convolution(1, "1, -1"), tmp_path / "one.onnx")
    r = run(tmp_path, "train", "one.onnx", "--data", "d.npz", "--epochs", 2, "--out", "a")
    assert r.returncode == 0 and "made for 1 row at a time; any number now" in r.stderr and "batch 32" in r.stderr, (
        r.stderr
    )
    x, y = data(22, 5, 3, classes=2)
    np.savez(tmp_path / "s.npz", x=x, y=y)
    onnx.save(with_axes(recurrent()), tmp_path / "four.onnx")
    flags = ["--data", "s.npz", "--only", "w", "--valid", 0, "--out", "b"]
    r = run(tmp_path, "train", "four.onnx", "--epochs", 2, *flags)
    assert r.returncode == 0 and "batch 4, 2 epochs = 10 steps" in r.stderr and "2 rows are left out" in r.stderr, (
        r.stderr
    )
    assert [json.loads(line)["steps"] for line in (tmp_path / "b/metrics.jsonl").read_text().splitlines()] == [5, 5]
    assert run(tmp_path, "train", "--resume", "b", "--epochs", 3).returncode == 0
    assert run(tmp_path, "eval", "b", "--data", "s.npz").returncode == 0
    assert run(tmp_path, "predict", "b", "--data", "s.npz", "-o", "p.npy").returncode == 0
    assert np.load(tmp_path / "p.npy").shape == (22, 2)
    r = run(tmp_path, "train", "four.onnx", "--epochs", 2, "--batch", 8, *flags)
    assert r.returncode == 4 and "error[OT2115]" in r.stderr and "export the model with an open batch" in r.stderr, (
        r.stderr
    )
