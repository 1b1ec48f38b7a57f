"""Differences that only float64 can judge: deep networks whose float32 gradients are rounding."""

import warnings

import keras
import numpy as np
import pytest
from keras import layers as L

import onnxtrain as ot
from onnxtrain.converters.compare import Sensitivity
from onnxtrain.errors import ModelError
from onnxtrain.keras.from_keras import exact, self_check
from onnxtrain.keras.shared.float64 import in_float64

RNG = np.random.default_rng(2)


def noise(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def narrow():
    """Batch statistics over two numbers, again and again: what is left of a gradient is rounding."""
    x = inputs = keras.Input((6,))
    for _ in range(10):
        x = L.Dense(6)(L.Activation("tanh")(L.BatchNormalization(epsilon=1.001e-5)(x)))
    model = keras.Model(inputs, L.Dense(3, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")
    return model


def conversion_of(model, x, y, monkeypatch):
    """What the self-check is given."""
    seen = []
    with monkeypatch.context() as m:
        m.setattr(self_check, "check", lambda *given: seen.append(given))
        ot.from_keras(model, x, y)
    return seen[0]


def test_the_proof_computes_in_float64(monkeypatch):
    keras.utils.set_random_seed(1)
    model, x, y = narrow(), noise(2, 6), np.array([0, 2])
    before = model.get_weights()
    request, call, built = conversion_of(model, x, y, monkeypatch)
    compared = []
    arrays = exact.proven(request, call, built, lambda *given: compared.append(given))
    assert len(compared) == 1 and all(a.dtype == np.float64 for a in arrays.values())
    keras.config.set_dtype_policy("float64")
    try:  # the same network made in float64, with the numbers that both sides of the proof have
        other = narrow()
    finally:
        keras.config.set_dtype_policy("float32")
    for layer in other.layers:
        if isinstance(layer, L.BatchNormalization):
            layer.epsilon, layer.momentum = float(np.float32(layer.epsilon)), float(np.float32(layer.momentum))
    other.set_weights(before)
    want = keras.ops.convert_to_numpy(other(x.astype(np.float64)))
    np.testing.assert_allclose(arrays["output", 0], want, rtol=1e-12, atol=1e-14)
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(before, model.get_weights()))
    assert keras.config.floatx() == "float32" and keras.config.dtype_policy().name == "float32"


def test_another_form_in_float64_proves_nothing(monkeypatch):
    model, x, y = narrow(), noise(2, 6), np.array([0, 2])
    request, call, built = conversion_of(model, x, y, monkeypatch)
    built.file.model.graph.nodes.pop(0)
    with pytest.raises(ModelError, match="another form"):
        exact.proven(request, call, built, lambda *given: None)


def test_a_model_in_float64_for_a_while():
    model = narrow()
    x = noise(4, 6)
    plain = keras.ops.convert_to_numpy(model(x))
    with in_float64(model):
        wide = keras.ops.convert_to_numpy(model(x.astype(np.float64)))
        assert wide.dtype == np.float64 and not np.array_equal(wide, plain)
    again = keras.ops.convert_to_numpy(model(x))
    assert again.dtype == np.float32 and np.array_equal(plain, again)
    assert all(layer.epsilon == 1.001e-5 for layer in model.layers if isinstance(layer, L.BatchNormalization))


def judge(got, plain, exact):
    """Whether a difference is accepted when nothing in float32 explains it."""
    key = ("gradient", 0)
    return Sensitivity({key: plain}, lambda units: {key: plain}, exact, proves=True).explains(key, got, 1e-6)


def test_what_float64_says():
    key, right = ("gradient", 0), np.array([1.0, 2.0, 3.0])
    plain = (right * (1 + 1e-3)).astype(np.float32)
    assert judge((right * (1 + 4e-3)).astype(np.float32), plain, lambda: {key: right})  # as near as Keras
    assert not judge((right * 1.1).astype(np.float32), plain, lambda: {key: right})  # 100 times as far
    lost = (right * [3, -1, 0.1]).astype(np.float32)  # Keras itself has no right digit
    assert judge((right * -20).astype(np.float32), lost, lambda: {key: right})

    def differs():
        raise ModelError("differs in float64 too", "OT1605")

    assert not judge((right * -20).astype(np.float32), lost, differs)


def test_a_wrong_file_is_not_excused_by_noise(monkeypatch):
    from onnxtrain.keras.from_keras.lower import layers

    keras.utils.set_random_seed(1)
    plain = layers.LAYERS["BatchNormalization"]

    def wrong(t, layer, inputs, training=None, mask=None):  # another epsilon
        kept, layer.epsilon = layer.epsilon, layer.epsilon * 1000
        try:
            return plain(t, layer, inputs, training=training, mask=mask)
        finally:
            layer.epsilon = kept

    monkeypatch.setitem(layers.LAYERS, "BatchNormalization", wrong)
    with warnings.catch_warnings(), pytest.raises(ot.ModelError) as e:
        warnings.simplefilter("ignore")
        ot.from_keras(narrow(), 40 * noise(2, 6), np.array([0, 2]))
    assert e.value.code == "OT1605"
