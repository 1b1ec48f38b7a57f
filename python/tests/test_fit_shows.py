"""`fit` talks: progress, callbacks, curves, what a notebook shows, tables with the target named."""

import io
import pathlib
import sys

import numpy as np
import pytest

import onnxtrain as ot
from onnxtrain.progress import Progress

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "support"))
from cli_models import mlp, save, table  # noqa: E402


@pytest.fixture
def model(tmp_path):
    return ot.load(save(mlp(), tmp_path / "m.onnx")).compile(optimizer=ot.Adam(lr=1e-2))


X, Y = table(200)


def test_lines_when_nobody_looks(model, capsys):
    model.fit(X, Y, valid=0.2, epochs=2, verbose=1)
    lines = [line for line in capsys.readouterr().err.splitlines() if "samples/s" in line]  # beside warnings
    assert [line.split()[0] for line in lines] == ["1/2", "2/2"]
    assert "valid accuracy" in lines[0] and lines[0].rstrip().endswith("* best") and "samples/s" in lines[1]
    model.fit(X, Y, epochs=1)
    model.fit(X, Y, epochs=1, verbose=0)
    assert capsys.readouterr().err == ""  # a pipe: nothing unless asked for
    with pytest.raises(ot.UsageError, match="verbose is 7"):
        model.fit(X, Y, epochs=1, verbose=7)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bar_in_a_terminal():
    shown = Terminal()
    bar = Progress(1, epochs=3, stream=shown)
    bar.on_progress(0, {"batch": 5, "batches": 10, "loss": 0.5, "samples_per_second": 1234.0})
    bar.on_epoch_end(0, {"seconds": 1.0, "loss": 0.4, "valid_accuracy": 0.9, "samples_per_second": 1200.0,
                         "best": True})
    text = shown.getvalue()
    assert text.startswith("\r  1/3 [############............]  50 %  loss 0.5000  1,234/s")
    assert text.splitlines()[-1].strip().endswith("valid accuracy 90.00 %   1,200 samples/s   * best")
    assert Progress.wanted(Terminal()) == 1 and Progress.wanted(io.StringIO()) == 0


def test_progress_inside_an_epoch(model):
    """The library tells while an epoch runs; the same numbers come out of it."""
    told = []
    watch = ot.callbacks.LambdaCallback(on_progress=lambda epoch, logs: told.append((epoch, logs)))
    x, y = np.tile(X, (40, 1)), np.tile(Y, 40)
    with_callback = model.fit(x, y, epochs=2, batch_size=2, callbacks=watch)["loss"]
    assert told and all(0 < logs["batch"] <= logs["batches"] == 4000 and logs["loss"] >= 0 for _, logs in told)
    again = ot.load(model.proto())
    assert again is not model and len(with_callback) == 2


def test_callbacks_in_order(model):
    heard = []

    class Listener(ot.callbacks.Callback):
        def on_train_begin(self, logs=None):
            heard.append("begin")

        def on_epoch_begin(self, epoch, logs=None):
            heard.append(f"epoch {epoch}")

        def on_epoch_end(self, epoch, logs=None):
            assert self.model is model and self.trainer.step_count > 0
            heard.append(f"end {epoch} {sorted(k for k in logs if 'loss' in k)}")
            self.stop_training = epoch == 1

        def on_train_end(self, logs=None):
            heard.append("over")

    history = model.fit(X, Y, valid=0.2, epochs=5, callbacks=[Listener()])
    both = "['loss', 'valid_loss']"
    assert heard == ["begin", "epoch 0", f"end 0 {both}", "epoch 1", f"end 1 {both}", "over"] and len(history) == 2


def test_callbacks_of_the_package(model, tmp_path):
    c = ot.callbacks
    rates = []
    watch = c.LambdaCallback(on_epoch_end=lambda epoch, logs: rates.append(logs["lr"]))
    model.fit(X, Y, valid=0.2, epochs=3, callbacks=[
        c.LearningRateScheduler(lambda epoch, lr: [1e-2, 5e-3, 1e-3][epoch]), c.CSVLogger(tmp_path / "log.csv"), watch])
    assert rates == pytest.approx([1e-2, 5e-3, 1e-3])
    rows = (tmp_path / "log.csv").read_text().splitlines()
    assert rows[0].startswith("epoch,") and "valid_accuracy" in rows[0] and len(rows) == 4
    # nothing improves by 100: the rate falls after every epoch, and the training stops at the third
    model.trainer().lr = 1e-2
    history = model.fit(X, Y, valid=0.2, epochs=9, callbacks=[
        c.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=100),
        c.EarlyStopping("loss", 2, min_delta=100)])
    assert len(history) == 3 and model.trainer().lr == pytest.approx(2.5e-3)


def test_checkpoints_of_a_fit(model, tmp_path):
    at, tmp_path = ot.callbacks.ModelCheckpoint, tmp_path / "saved"
    tmp_path.mkdir()
    model.fit(X, Y, valid=0.2, epochs=3, callbacks=[
        at(tmp_path / "m-{epoch:02d}-{valid_loss:.3f}.onnx"), at(tmp_path / "best.onnx", "loss", save_best_only=True),
        at(tmp_path / "last.onnx")])
    saved = sorted(p.name for p in tmp_path.iterdir())
    assert [n[:4] for n in saved] == ["best", "last", "m-01", "m-02", "m-03"]
    np.testing.assert_allclose(ot.load(tmp_path / "last.onnx").predict(X), model.predict(X), rtol=1e-5, atol=1e-6)
    with pytest.raises(ot.UsageError, match="names 'nothing'; there are best, epoch, ") as e:
        model.fit(X, Y, epochs=1, callbacks=[at("m-{nothing}.onnx")])
    assert e.value.code == "OT4510" and "{epoch:02d}" in e.value.hint
    with pytest.raises(ot.UsageError, match="its name says .keras"):
        at("m.keras")


