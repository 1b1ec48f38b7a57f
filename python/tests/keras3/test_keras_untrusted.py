"""What a file may name or ask for: nothing of it is run, imported, or allocated beyond its size."""

import io
import json
import resource
import zipfile

import h5py
import keras
import pytest

import onnxtrain as ot
from onnxtrain.keras import files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("untrusted")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "relu"), keras.layers.Dense(2)])
    model.compile("adam", "mse")
    model.save(made / "good.keras")
    model.save(made / "good.h5")
    return made


def edited(folder, edit=None, weights=None):
    """The file with another config or other weights."""
    with zipfile.ZipFile(folder / "good.keras") as z, zipfile.ZipFile(folder / "bad.keras", "w") as out:
        config, data = json.loads(z.read("config.json")), io.BytesIO(z.read("model.weights.h5"))
        config = edit(config) if edit is not None else config
        if weights is not None:
            with h5py.File(data, "a") as h:
                weights(h)
        out.writestr("config.json", json.dumps(config))
        out.writestr("model.weights.h5", data.getvalue())
        out.writestr("metadata.json", z.read("metadata.json"))
    return folder / "bad.keras"


def activation(**said):
    def edit(config):
        config["config"]["layers"][1]["config"]["activation"] = {"registered_name": None, **said}
        return config

    return edit


def inserted(**said):
    def edit(config):
        config["config"]["layers"].insert(1, {"registered_name": None, **said})
        return config

    return edit


def units(number):
    def edit(config):
        config["config"]["layers"][1]["config"]["units"] = number
        return config

    return edit


CONFIGS = {
    "download": (activation(module="keras.utils", class_name="function", config="get_file"), "OT1715",
                 "keras.utils.get_file"),
    "setting": (activation(module="keras.config", class_name="enable_unsafe_deserialization", config={}), "OT1715",
                "no part of a model"),
    "other name": (inserted(module="keras", class_name="layers.Lambda", config={"name": "l", "function": "x"}),
                   "OT1716", "bytecode"),
    "torch": (inserted(module="keras.layers", class_name="TorchModuleWrapper", config={"name": "l", "module": "x"}),
              "OT1716", "TorchModuleWrapper"),
    "list": (lambda config: [1, 2], "OT1717", "no model"),
    "nothing": (lambda config: None, "OT1717", "no model"),
    "negative": (units(-3), "OT1715", "-3"),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_configs(folder, kind):
    edit, code, word = CONFIGS[kind]
    with pytest.raises(ot.Error, match=word) as e:
        files.load(edited(folder, edit))
    assert e.value.code == code


def test_weights_that_a_broken_config_asks_for(folder):
    """Keras allocates the first layer's weights before it finds that the second one does not fit."""
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ot.ModelError, match="asks for") as e:
        files.load(edited(folder, units(10**9)))
    assert e.value.code == "OT1717"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start < 1 << 19, "more than half a gibibyte was taken"


def test_groups_with_many_links(folder):
    """Two links on every level: 2^60 ways through the file."""
    def weights(h):
        group = h.create_group("more")
        for _ in range(60):
            group["again"] = group.create_group("next")
            group = group["next"]

    assert files.load(edited(folder, weights=weights)).built


def test_training_of_h5_that_is_none(folder):
    path = folder / "odd.h5"
    path.write_bytes((folder / "good.h5").read_bytes())
    with h5py.File(path, "a") as h:
        h.attrs["training_config"] = "[1]"
    with pytest.raises(ot.ModelError) as e:
        files.load(path)
    assert e.value.code == "OT1717"


def test_config_inside_a_training_file(folder):
    """`to_keras` trusts the config of an ONNX file no more than that of a .keras file."""
    path = folder / "good.train.onnx"
    ot.from_keras(files.load(folder / "good.keras")).save(path)
    data = path.read_bytes()
    assert b'"keras.layers"' in data
    file = ot.load(data.replace(b'"keras.layers"', b'"other.thing."'))
    with pytest.raises(ot.UsageError, match="which is not registered") as e:
        ot.to_keras(file)
    assert e.value.code == "OT1715" and "other.thing." in str(e.value)
