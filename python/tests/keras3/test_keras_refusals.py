"""What from_keras refuses: by name, with layer and line, all at once."""

import keras
import numpy as np
import pytest
from keras import layers as L

import onnxtrain as ot


def compiled(*layers, optimizer="sgd", loss="mse", shape=(4,)):
    model = keras.Sequential([keras.Input(shape), *layers])
    model.compile(optimizer, loss)
    return model


def refused(model, *words, code="OT1601", **kw):
    with pytest.raises(ot.Error) as e:
        ot.from_keras(model, **kw)
    assert e.value.code == code, str(e.value)
    for w in words:
        assert w in str(e.value)
    return str(e.value)


class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.d = L.Dense(2)

    def call(self, x):
        return self.d(x)

    def train_step(self, data):
        return {}


class OwnRule(keras.optimizers.SGD):
    def update_step(self, gradient, variable, learning_rate):
        variable.assign(variable - 2 * gradient)


class OwnSchedule(keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        return 0.1


class Branches(L.Layer):
    def call(self, x):
        if x.numpy().sum() > 0:
            return x
        return -x


class OwnGradient(L.Layer):
    def call(self, x):
        @keras.ops.custom_gradient
        def rounded(v):
            return keras.ops.round(v), lambda *a, upstream=None: a[0] if a else upstream

        return rounded(x)


def test_a_gradient_of_ones_own():
    refused(compiled(L.Dense(3), OwnGradient(), L.Dense(2)), "custom_gradient", "test_keras_refusals.py")


def test_all_obstacles_at_once():
    model = compiled(L.LSTM(3, stateful=False, return_sequences=True), L.LSTM(2), L.BatchNormalization(), shape=(5, 4),
                     optimizer=OwnRule(0.1))
    model.layers[0].stateful = True
    model.layers[2].renorm = True
    text = refused(model, "3 obstacles", "stateful", "renorm", "OwnRule", "test_keras_refusals.py")
    assert "layer 'lstm" in text


def test_own_train_step():
    model = Own()
    model(np.zeros((2, 4), np.float32))
    model.compile("sgd", "mse")
    refused(model, "own train_step", "test_keras_refusals.py", inputs=np.zeros((2, 4), np.float32))


def test_learning_rates_that_are_code():
    refused(compiled(L.Dense(2), optimizer=keras.optimizers.SGD(OwnSchedule())), "OwnSchedule")
    refused(compiled(L.Dense(2), optimizer=keras.optimizers.SGD(lambda: 0.1)), "learning rate is a function")


def test_code_that_cannot_be_traced():
    layer = Branches()
    model = keras.Sequential([keras.Input((4,)), L.Dense(3)])
    model.compile("sgd", "mse")
    layer.build((None, 3))
    model._layers.append(layer)
    inner = Own()
    inner.call = lambda x: layer(inner.d(x))
    inner(np.ones((2, 4), np.float32))
    refused(inner, "x.numpy()", "test_keras_refusals.py", inputs=np.ones((2, 4), np.float32))


def test_mixed_precision_and_loss_scaling():
    model = keras.Sequential([keras.Input((4,)), L.Dense(3, dtype="mixed_float16"), L.Dense(2)])
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()), "mse")
    refused(model, "mixed_float16", "LossScaleOptimizer")


def test_never_built_and_changed_after_compile():
    model = keras.Sequential([L.Dense(2)])
    refused(model, "never built", code="OT1606")
    model = compiled(L.Dense(3), L.Dense(2), optimizer="adam")
    model.layers[0].trainable = False
    model.compile("adam", "mse")
    model.train_on_batch(np.zeros((2, 4), np.float32), np.zeros((2, 2), np.float32))
    model.layers[0].trainable = True
    refused(model, "changed after compile", code="OT1606")


def test_not_a_model():
    refused(L.Dense(2), "takes a keras.Model", code="OT1606")


def test_cubic_resizing_that_tensorflow_rounds():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("only TensorFlow rounds the weights")
    resized = L.Resizing(5, 7, interpolation="bicubic")
    model = keras.Sequential([keras.Input((10, 12, 1)), resized, L.Flatten(), L.Dense(1)])
    model.compile("sgd", "mse")
    refused(model, "bicubic resizing", "table of 1024 places")
