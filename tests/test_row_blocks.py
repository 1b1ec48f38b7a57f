"""Batches in blocks of rows, in one process: what whole batches give, and what cannot be cut."""

import shutil
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from row_models import losses, model_text, train, weights, write_files  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("blocks"))


@pytest.mark.parametrize("flags", [("--ignore-index", 2), ("--label-smoothing", 0.1, "--accumulate", 2),
                                   ("--optimizer", "momentum", "--schedule", "cosine", "--clip", 0.3)])
def test_blocks_give_what_whole_batches_give(folder, flags):
    """Means, counts, dropout and clipping are those of the whole batch: only rounding differs."""
    train(folder, "whole", *flags)
    train(folder, "blocks", "--micro-blocks", 5, *flags)
    np.testing.assert_allclose(losses(folder / "whole"), losses(folder / "blocks"), rtol=2e-6)
    whole, blocks = weights(folder / "whole"), weights(folder / "blocks")
    for name in whole:
        np.testing.assert_allclose(whole[name], blocks[name], rtol=1e-3, atol=2e-5, err_msg=name)
    shutil.rmtree(folder / "whole")
    shutil.rmtree(folder / "blocks")


def test_sums_and_weights_are_those_of_the_batch(folder):
    """Losses by sum and with class weights, more blocks than rows, against whole batches."""
    rng = np.random.default_rng(0)
    for loss in (ot.losses.CrossEntropy(reduction="sum"), ot.losses.CrossEntropy(weight=[1, 2, 0.5, 3]),
                 ot.losses.CrossEntropy(weight=[1, 2, 0.5, 3], ignore_index=1)):
        file = ot.prepare(folder / "mlp.onnx", loss=loss, optimizer=ot.SGD(lr=0.05), label="label")
        one, many = ot.Trainer(file, threads=1), ot.Trainer(file, threads=1, micro_blocks=8)
        for rows in (24, 5, 1, 7):
            feeds = {"x": rng.normal(size=(rows, 6)).astype("f4"), "label": rng.integers(0, 4, rows)}
            assert one.step(feeds).loss == pytest.approx(many.step(feeds).loss, rel=1e-6)
        for name in one.state:
            np.testing.assert_allclose(one.state[name], many.state[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_norm_of_the_whole_batch(folder):
    """--batch-norm sync: K blocks give what one whole batch gives, running statistics included, for any rows."""
    rng = np.random.default_rng(5)
    file = ot.prepare(folder / "cnn.onnx", loss="cross_entropy", optimizer=ot.SGD(lr=0.05), label="label")
    one = ot.Trainer(file, threads=1)
    many = {k: ot.Trainer(file, threads=1, micro_blocks=k, batch_norm="sync") for k in (2, 5)}
    local = ot.Trainer(file, threads=1, micro_blocks=2)
    for rows in (24, 24, 3, 7):
        feeds = {"x": rng.normal(3, 2, (rows, 2, 6, 5)).astype("f4"), "label": rng.integers(0, 4, rows)}
        loss = one.step(feeds).loss
        for t in many.values():
            assert t.step(feeds).loss == pytest.approx(loss, rel=2e-6)
        if rows == 24:
            local.step(feeds)
    for name in one.state:
        for t in many.values():
            np.testing.assert_allclose(one.state[name], t.state[name], rtol=1e-4, atol=2e-6, err_msg=name)
    assert not np.allclose(one.state["v1"], local.state["v1"], rtol=1e-3)


def test_norm_of_the_whole_batch_is_exact(folder):
    """The gradient of a step in float64 agrees with that of the whole batch to its last digits."""
    rng = np.random.default_rng(6)
    text = (folder / "norm64.onnx", model_text("norm", np.random.default_rng(1)).replace("float", "double"))
    ot.parse(text[1]).save(text[0])
    file = ot.prepare(text[0], loss="cross_entropy", optimizer=ot.SGD(lr=1.0), label="label")
    feeds = {"x": rng.normal(100, 1, (11, 6)), "label": rng.integers(0, 4, 11)}
    one, many = ot.Trainer(file, threads=1), ot.Trainer(file, threads=1, micro_blocks=4, batch_norm="sync")
    assert many.step(feeds).loss == pytest.approx(one.step(feeds).loss, rel=1e-9)
    for name in one.state:
        np.testing.assert_allclose(one.state[name], many.state[name], rtol=1e-6, atol=1e-9, err_msg=name)


def test_a_lone_row_has_no_statistics(folder):
    """A block of one row in front of a normalisation over [N,C] is refused; sync takes it."""
    file = ot.prepare(folder / "norm.onnx", loss="cross_entropy", optimizer=ot.SGD(lr=0.1), label="label")
    feeds = {"x": np.arange(30, dtype="f4").reshape(5, 6), "label": np.zeros(5, "i8")}
    with pytest.raises(ot.ModelError, match="a block of this batch of 5 rows has one row") as e:
        ot.Trainer(file, micro_blocks=4, threads=1).step(feeds)
    assert e.value.code == "OT1286"
    assert np.isfinite(ot.Trainer(file, micro_blocks=4, threads=1, batch_norm="sync").step(feeds).loss)
    with pytest.raises(ot.UsageError, match="it is local or sync"):
        ot.Trainer(file, micro_blocks=4, batch_norm="global")
    with pytest.raises(ot.UsageError, match="it is float32 or bf16"):
        ot.Trainer(file, micro_blocks=4, reduce_dtype="int8")


def test_outputs_are_put_together(folder):
    """Rows of an output come in order; what is a sum over the batch is one."""
    file = ot.prepare(folder / "mlp.onnx", loss="cross_entropy", optimizer=ot.SGD(lr=0.1), label="label")
    t = ot.Trainer(file, micro_blocks=3, threads=1)
    r = t.step({"x": np.ones((7, 6), "f4"), "label": np.zeros(7, "i8")})
    assert np.isfinite(r.loss) and r.outputs["loss"] == pytest.approx(r.loss)


def test_what_cannot_be_cut_is_named(folder):
    """A loss that is no sum over rows names the node; a file that fixes its batch says so."""
    loss = ot.parse("""
        <ir_version: 8, opset_import: ["": 17]>
        rmse (float[N,4] scores, float[N,4] target) => (float loss)
        {
          d = Sub(scores, target)
          s = Mul(d, d)
          m = ReduceMean<keepdims = 0>(s)
          loss = Sqrt(m)
        }""")
    loss.save(folder / "rmse.onnx")
    file = ot.prepare(folder / "mlp.onnx", loss=str(folder / "rmse.onnx"), optimizer=ot.SGD(lr=0.1))
    feeds = {"x": np.ones((4, 6), "f4"), "target": np.ones((4, 4), "f4")}
    ot.Trainer(file).step(feeds)
    with pytest.raises(ot.ModelError, match=r"(?s)cannot be cut into blocks of rows.*Sqrt.*no sum over rows") as e:
        ot.Trainer(file, micro_blocks=2).step(feeds)
    assert e.value.code == "OT5010"
    fixed = ot.prepare(folder / "mlp.onnx", loss="cross_entropy", batch=4, label="label")
    with pytest.raises(ot.ModelError, match="fixes its batch size"):
        ot.Trainer(fixed, micro_blocks=2).step({"x": np.ones((4, 6), "f4"), "label": np.zeros(4, "i8")})


def test_not_finite_in_one_block_is_traced(folder):
    file = ot.prepare(folder / "mlp.onnx", loss="cross_entropy", optimizer=ot.SGD(lr=0.1), label="label")
    t = ot.Trainer(file, micro_blocks=4, threads=1)
    x = np.ones((8, 6), "f4")
    x[6, 2] = np.nan
    before = {n: np.array(v) for n, v in t.state.items()}
    with pytest.raises(ot.DivergedError, match="loss became NaN"):
        t.step({"x": x, "label": np.zeros(8, "i8")})
    assert all(np.array_equal(before[n], t.state[n]) for n in before)


TIME_FIRST = """
<ir_version: 8, opset_import: ["": 17]>
turned (float[T,N,5] x) => (float[N,2] y) <float[5,2] w = {1,2,3,4,5,6,7,8,9,0}>
{
  mean = ReduceMean<axes = [0], keepdims = 0>(x)
  y = MatMul(mean, w)
}"""


@pytest.mark.parametrize(("declared", "given"), [("T,N,5", (3, 8, 5)), ("3,N,5", (3, 8, 5)), ("3,N,5", (3, 1, 5))])
def test_rows_along_another_dimension(folder, declared, given):
    """The name that the label begins with says which dimension of x counts rows."""
    model = ot.parse(TIME_FIRST.replace("T,N,5", declared))
    file = ot.prepare(model, loss="mse", optimizer=ot.SGD(lr=0.01), label="t")
    one, many = ot.Trainer(file), ot.Trainer(file, micro_blocks=4)
    rng = np.random.default_rng(0)
    for rows in (given[1], 7, 3):  # 3: an empty block
        feeds = {"x": rng.normal(size=(given[0], rows, given[2])).astype("f4"),
                 "t": rng.normal(size=(rows, 2)).astype("f4")}
        assert many.step(feeds).loss == pytest.approx(one.step(feeds).loss, rel=2e-6)
    np.testing.assert_allclose(many.state["w"], one.state["w"], rtol=1e-5)
    with pytest.raises(ot.DataError, match="have different sizes: 8 and 7"):
        many.step({"x": np.ones((3, 8, 5), "f4"), "t": np.ones((7, 2), "f4")})
