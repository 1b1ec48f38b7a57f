"""Rows of zeros, ties, targets that do not sum to 1: gradients where functions have kinks are those of the backend. The
examples have nothing of it, the batches that follow have, so that the self-check cannot see it."""

import keras
import numpy as np
import pytest
from keras import layers as L
from keras import ops

import onnxtrain as ot

RNG = np.random.default_rng(7)


class Function(L.Layer):
    """f(w x + b), element by element."""

    def __init__(self, f, **more):
        super().__init__(**more)
        self.f = f

    def build(self, shape):
        self.w = self.add_weight(shape=shape[1:], initializer="ones", name="w")
        self.b = self.add_weight(shape=shape[1:], initializer="zeros", name="b")

    def call(self, x):
        return self.f(x * self.w + self.b)


def product(y, p):
    return ops.mean(y * p)


def batches(targets=None):
    """Examples without ties, then small whole numbers and rows of zeros."""
    plain = RNG.normal(size=(6, 5)).astype(np.float32), RNG.normal(size=(6, 5)).astype(np.float32)
    x = RNG.integers(-2, 3, (6, 5)).astype(np.float32)
    x[0] = 0
    y = RNG.normal(size=(6, 5)).astype(np.float32)
    return plain, (x, y if targets is None else targets)


def stays_with_keras(f, loss, example, batch, rate=0.1):
    i = keras.Input((5,))
    model = keras.Model(i, Function(f)(i))
    model.compile(keras.optimizers.SGD(rate), loss, run_eagerly=True)
    trainer = ot.Trainer(ot.from_keras(model, *example))
    feeds = dict(zip([*trainer.inputs, *trainer.targets], batch))
    here, there = trainer.step(feeds).loss, np.asarray(model.train_on_batch(*batch)).reshape(-1)[0]
    assert here == pytest.approx(float(there), rel=1e-5, abs=1e-9)
    for here, there in zip(ot.keras_weights(trainer), model.get_weights()):
        np.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-6)


FUNCTIONS = {
    "maximum": lambda x: ops.maximum(x, 0.0), "maximum of 0 and x": lambda x: ops.maximum(0.0, x),
    "minimum": lambda x: ops.minimum(x, 1.0), "fmax": lambda x: ops.fmax(x, ops.flip(x, -1) * 2),
    "relu6": lambda x: ops.relu6(x * 3), "sparse sigmoid": ops.sparse_sigmoid,
    "logaddexp": lambda x: ops.logaddexp(x, ops.flip(x, -1)),
    "two of one size": lambda x: ops.maximum(x, ops.abs(x)), "selu": ops.selu, "celu": lambda x: ops.celu(x, 0.7),
    "rows of zeros": lambda x: ops.normalize(x, -1), "unit length": lambda x: L.UnitNormalization()(x),
    "a root that nothing comes to": lambda x: ops.where(x > 0, ops.sqrt(ops.square(x)), x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    if name == "fmax" and not hasattr(ops, "fmax"):
        pytest.skip("this version of Keras has no fmax")
    stays_with_keras(FUNCTIONS[name], product, *batches())


@pytest.mark.parametrize("f", [lambda x: x, ops.sigmoid], ids=["logits", "sigmoid"])
def test_binary_crossentropy_at_a_logit_of_zero(f):
    y = RNG.integers(0, 2, (6, 5)).astype(np.float32)
    loss = keras.losses.BinaryCrossentropy(from_logits=f is not ops.sigmoid)
    (x, _), batch = batches(y)
    stays_with_keras(f, loss, (x, y), batch)


@pytest.mark.parametrize("f", [lambda x: x, ops.softmax], ids=["logits", "softmax"])
def test_categorical_crossentropy_of_several_classes_and_of_none(f):
    """TensorFlow's gradient is softmax - target, whatever the target sums to."""
    y = RNG.integers(0, 2, (6, 5)).astype(np.float32)
    y[1], y[2] = 0, 1
    loss = keras.losses.CategoricalCrossentropy(from_logits=f is not ops.softmax)
    (x, _), (other, _) = batches()
    one_hot = np.eye(5, dtype=np.float32)[RNG.integers(0, 5, 6)]
    stays_with_keras(f, loss, (x, one_hot), (other, y))


def test_cosine_similarity_of_nothing():
    stays_with_keras(lambda x: x, "cosine_similarity", *batches())


def test_a_last_layer_that_starts_at_zero():
    model = keras.Sequential([keras.Input((4,)), L.Dense(6, activation="relu"), L.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.1), keras.losses.BinaryCrossentropy(from_logits=True))
    x, y = RNG.normal(size=(8, 4)).astype(np.float32), RNG.integers(0, 2, (8, 1)).astype(np.float32)
    trainer = ot.Trainer(ot.from_keras(model, x, y))
    feeds = dict(zip([*trainer.inputs, *trainer.targets], (x, y)))
    for _ in range(3):
        trainer.step(feeds)
        model.train_on_batch(x, y)
    for here, there in zip(ot.keras_weights(trainer), model.get_weights()):
        np.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-6)
