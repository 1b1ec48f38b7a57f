"""Moves a training in the middle of an epoch from Keras to onnxtrain, trains on there, and moves it back.

    pip install 'onnxtrain[keras]' tensorflow
    python examples/keras_both_ways/run.py

A second training stays in Keras all the time, on the same batches: both must give the same losses.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
from keras import layers

import onnxtrain as ot


def network():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([
        keras.Input((12, 12, 1), name="image"),
        layers.Conv2D(8, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(),
        layers.MaxPooling2D(), layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(), layers.Dense(4, activation="softmax")])
    rate = keras.optimizers.schedules.CosineDecay(3e-3, 30)
    model.compile(keras.optimizers.AdamW(rate, weight_decay=0.01, global_clipnorm=1.0),
                  "sparse_categorical_crossentropy")
    return model


def data(count=960):
    """Bright quarter of a noisy image: which one?"""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, count)
    images = rng.standard_normal((count, 12, 12, 1)).astype(np.float32)
    for k in range(count):
        row, column = divmod(int(labels[k]), 2)
        images[k, 6 * row:6 * row + 6, 6 * column:6 * column + 6] += 0.7
    return list(zip(np.split(images, count // 32), np.split(labels, count // 32)))


def keras_steps(model, batches):
    losses = []
    for x, y in batches:
        model.reset_metrics()
        losses.append(float(np.asarray(model.train_on_batch(x, y)).reshape(-1)[0]))
    return losses


def show(where, first, losses, alone):
    largest = max(abs(a - b) for a, b in zip(losses, alone))
    print(f"{where:10s} steps {first:2d}..{first + len(losses) - 1:2d}   loss {losses[0]:.6f} -> {losses[-1]:.6f}   "
          f"largest difference to Keras alone {largest:.1e}")
    return largest


def main():
    batches = data()
    alone = network()
    reference = keras_steps(alone, batches)

    model = network()
    worst = show("Keras", 0, keras_steps(model, batches[:10]), reference[:10])

    file = ot.from_keras(model)  # weights, statistics, AdamW's moments, the schedule at its position
    trainer = ot.Trainer(file)
    losses = [trainer.step({file.inputs[0]: x, "target": y}).loss for x, y in batches[10:20]]
    worst = max(worst, show("onnxtrain", 10, losses, reference[10:20]))

    back = ot.to_keras(trainer)  # a compiled model of the same class; into=model would write into the original
    worst = max(worst, show("Keras", 20, keras_steps(back, batches[20:]), reference[20:]))

    weights = max(float(np.abs(a - b).max()) for a, b in zip(back.get_weights(), alone.get_weights()))
    print(f"           {type(back.optimizer).__name__}, iteration {int(back.optimizer.iterations)}, learning rate "
          f"{float(back.optimizer.learning_rate):.6f} (alone: {float(alone.optimizer.learning_rate):.6f})")
    print(f"           largest difference of a weight after 30 steps: {weights:.1e}")
    assert worst < 1e-4 and weights < 1e-4


if __name__ == "__main__":
    main()
