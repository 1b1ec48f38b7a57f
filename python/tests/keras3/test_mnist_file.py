"""The MNIST sample files (examples/mnist) go on in Keras and in TensorFlow as they do here."""

from pathlib import Path

import numpy as np
import pytest

import onnxtrain as ot

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "mnist"
STEPS = 5


def digits(rows=32):
    """The first images of the test set."""
    import gzip

    with gzip.open(FOLDER / "data" / "t10k-images-idx3-ubyte.gz") as f:
        pixels = np.frombuffer(f.read(16 + rows * 784)[16:], np.uint8)
    with gzip.open(FOLDER / "data" / "t10k-labels-idx1-ubyte.gz") as f:
        labels = np.frombuffer(f.read(8 + rows)[8:], np.uint8)
    return (pixels.reshape(rows, 1, 28, 28) / 255).astype(np.float32), labels.astype(np.int64)


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_continues_in_keras_and_tensorflow(name):
    x, y = digits()
    trainer = ot.Trainer(ot.load(FOLDER / f"{name}.train.onnx"), seed=0)
    feeds = {trainer.inputs[0]: x, trainer.targets[0]: y}
    trainer.step(feeds)
    in_keras, in_tf = ot.to_keras(trainer), ot.to_tf(trainer)
    want = [trainer.step(feeds).loss for _ in range(STEPS)]
    images = x.transpose(0, 2, 3, 1)
    keras_losses = []
    for _ in range(STEPS):
        in_keras.reset_metrics()  # older versions of Keras return the mean since the last reset
        keras_losses.append(float(np.asarray(in_keras.train_on_batch(images, y)).reshape(-1)[0]))
    tf_losses = [float(in_tf.train_step(**feeds)["loss"]) for _ in range(STEPS)]
    assert want[-1] < 0.9 * want[0]
    np.testing.assert_allclose(keras_losses, want, rtol=1e-4)
    np.testing.assert_allclose(tf_losses, want, rtol=1e-4)
    for v in in_keras.weights:
        there = trainer.state[in_keras.file_names[v.path]]
        np.testing.assert_allclose(np.asarray(v), there, atol=2e-4)
