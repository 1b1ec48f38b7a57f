"""Optimizers with Keras' rules against keras.optimizers themselves: ten steps of a small classifier, weight by weight.

Keras computes in float64. epsilon is large, because that is where Keras' and PyTorch's rules part.
"""

import keras
import numpy as np
import pytest

import onnxtrain as ot

STEPS, LIMIT = 10, 2e-5
SHAPES = {"w1": (4, 16), "b1": (16,), "w2": (16, 3), "b2": (3,)}
RULES = {
    "sgd": (ot.SGD(lr=0.1), lambda o: o.SGD(0.1)),
    "momentum": (ot.SGD(lr=0.05, momentum=0.9), lambda o: o.SGD(0.05, momentum=0.9)),
    "nesterov": (ot.SGD(lr=0.05, momentum=0.9, nesterov=True), lambda o: o.SGD(0.05, momentum=0.9, nesterov=True)),
    "adam": (ot.Adam(lr=0.02, eps=1e-2, style="keras"), lambda o: o.Adam(0.02, epsilon=1e-2)),
    "adam amsgrad": (ot.Adam(lr=0.02, betas=(0.8, 0.9), eps=1e-2, amsgrad=True, style="keras"),
                     lambda o: o.Adam(0.02, beta_1=0.8, beta_2=0.9, epsilon=1e-2, amsgrad=True)),
    "adamw": (ot.AdamW(lr=0.02, eps=1e-2, weight_decay=0.3, style="keras"),
              lambda o: o.AdamW(0.02, weight_decay=0.3, epsilon=1e-2)),
    "rmsprop": (ot.RMSprop(lr=0.01, alpha=0.9, eps=1e-3,
                           style="keras"), lambda o: o.RMSprop(0.01, rho=0.9, epsilon=1e-3)),
    "rmsprop centered": (ot.RMSprop(lr=0.01, alpha=0.8, eps=1e-3, momentum=0.5, centered=True, style="keras"),
                         lambda o: o.RMSprop(0.01, rho=0.8, momentum=0.5, epsilon=1e-3, centered=True)),
    "adagrad": (ot.Adagrad(lr=0.05, eps=1e-3, initial_accumulator_value=0.01, style="keras"),
                lambda o: o.Adagrad(0.05, initial_accumulator_value=0.01, epsilon=1e-3)),
    "lion": (ot.Lion(lr=0.01, betas=(0.9, 0.99)), lambda o: o.Lion(0.01, beta_1=0.9, beta_2=0.99)),
}


@pytest.fixture(autouse=True)
def float64():
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx("float32")


def start():
    rng = np.random.default_rng(7)
    return {n: (rng.standard_normal(s) * 0.5).astype(np.float32) for n, s in SHAPES.items()}


def batches():
    rng = np.random.default_rng(8)
    for _ in range(STEPS):
        yield rng.standard_normal((32, 4)).astype(np.float32), rng.integers(0, 3, 32)


def keras_weights(make):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(3)])
    model.set_weights(list(start().values()))
    model.compile(make(keras.optimizers), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for x, y in batches():
        model.train_on_batch(x.astype(np.float64), y)
    return dict(zip(SHAPES, model.get_weights()))


def our_weights(optimizer):
    def values(n, v):
        return f"float[{','.join(map(str, v.shape))}] {n} = {{{','.join(repr(float(x)) for x in v.ravel())}}}"
    model = ot.parse(f"""<ir_version: 8, opset_import: ["": 17]> g (float[N,4] x) => (float[N,3] y)
        <{', '.join(values(n, v) for n, v in start().items())}> {{
        a = MatMul (x, w1)  h = Add (a, b1)  t = Tanh (h)  c = MatMul (t, w2)  y = Add (c, b2) }}""")
    trainer = ot.Trainer(ot.prepare(model, loss="cross_entropy", optimizer=optimizer))
    for x, y in batches():
        trainer.step({"x": x, "label": y})
    return {n: np.asarray(trainer.state[n], np.float64) for n in SHAPES}


def apart(a, b):
    return max(np.abs(a[n] - b[n]).max() / np.abs(b[n]).max() for n in SHAPES)


@pytest.mark.parametrize("rule", RULES)
def test_trajectory(rule):
    optimizer, make = RULES[rule]
    want = keras_weights(make)
    assert apart(our_weights(optimizer), want) < LIMIT
    assert apart(start(), want) > 1000 * LIMIT  # it moved


@pytest.mark.parametrize("rule", [n for n, (o, _) in RULES.items() if getattr(o, "style", "") == "keras"])
def test_the_rule_of_pytorch_is_told_apart(rule):
    """With the same numbers and PyTorch's rule the distance is not within the limit: the test above sees the style."""
    optimizer, make = RULES[rule]
    settings = {k: v for k, v in vars(optimizer).items() if k != "style"}
    assert apart(our_weights(type(optimizer)(**settings)), keras_weights(make)) > 10 * LIMIT