def test_mistakes_in_callbacks(model):
    with pytest.raises(ot.UsageError, match="no 'valid_f9' to watch; there are best, epoch, ") as e:
        model.fit(X, Y, valid=0.2, epochs=1, callbacks=[ot.callbacks.EarlyStopping("valid_f9")])
    assert e.value.code == "OT4510"
    with pytest.raises(ot.UsageError, match="there is no 'val_loss'") as e:
        model.fit(X, Y, epochs=1, callbacks=[ot.callbacks.EarlyStopping("val_loss")])
    assert "valid=0.1" in e.value.hint
    with pytest.raises(ot.UsageError, match="a callback has no 'on_batch'"):
        ot.callbacks.LambdaCallback(on_batch=print)
    with pytest.raises(ot.UsageError, match="is no callback"):
        model.fit(X, Y, epochs=1, callbacks=[print])


def test_history_and_model_in_a_notebook(model):
    history = model.fit(X, Y, valid=0.2, epochs=3)
    html = history._repr_html_()
    assert html.count("<tr") == 4 and html.count("<polyline") == 2 and "valid accuracy" in html
    assert "parameters" in model._repr_html_() and "<td>input</td><td>x</td>" in model._repr_html_()
    assert list(history.curves()) == ["loss", "valid accuracy", "learning rate"]


def test_plot(model, monkeypatch):
    history = model.fit(X, Y, valid=0.2, epochs=2)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ot.UsageError, match="needs matplotlib") as e:
        history.plot()
    assert e.value.code == "OT4512" and e.value.hint == "pip install matplotlib"
    monkeypatch.undo()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = history.plot()
    assert [a.get_title() for a in figure.axes] == ["loss", "valid accuracy", "learning rate"]
    assert [len(a.lines) for a in figure.axes] == [3, 2, 1]


def test_frame_with_the_target_named(model, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(kind=Y)
    by_name = model.fit(frame, "kind", epochs=3, batch_size=16)["loss"]
    other = ot.load(save(mlp(), tmp_path / "n.onnx")).compile(optimizer=ot.Adam(lr=1e-2))
    assert by_name == other.fit(X, Y, epochs=3, batch_size=16)["loss"]
    assert model.evaluate(frame, "kind") == other.evaluate(X, Y)
    assert np.array_equal(model.predict(frame[list("dcba")]), other.predict(X))  # by name, whatever the order
    with pytest.raises(ot.DataError, match="has no column 'kin'; it has 'a', 'b', 'c', 'd', 'kind'"):
        model.fit(frame, "kin", epochs=1)


def test_hugging_face_dataset(model, tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = datasets.table.InMemoryTable.from_pydict({"x": X.tolist(), "label": Y.tolist()})
    data = datasets.Dataset(rows, fingerprint="made-here")  # some versions of dill cannot make the fingerprint
    by_name = model.fit(data, "label", epochs=2, batch_size=16)["loss"]
    other = ot.load(save(mlp(), tmp_path / "n.onnx")).compile(optimizer=ot.Adam(lr=1e-2))
    assert by_name == other.fit(X, Y, epochs=2, batch_size=16)["loss"]
    with pytest.raises(ot.DataError, match="DatasetDict with the splits train"):
        model.fit(datasets.DatasetDict({"train": data}), "label", epochs=1)


def test_batches_where_arrays_may_stand(tmp_path):
    batches = [(X[k:k + 32], Y[k:k + 32]) for k in range(0, len(X), 32)]

    class Loader:  # as PyTorch's: gone through again and again
        def __iter__(self):
            return iter(batches)

    model = ot.load(save(mlp(), tmp_path / "m.onnx")).compile(optimizer=ot.Adam(lr=1e-2))
    history = model.fit(Loader(), valid=Loader(), epochs=3)
    assert history["valid_loss"][-1] < history["valid_loss"][0]
    assert model.evaluate(Loader()) == model.evaluate(X, Y)
    np.testing.assert_array_equal(model.predict(Loader()), model.predict(X))
    np.testing.assert_array_equal(model.predict(b[0] for b in batches), model.predict(X))
    with pytest.raises(ot.DataError, match="gave no batch"):
        model.evaluate(iter([]))


def test_new_takes_arrays_and_lists_of_targets():
    assert ot.new("mlp", X, Y, verbose=False).outputs == ot.new("mlp", (X, Y), verbose=False).outputs == ["logits"]
    for data in (X, [(X, Y)].__iter__()):
        with pytest.raises(ot.UsageError, match="a new model needs data") as e:
            ot.new("mlp", data)
        assert "(x, y)" in e.value.hint
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame({"a": X[:, 0], "y": X[:, 1], "heat": 3 * X[:, 0], "cool": 900 * X[:, 1]})
    model = ot.new("linear", table, target=["heat", "cool"], verbose=False)
    assert model.outputs == ["heat", "cool"]
    model.compile(optimizer=ot.Adam(lr=1e-2)).fit(table, ["heat", "cool"], epochs=100)
    for name, values in model.predict(table).items():
        assert 1 - ((values[:, 0] - table[name]) ** 2).mean() / table[name].var() > 0.98, name
    one = ot.new("mlp", table, target="heat", verbose=False)  # its feature y is not the target
    one.fit(table[["a", "y", "heat"]].assign(cool=table["cool"]), "heat", epochs=60)
    assert one.evaluate(table, table["heat"])["r2"] > 0.9
    with pytest.raises(ot.UsageError, match="target is of type int"):
        ot.new("mlp", table, target=5)
