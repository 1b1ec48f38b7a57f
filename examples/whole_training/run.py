"""Trains a network for MNIST by one call of onnxruntime, which has never heard of onnxtrain.

    python run.py [ROWS]       (needs onnxruntime, numpy and, for the last part, onnx)

whole.onnx holds the network, its loss, gradients, optimizer, epochs and validation as an ordinary model."""

import gzip
import pathlib
import sys

import numpy as np
import onnxruntime

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "mnist/data"


def mnist(part, rows):
    with gzip.open(DATA / f"{part}-images-idx3-ubyte.gz") as f:
        images = np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(DATA / f"{part}-labels-idx1-ubyte.gz") as f:
        labels = np.frombuffer(f.read(), np.uint8, offset=8)
    return images[:rows].astype(np.float32) / 255, labels[:rows].astype(np.int64)


def main(rows=4000):
    x, y = mnist("train", rows)
    valid_x, valid_y = mnist("t10k", 1000)
    session = onnxruntime.InferenceSession(HERE / "whole.onnx")
    epochs = next(i.shape[0] for i in session.get_inputs() if i.name == "order")
    rng = np.random.default_rng(0)
    order = np.stack([rng.permutation(len(x)) for _ in range(epochs)])  # every epoch its own order of the rows
    names = [o.name for o in session.get_outputs()]
    trained = dict(zip(names, session.run(None, {"image": x, "label": y, "order": order, "valid_image": valid_x,
                                                 "valid_label": valid_y})))
    for k in range(trained["epochs"]):
        print(f"epoch {k + 1}  train loss {trained['losses'][k].mean():.4f}  "
              f"valid loss {trained['valid_loss'][k]:.4f}  valid accuracy {100 * trained['valid_accuracy'][k]:.2f} %")
    print(f"best epoch {trained['best_epoch']}")
    return trained, (valid_x, valid_y)


def inference(weights):
    """The ordinary network with trained weights."""
    import onnx

    model = onnx.load(HERE / "digits.onnx")
    for t in model.graph.initializer:
        t.CopyFrom(onnx.numpy_helper.from_array(weights[t.name], t.name))
    return model


if __name__ == "__main__":
    trained, (x, y) = main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
    model = inference({k[len("best/"):]: v for k, v in trained.items() if k.startswith("best/")})
    logits = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"image": x})[0]
    print(f"the network with these weights: {100 * np.mean(logits.argmax(1) == y):.2f} %")
