"""The file trains what `fit` trains: weights frozen after compile(), kernels that TensorFlow takes eagerly."""

import keras
import numpy as np
import pytest
from keras import layers as L

import onnxtrain as ot

RNG = np.random.default_rng(2)
X, Y = RNG.standard_normal((4, 4)).astype(np.float32), RNG.standard_normal((4, 2)).astype(np.float32)


def two_layers(**kw):
    model = keras.Sequential([keras.Input((4,)), L.Dense(3, activation="tanh"), L.BatchNormalization(), L.Dense(2)])
    model.compile(keras.optimizers.Adam(0.05), "mse", **kw)
    return model


def weights_here(file, x=X, y=Y, steps=3):
    trainer = ot.Trainer(file)
    for _ in range(steps):
        trainer.step({file.inputs[0]: x, "target": y})
    return ot.keras_weights(trainer)


def weights_there(model, x=X, y=Y, steps=3):
    for _ in range(steps):
        model.train_on_batch(x, y)
    return model.get_weights()


def same(got, want):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_frozen_before_the_first_step():
    model = two_layers()
    model.layers[0].trainable = False
    before = model.layers[0].get_weights()[0]
    file = ot.from_keras(model, X, Y)
    got = weights_here(file)
    np.testing.assert_array_equal(got[0], before)
    same(got, weights_there(model))


def test_frozen_after_a_step_keras_goes_on_with_its_graph():
    model = two_layers()
    model.train_on_batch(X, Y)
    model.layers[0].trainable = False
    with pytest.raises(ot.UsageError, match="changed after compile.*is frozen now") as e:
        ot.from_keras(model, X, Y)
    assert e.value.code == "OT1606" and model.layers[0].kernel.path in str(e.value)
    model.compile(model.optimizer, "mse")  # the state stays; Keras makes its step anew
    same(weights_here(ot.from_keras(model, X, Y)), weights_there(model))


def test_frozen_after_a_step_that_runs_eagerly():
    model = two_layers(run_eagerly=True)
    model.train_on_batch(X, Y)
    model.layers[0].trainable = model.layers[1].trainable = False
    before = model.layers[0].get_weights()[0]
    got = weights_here(ot.from_keras(model, X, Y))
    np.testing.assert_array_equal(got[0], before)
    same(got, weights_there(model))


def test_another_optimizer_knows_what_is_trained_now():
    model = two_layers()
    model.train_on_batch(X, Y)
    model.layers[0].trainable = False
    before = model.layers[0].get_weights()[0]
    file = ot.from_keras(model, X, Y, optimizer=keras.optimizers.SGD(0.1))
    np.testing.assert_array_equal(weights_here(file)[0], before)
    assert model.train_function is not None


def test_an_optimizer_of_two_models():
    one, other = two_layers(), two_layers()
    optimizer = keras.optimizers.Adam()
    optimizer.build([*one.trainable_variables, *other.trainable_variables])
    one.compile(optimizer, "mse")
    with pytest.raises(ot.UsageError, match="weights that the model does not have"):
        ot.from_keras(one, X, Y)


@pytest.mark.parametrize("eagerly", [False, True])
@pytest.mark.parametrize("pool", [(2,), ((2, 3, 2), 2, "same"), (3, 1)])
def test_values_near_the_largest_of_three_axes(eagerly, pool):
    """Eagerly, TensorFlow gives the gradient to all values within 1e-5 of the largest; here all are."""
    layers = [L.Conv3D(3, 2), L.MaxPooling3D(*pool), L.Flatten(), L.Dense(2)]
    model = keras.Sequential([keras.Input((5, 4, 5, 2)), *layers])
    model.compile(keras.optimizers.SGD(0.01), "mse", run_eagerly=eagerly)
    x = (1e-5 * RNG.standard_normal((4, 5, 4, 5, 2))).astype(np.float32)
    file = ot.from_keras(model, x, Y)
    same(weights_here(file, x), weights_there(model, x))


@pytest.mark.parametrize("first, last, loss", [
    (L.GaussianNoise(0.9), L.Dense(2), "mse"),
    (L.GaussianNoise(0.9), L.Dense(2, activation="softmax"), "categorical_crossentropy"),  # on the scores before it
    (L.GaussianDropout(0.5), L.Dense(2, activation="sigmoid"), "binary_crossentropy"),
])
def test_evaluation_has_none_of_the_noise_of_training(first, last, loss):
    model = keras.Sequential([keras.Input((4,)), first, L.Dense(3, activation="tanh"), L.BatchNormalization(), last])
    model.compile(keras.optimizers.SGD(0.1), loss)
    target = np.eye(2, dtype=np.float32)[RNG.integers(0, 2, 4)]
    file = ot.from_keras(model, X, target)
    got = ot.Trainer(file).evaluate(X, target)["loss"]
    assert got == pytest.approx(model.evaluate(X, target, verbose=0), rel=1e-5)
