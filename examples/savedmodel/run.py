"""The MNIST sample trains here, then in TensorFlow from a SavedModel, then here again: the numbers of one training."""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import onnxtrain as ot  # noqa: E402

FILE = Path(__file__).parent.parent / "mnist" / "mlp.train.onnx"
STEPS = 5


def batches(names, count):
    rng = np.random.default_rng(0)
    image, label = names
    return [{image: rng.random((32, 1, 28, 28), np.float32), label: rng.integers(0, 10, 32)} for _ in range(count)]


def show(who, first, losses, alone):
    apart = max(abs(a - b) for a, b in zip(losses, alone[first:first + len(losses)]))
    print(f"{who:10s} steps {first:2d}..{first + len(losses) - 1:2d}   loss {losses[0]:.6f} -> {losses[-1]:.6f}   "
          f"largest difference to onnxtrain alone {apart:.1e}")
    return apart


def main():
    one = ot.Trainer(ot.load(FILE))
    data = batches((one.inputs[0], one.targets[0]), 3 * STEPS)
    alone = [one.step(b).loss for b in data]

    trainer = ot.Trainer(ot.load(FILE))
    apart = [show("onnxtrain", 0, [trainer.step(b).loss for b in data[:STEPS]], alone)]
    with tempfile.TemporaryDirectory() as folder:
        ot.to_tf(trainer).save(folder)
        loaded = tf.saved_model.load(folder)  # TensorFlow alone: nothing of onnxtrain is needed from here
        losses = [float(loaded.train_step(**b)["loss"]) for b in data[STEPS:2 * STEPS]]
        apart.append(show("TensorFlow", STEPS, losses, alone))
        tf.saved_model.save(loaded, folder + "/trained")
        back = ot.Trainer(ot.from_tf(folder + "/trained"))
    apart.append(show("onnxtrain", 2 * STEPS, [back.step(b).loss for b in data[2 * STEPS:]], alone))
    return max(apart)


if __name__ == "__main__":
    main()
