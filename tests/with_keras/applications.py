"""keras.applications with random weights: CPU time of from_keras without its self-check, of Keras' own run that the
file is compared with, and of all, beside Keras' own exporter to ONNX where that is asked for (--exporter; it needs the
package onnx, and minutes).

    .venv-tf/bin/python tests/with_keras/applications.py [NAME...] [--exporter]
"""

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras  # noqa: E402
import numpy as np  # noqa: E402

import onnxtrain as ot  # noqa: E402
from onnxtrain.keras.from_keras import reference, self_check  # noqa: E402

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
    plain, own, spent = self_check.check, reference.compute, {"check": 0.0, "keras": 0.0}

    def timed(f, part):
        def call(*args, **more):
            start = time.process_time()
            try:
                return f(*args, **more)
            finally:
                spent[part] += time.process_time() - start

        return call

    def checked(*args):  # it runs Keras again
        reference.compute = own
        return timed(plain, "check")(*args)

    self_check.check, reference.compute = checked, timed(own, "keras")
    start, wall = time.process_time(), time.time()
    try:
        file = ot.from_keras(model, x, y)
        result = "self-check passed"
    except ot.Error as e:
        file, result = None, str(e).split("\n")[0][:200]
    finally:
        self_check.check, reference.compute = plain, own
    whole, wall = time.process_time() - start, time.time() - wall
    turns = "-"
    if file is not None:
        from onnxtrain.graph import read_graphs

        nodes = read_graphs(file).main.nodes
        turns = f"{len(nodes)} nodes, {sum(n.op == 'Transpose' for n in nodes)} transposes"
    alone = whole - spent["check"] - spent["keras"]
    size = f"{model.count_params():,} parameters"
    print(f"{name:18s}{size:>22s}  {alone:6.1f} s without the self-check, {whole:6.1f} s with it "
          f"({spent['keras']:.1f} s of them Keras' own run; CPU time; {wall:.0f} s passed)  {turns}  {result}",
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
