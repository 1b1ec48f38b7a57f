"""`.keras` and `.h5` with their training, the callback, `convert`; damaged and hostile files."""

import json
import os
import pickle
import resource
import subprocess
import zipfile

import h5py
import keras
import numpy as np
import pytest

import backends
import onnxtrain as ot
import round_trip as trips
from onnxtrain.convert import main as convert
from onnxtrain.keras import files


@pytest.fixture(scope="module")
def trained():
    model, x, y = trips.fresh("cnn_batchnorm", "adamw")
    trips.train(model, x, y, 3)
    return model, x, y


def run(file, x, y, steps=2):
    trainer = ot.Trainer(file)
    return [trainer.step(trips.feeds(trainer, x, y)).loss for _ in range(steps)]


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_files_resume_training(trained, tmp_path, suffix):
    model, x, y = trained
    before = trips.state(model)
    path = str(tmp_path / ("model" + suffix))
    model.save(path)
    model.compile(model.optimizer, model.loss)  # saving as .h5 takes the optimizer out of the compile config
    loaded = files.load(path)
    assert trips.apart(trips.state(loaded), before)[0] == 0
    out = str(tmp_path / "model.train.onnx")
    assert convert([path, out, "--verify"]) == 0
    want = trips.train(model, x, y, 2)
    assert run(out, x, y) == pytest.approx(want, rel=1e-5)
    for v, a in zip(trips.variables(model), before):
        v.assign(a)
    back = str(tmp_path / "back.keras")
    assert convert([out, back]) == 0
    assert trips.apart(trips.state(keras.saving.load_model(back)), before)[0] == 0


def test_without_tensorflow(trained, tmp_path):
    """An interpreter that has no TensorFlow: Keras' numpy backend reads the file with its optimizer."""
    model, x, y = trained
    path, out = str(tmp_path / "m.keras"), str(tmp_path / "m.train.onnx")
    model.save(path)
    subprocess.run([backends.interpreter(), "-m", "onnxtrain.convert", path, out], check=True,
                   env=backends.environment("numpy"))
    assert run(out, x, y, 1) == pytest.approx(trips.train(model, x, y, 1), rel=1e-4)
    info = _info(out)
    assert info["backend"] == "numpy" and "finite differences" in info["checked"]


def _info(path):
    from onnxtrain.graph import read_graphs

    return json.loads(read_graphs(ot.load(path)).metadata["onnxtrain.keras"])


def test_callback(tmp_path):
    model, x, y = trips.fresh("mlp", "cosine")
    path = str(tmp_path / "m-{epoch}.train.onnx")
    model.fit(x, y, batch_size=len(x), epochs=3, verbose=0, shuffle=False,
              callbacks=[ot.keras.Checkpoint(path, inputs=x, targets=y)])
    assert sorted(os.listdir(tmp_path)) == [f"m-{k}.train.onnx" for k in (1, 2, 3)]
    last, file = trips.state(model), ot.load(path.format(epoch=3))
    for a, b in zip(ot.keras_weights(file), last):
        assert np.array_equal(a, b)
    assert int(np.asarray(ot.Trainer(file).state["T"])) == 3
    assert ot.Trainer(file).lr == pytest.approx(float(model.optimizer.learning_rate))
    assert run(file, x, y) == pytest.approx(trips.train(model, x, y, 2), rel=1e-5)


def test_names_of_checkpoints(tmp_path):
    """What fit logs may stand in the path, as in Keras' own callback."""
    model, x, y = trips.fresh("mlp", "sgd")
    path = str(tmp_path / "m-{epoch:02d}-{batch}-{loss:.0f}.train.onnx")
    model.fit(x, y, batch_size=len(x), verbose=0, callbacks=[ot.keras.Checkpoint(path, every=1)])
    assert len(list(tmp_path.glob("m-01-1-*.train.onnx"))) == 1
    with pytest.raises(ot.UsageError, match="val_loss, which fit does not log") as e:
        model.fit(x, y, verbose=0, callbacks=[ot.keras.Checkpoint(str(tmp_path / "{val_loss}.train.onnx"))])
    assert e.value.code == "OT1606"


def test_verify_of_a_step_with_random_numbers_inside_a_layer(tmp_path, capsys):
    i = keras.Input((5, 4))
    model = keras.Model(i, keras.layers.MultiHeadAttention(2, 3, dropout=0.4)(i, i))
    model.compile("sgd", "mse")
    model.save(tmp_path / "m.keras")
    assert convert([str(tmp_path / "m.keras"), str(tmp_path / "m.train.onnx"), "--verify"]) == 0
    assert "draws random numbers" in capsys.readouterr().err


def test_a_lambda_is_not_run(tmp_path):
    marker = tmp_path / "ran"
    model = keras.Sequential([keras.Input((3,)), keras.layers.Lambda(lambda v, m=str(marker): open(m, "w") and v)])
    path = str(tmp_path / "lambda.keras")
    model.save(path)
    os.path.exists(marker) and os.unlink(marker)
    with pytest.raises(ot.ModelError, match="bytecode") as e:
        files.load(path)
    assert e.value.code == "OT1716" and not marker.exists()


