"""Names and open sizes of inputs and targets; attributes that Keras' configs lose."""

import keras
import numpy as np
from keras import layers as L
from keras import ops

import onnxtrain as ot

RNG = np.random.default_rng(0)


class Named(keras.Model):
    """Takes a dict, whose keys are not in the order of the alphabet."""

    def __init__(self):
        super().__init__()
        self.numbers, self.words = L.Dense(4), L.Embedding(7, 4)

    def call(self, x):
        return self.numbers(x["number"]) * ops.mean(self.words(x["category"]), axis=1)


def test_a_class_that_takes_a_dict():
    model = Named()
    model.compile("sgd", "mse")
    x = {"number": RNG.standard_normal((4, 3)).astype(np.float32), "category": RNG.integers(0, 7, (4, 2))}
    y = np.zeros((4, 4), np.float32)
    model(x)
    file = ot.from_keras(model, x, y)
    assert set(file.inputs) == {"number", "category"}
    want = float(model.test_on_batch(x, y))
    assert np.isclose(ot.Trainer(file).step({**x, "target": y}).loss, want, rtol=1e-5)


def test_sequences_of_any_length():
    """What is open in an output is open in its target and in the weights of its steps."""
    i = keras.Input((None, 3))
    model = keras.Model(i, L.Dense(3, activation="softmax")(L.Conv1D(4, 2, padding="same")(i)))
    model.compile("sgd", "sparse_categorical_crossentropy")
    given = RNG.standard_normal((4, 6, 3)).astype(np.float32), RNG.integers(0, 3, (4, 6))
    weights = RNG.uniform(0.5, 2, (4, 6)).astype(np.float32)
    assert ot.from_keras(model).trainable
    trainer = ot.Trainer(ot.from_keras(model, *given, sample_weight=weights))
    for length in (5, 9):
        x = RNG.standard_normal((2, length, 3)).astype(np.float32)
        y, w = RNG.integers(0, 3, (2, length)), RNG.uniform(0.5, 2, (2, length)).astype(np.float32)
        loss = trainer.step({trainer.inputs[0]: x, "target": y, "sample_weight": w}).loss
        model.reset_metrics()
        assert np.isclose(loss, float(model.train_on_batch(x, y, sample_weight=w)), rtol=1e-5)


def test_lora_comes_back_with_its_scale():
    model = keras.Sequential([keras.Input((4,)), L.Dense(5, name="adapted"), L.Dense(2)])
    model.get_layer("adapted").enable_lora(2, lora_alpha=6)
    model.compile(keras.optimizers.Adam(0.05), "mse")
    x, y = RNG.standard_normal((8, 4)).astype(np.float32), RNG.standard_normal((8, 2)).astype(np.float32)
    model.train_on_batch(x, y)
    trainer = ot.Trainer(ot.from_keras(model))
    trainer.step({trainer.inputs[0]: x, "target": y})
    model.train_on_batch(x, y)
    back = ot.to_keras(trainer)
    assert back.get_layer("adapted").lora_alpha == 6 and len(back.trainable_weights) == len(model.trainable_weights)
    np.testing.assert_allclose(back.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-5)
