"""Cases in which Keras' own forms lose or hide something: each continues here and in Keras with the same numbers."""

import keras
import numpy as np
import pytest
from keras import layers as L
from keras import ops

import onnxtrain as ot
import round_trip as trips
from onnxtrain.keras.shared import versions

RNG = np.random.default_rng(5)


def noise(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def flat(*structures):
    return [a for s in structures if s is not None for a in keras.tree.flatten(s)]


def goes_on(model, x, y, weight=None, into=False, steps=2, atol=2e-6):
    """A step in Keras; then the same steps here and in Keras; then one more in the model that comes back."""
    given = {} if weight is None else {"sample_weight": weight}
    model.train_on_batch(x, y, **given)
    file = ot.from_keras(model, x, y, **given)
    trainer = ot.Trainer(file)
    feeds = dict(zip([*trainer.inputs, *trainer.targets], flat(x, y, weight)))
    for _ in range(steps):
        trainer.step(feeds)
    here = ot.keras_weights(trainer)
    back = None if into else ot.to_keras(trainer)
    for _ in range(steps):
        model.train_on_batch(x, y, **given)
    pairs = [(here, model.get_weights())]
    if into:
        ot.to_keras(trainer, into=model)
    else:
        model.train_on_batch(x, y, **given)
        back.train_on_batch(x, y, **given)
        pairs.append((back.get_weights(), model.get_weights()))
    for got, want in pairs:
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("optimizer", ["global_clipnorm", "clipnorm", "clipvalue"])
def test_clipped_gradients_of_an_embedding(optimizer):
    """Python's operators on TensorFlow's IndexedSlices make dense tensors, the functions of keras.ops do not."""
    difference, what, _ = trips.round_trip("bag_of_words", optimizer)
    assert difference < trips.LIMIT, what


def test_arguments_that_a_config_leaves_out():
    """Keras' config of Huber has no delta."""
    i = keras.Input((5,))
    h = L.Dense(7, activation="tanh", kernel_regularizer="l2", bias_constraint="non_neg")(i)
    model = keras.Model(i, [L.Dense(3, activation="softmax", name="c")(h), L.Dense(2, name="r")(h)])
    loss = [keras.losses.CategoricalCrossentropy(label_smoothing=0.1), keras.losses.Huber(0.5)]
    model.compile(keras.optimizers.Nadam(0.01, clipnorm=0.5), loss, loss_weights=[0.7, 1.3])
    y = [np.eye(3, dtype=np.float32)[[0, 1, 2, 1, 0, 2]], noise(6, 2)]
    goes_on(model, noise(6, 5), y, [np.abs(noise(6)), np.abs(noise(6))])


def test_preprocessing_that_was_adapted():
    n = L.Normalization()
    n.adapt(noise(50, 4) * 3 + 1)
    i, j = keras.Input((4,)), keras.Input((1,))
    h = L.Concatenate()([n(i), j])
    model = keras.Model([i, j], L.Dense(1, kernel_constraint="max_norm", activation="softplus")(h))
    model.compile(keras.optimizers.Ftrl(0.1), "poisson")
    goes_on(model, [noise(6, 4), noise(6, 1)], np.abs(noise(6, 1)))


def test_a_config_that_does_not_give_the_model_back():
    """What the file computes is compared with the model that its config makes."""
    @keras.saving.register_keras_serializable()
    class Forgetful(L.Layer):
        def __init__(self, factor=1.0, **kw):
            super().__init__(**kw)
            self.factor = factor

        def call(self, x):
            return x * self.factor

        def get_config(self):
            return L.Layer.get_config(self)

    model = keras.Sequential([keras.Input((3,)), L.Dense(2), Forgetful(3.0)])
    model.compile("sgd", "mse")
    file = ot.from_keras(model)
    with pytest.raises(ot.UsageError, match="does not compute what the file computes") as e:
        ot.to_keras(file)
    assert e.value.code == "OT1715"
    assert ot.to_keras(file, into=model) is model


class Nested(keras.Model):
    def __init__(self):
        super().__init__()
        self.a, self.b = L.Dense(3), L.Dense(2)

    def call(self, x):
        return {"p": self.a(x["u"]), "q": (self.b(x["v"][0]), self.b(x["v"][1]))}


def test_targets_in_a_structure():
    model, x = Nested(), {"u": noise(4, 3), "v": (noise(4, 5), noise(4, 5))}
    model(x)
    model.compile("adam", {"p": "mse", "q": ("mae", "mse")})
    goes_on(model, x, {"p": noise(4, 3), "q": (noise(4, 2), noise(4, 2))}, into=True)


def test_outputs_in_a_dict_keep_their_losses():
    """Keys that are not in alphabetical order."""
    i = keras.Input((4,))
    model = keras.Model(i, {"z": L.Dense(2)(i), "a": L.Dense(3, activation="softmax")(i)})
    model.compile("rmsprop", {"z": "mse", "a": "sparse_categorical_crossentropy"}, loss_weights={"z": 0.3, "a": 2.0})
    x, z, a = noise(6, 4), noise(6, 2), RNG.integers(0, 3, 6)
    model.train_on_batch(x, {"z": z, "a": a})
    file = ot.from_keras(model, x, {"z": z, "a": a})
    loss = ot.Trainer(file).step({file.inputs[0]: x, "target_z": z, "target_a": a}).loss
    model.reset_metrics()
    assert loss == pytest.approx(float(np.asarray(model.train_on_batch(x, {"z": z, "a": a})).reshape(-1)[0]), rel=1e-5)


def test_muon_and_schedule_free():
    def model(optimizer):
        made = keras.Sequential([keras.Input((6,)), L.Dense(8, activation="tanh"), L.Dense(3)])
        made.compile(optimizer, "mse")
        return made

    if versions.TESTED <= tuple(map(int, keras.__version__.split(".")[:2])):  # 3.10's Muon does not run in TensorFlow
        goes_on(model(keras.optimizers.Muon(0.01)), noise(8, 6), noise(8, 3))
    if hasattr(keras.optimizers, "ScheduleFreeAdamW"):
        with pytest.raises(ot.ModelError, match="ScheduleFreeAdamW"):
            ot.from_keras(model(keras.optimizers.ScheduleFreeAdamW(0.01)))


def test_float64():
    """Attributes of ONNX are float32: an epsilon of 1e-3 is not exact there."""
    model = keras.Sequential([keras.Input((6, 6, 2), dtype="float64"), L.Conv2D(3, 3, dtype="float64"),
                              L.BatchNormalization(dtype="float64"), L.Flatten(dtype="float64"),
                              L.Dense(2, dtype="float64")])
    model.compile("sgd", loss=None)
    x = noise(4, 6, 6, 2).astype(np.float64)
    file = ot.from_keras(model, x)
    got = ot.Session(file).run({file.inputs[0]: x})[file.outputs[0]]
    np.testing.assert_allclose(got, model.predict(x, verbose=0), rtol=1e-13, atol=1e-13)


class Shared(keras.Model):
    """One layer twice, a mask, another computation in training."""

    def __init__(self):
        super().__init__()
        self.embed, self.rnn = L.Embedding(20, 8, mask_zero=True), L.GRU(8, return_sequences=True)
        self.twice, self.norm, self.head = L.Dense(8, activation="gelu"), L.LayerNormalization(), L.Dense(4)

    def call(self, x, training=False):
        h = self.rnn(self.embed(x))
        a = self.twice(h)
        h = self.norm(a + self.twice(a + h))
        return self.head(ops.mean(h * 1.5 if training else h, axis=1))


def test_shared_layers_and_a_mask():
    model, x = Shared(), RNG.integers(0, 20, (6, 7))
    model(x)
    model.compile(keras.optimizers.AdamW(0.01, global_clipnorm=0.3),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    goes_on(model, x, RNG.integers(0, 4, 6), into=True)


def test_several_losses_of_different_kinds():
    """The name of the first is not said of all: the shapes of their targets are looked at by what they are."""
    i = keras.Input((6,))
    h = L.Dense(8, "tanh")(i)
    model = keras.Model(i, [L.Dense(4, activation="softmax", name="p")(h), L.Dense(3, name="q")(h)])
    model.compile(keras.optimizers.SGD(0.1), ["kl_divergence", "cosine_similarity"])
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 1, (5, 4))
    x, y = rng.standard_normal((5, 6)).astype(np.float32), [(p / p.sum(1, keepdims=True)).astype(np.float32),
                                                           rng.standard_normal((5, 3)).astype(np.float32)]
    file = ot.from_keras(model, x, y)
    assert file.info["metadata"]["onnxtrain.loss"] == "custom"
    loss = ot.Trainer(file).step({file.inputs[0]: x, "target_p": y[0], "target_q": y[1]}).loss
    assert loss == pytest.approx(float(np.asarray(model.train_on_batch(x, y)).reshape(-1)[0]), rel=1e-5)


def test_loss_weights_stay_with_another_loss():
    i = keras.Input((3,))
    model = keras.Model(i, [L.Dense(1, name="a")(i), L.Dense(1, name="b")(i)])
    model.compile("sgd", ["mse", "mse"], loss_weights=[3.0, 0.0])
    x, y = np.ones((2, 3), np.float32), [np.ones((2, 1), np.float32)] * 2
    trainer = ot.Trainer(ot.from_keras(model, x, y, loss=["mae", "mae"]))
    loss = trainer.step(dict(zip([*trainer.inputs, *trainer.targets], [x, *y]))).loss
    assert loss == pytest.approx(3 * float(np.abs(np.asarray(model(x)[0]) - 1).mean()), rel=1e-5)
