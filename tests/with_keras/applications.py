"""keras.applications with random weights: CPU time of from_keras with and without its self-check, beside Keras' own
exporter to ONNX where that is asked for (--exporter; it needs the package onnx, and minutes).

    .venv-tf/bin/python tests/with_keras/applications.py [NAME...] [--exporter]
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402
import numpy as np  # noqa: E402

import onnxtrain as ot  # noqa: E402
from onnxtrain.keras.from_keras import self_check  # noqa: E402

MODELS = {"MobileNetV2": 32, "ResNet50V2": 32, "EfficientNetV2B0": 32, "DenseNet121": 32, "ConvNeXtTiny": 32}
if hasattr(keras.applications, "MobileNetV3Small"):
    MODELS["MobileNetV3Small"] = 32


def measure(name, size):
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=5)
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 255, (2, size, size, 3)).astype(np.float32), np.array([1, 3])
    plain, spent = self_check.check, {}

    def timed(*args):
        start = time.process_time()
        try:
            return plain(*args)
        finally:
            spent["check"] = time.process_time() - start

    self_check.check = timed
    start, wall = time.process_time(), time.time()
    try:
        file = ot.from_keras(model, x, y)
        result = "self-check passed"
    except ot.Error as e:
        file, result = None, str(e).split("\n")[0][:200]
    finally:
        self_check.check = plain
    whole, wall = time.process_time() - start, time.time() - wall
    turns = "-"
    if file is not None:
        from onnxtrain.graph import read_graphs

        nodes = read_graphs(file).main.nodes
        turns = f"{len(nodes)} nodes, {sum(n.op == 'Transpose' for n in nodes)} transposes"
    alone = whole - spent.get("check", 0)
    size = f"{model.count_params():,} parameters"
    print(f"{name:18s}{size:>22s}  {alone:6.1f} s without, {whole:6.1f} s with the self-check "
          f"(CPU time; {wall:.0f} s passed)  {turns}  {result}",
          flush=True)
    return model


def exporter(name, model):
    start = time.time()
    try:
        model.export(f"/tmp/{name}.onnx", format="onnx", verbose=False)
        print(f"{name:18s}Keras' exporter {time.time() - start:.1f} s", flush=True)
    except Exception as e:  # noqa: BLE001 - said in the table
        print(f"{name:18s}Keras' exporter: {str(e)[:150]}", flush=True)


if __name__ == "__main__":
    names = [a for a in sys.argv[1:] if not a.startswith("-")] or list(MODELS)
    for n in names:
        made = measure(n, MODELS.get(n, 32))
        if "--exporter" in sys.argv:
            exporter(n, made)