@keras.saving.register_keras_serializable()
class Known(keras.layers.Dense):
    pass


class Unknown(keras.layers.Dense):
    pass


def test_own_classes(tmp_path):
    for cls in (Known, Unknown):
        model = keras.Sequential([keras.Input((3,)), cls(2)])
        model.compile("sgd", "mse")
        model.save(tmp_path / "own.keras")
        if cls is Known:
            assert ot.from_keras(files.load(tmp_path / "own.keras")).trainable
        else:
            with pytest.raises(ot.UsageError, match="Unknown, which is not registered"):
                files.load(tmp_path / "own.keras")


def test_reading_leaves_no_variables_behind(tmp_path):
    """Keras would initialize them again in the next scope of its own."""
    from keras.src.backend.common import global_state

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    model.save(tmp_path / "m.keras")
    global_state.set_global_attribute("uninitialized_variables", [])
    files.load(tmp_path / "m.keras")
    assert not global_state.get_global_attribute("uninitialized_variables")


def rewritten(source, target, name, data):
    with zipfile.ZipFile(source) as z, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for n in z.namelist():
            out.writestr(n, data if n == name else z.read(n))


def test_hostile_files(trained, tmp_path):
    good = str(tmp_path / "good.keras")
    trained[0].save(good)
    whole = open(good, "rb").read()
    cases = {"cut.keras": whole[:len(whole) // 2], "empty.keras": b"", "text.keras": b"hello", "empty.h5": b"",
             "cut.h5": b"\x89HDF\r\n\x1a\n" + b"\0" * 100}
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
    rewritten(good, tmp_path / "json.keras", "config.json", b"{")
    rewritten(good, tmp_path / "bomb.keras", "model.weights.h5", b"\0" * (64 << 20))
    rewritten(good, tmp_path / "nothing.keras", "model.weights.h5", b"")
    with h5py.File(tmp_path / "linked.h5", "w") as h:
        h["x"] = h5py.ExternalLink("/etc/passwd", "/")
    with h5py.File(tmp_path / "huge.h5", "w") as h:
        h.create_dataset("x", (1 << 40,), "f4", chunks=(1 << 20,))
    with zipfile.ZipFile(tmp_path / "outside.keras", "w") as z:
        z.writestr("../config.json", "{}")
    names = [*cases, "json.keras", "bomb.keras", "nothing.keras", "linked.h5", "huge.h5", "outside.keras"]
    for name in names:
        with pytest.raises(ot.ModelError) as e:
            files.load(str(tmp_path / name))
        assert e.value.code == "OT1717", name
    module = json.dumps({"module": "os", "class_name": "system", "config": {"command": "true"},
                         "registered_name": None})
    rewritten(good, tmp_path / "os.keras", "config.json", module.encode())
    with pytest.raises(ot.UsageError, match="os.system, which is not registered"):
        files.load(str(tmp_path / "os.keras"))


def test_files_of_keras_2(trained, tmp_path):
    """Read, or refused by name."""
    trained[0].save(tmp_path / "new.keras")
    rewritten(tmp_path / "new.keras", tmp_path / "old.keras", "metadata.json",
              json.dumps({"keras_version": "2.15.0", "date_saved": ""}).encode())
    trained[0].save(tmp_path / "old.h5")
    with h5py.File(tmp_path / "old.h5", "a") as h:
        h.attrs["keras_version"] = "2.15.0"
    for name in ("old.keras", "old.h5"):
        with pytest.raises(ot.UsageError, match="written by Keras 2.15.0") as e:
            files.load(tmp_path / name)
        assert e.value.code == "OT1715"


def changed(path, to, edit=None, weights=None):
    """The .keras file with another config or other weights, packed."""
    with zipfile.ZipFile(path) as z, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as out:
        for name in z.namelist():
            data = z.read(name)
            if name == "config.json" and edit is not None:
                config = json.loads(data)
                edit(config)
                data = json.dumps(config).encode()
            out.writestr(name, weights if weights is not None and name == "model.weights.h5" else data)
    return to


@pytest.mark.parametrize("kind", ["units", "bomb", "eval", "pickle"])
def test_more_hostile_files(trained, tmp_path, kind):
    model, *_ = trained
    good, bad, marker = tmp_path / "good.keras", tmp_path / "bad.keras", tmp_path / "ran"
    model.save(good)

    def layer(config):
        return next(c for c in config["config"]["layers"] if "units" in c["config"])["config"]

    def large(config):
        layer(config)["units"] = 10**9

    def called(config):
        layer(config)["activation"] = {"class_name": "function", "config": "system", "module": "os",
                                       "registered_name": "system"}

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {marker}",)

    made = {"units": lambda: changed(good, bad, large), "eval": lambda: changed(good, bad, called),
            "bomb": lambda: changed(good, bad, weights=bytes(1 << 27)),
            "pickle": lambda: changed(good, bad, weights=pickle.dumps(Evil()))}[kind]()
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ot.Error) as e:
        files.load(str(made))
    assert e.value.code == ("OT1715" if kind == "eval" else "OT1717")
    assert not marker.exists()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start < 1 << 20, "more than a gibibyte was taken"
