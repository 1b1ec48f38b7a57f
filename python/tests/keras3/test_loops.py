"""Loops of keras.ops in layers of one's own: the self-check compares outputs, gradients and a step with Keras."""

import keras
import numpy as np
import pytest
from keras import layers as L
from keras import ops

import onnxtrain as ot

RNG = np.random.default_rng(4)


class Own(L.Layer):
    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1],), initializer="ones")
        self.seen = self.add_weight(shape=(), initializer="zeros", trainable=False)


class Scanned(Own):
    def call(self, x):
        rows = {"a": ops.transpose(x, (1, 0, 2)), "b": ops.transpose(ops.sin(x), (1, 0, 2))}
        start = (ops.zeros_like(x[:, 0]), ops.ones_like(x[:, 0]))

        def step(carry, row):
            h, n = carry
            h = ops.tanh(h * self.w + row["a"])
            return (h, n * 0.9), (h * row["b"], n * h)

        (last, n), (all_steps, others) = ops.scan(step, start, rows)
        _, back = ops.scan(lambda c, r: (c + r, c * self.w), ops.zeros_like(last), rows["a"], reverse=True)
        return last * n + ops.sum(all_steps + others, 0) + ops.sum(back * rows["b"], 0)


class Looped(Own):
    def call(self, x):
        def go_on(k, v):
            return ops.logical_and(k < 5, ops.max(ops.abs(v)) > 1e-3)

        start = ops.zeros((), "int32")
        counted, v = ops.while_loop(go_on, lambda k, v: (k + 1, ops.tanh(v * self.w)), (start, x[:, 0]))
        one = ops.while_loop(lambda k, v: k < 9, lambda k, v: (k + 1, v * self.w), (start, v), maximum_iterations=2)[1]
        return v + one * ops.cast(counted, "float32")


class Mapped(Own):
    def call(self, x):
        rows = ops.map(lambda r: ops.softmax(ops.matmul(r, ops.transpose(r)) * self.w[0]), x)
        return x[:, 0] * ops.expand_dims(ops.sum(rows * rows, axis=(1, 2)), -1)


class Switched(Own):
    def call(self, x):
        which = ops.cast(ops.sum(ops.cast(x[:, 0, 0] > 0, "int32")), "int32")
        return ops.switch(which, [lambda v: v * self.w, lambda v: v + self.w, lambda v: ops.tanh(v)], x[:, 0])


class Assigns(Own):
    def call(self, x):
        def step(c, r):
            self.seen.assign(self.seen + 1.0)
            return c + r, c

        return ops.scan(step, ops.zeros_like(x[:, 0]), ops.transpose(x, (1, 0, 2)))[0]


def model_of(layer, seed=7):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.Input((5, 4)), L.Dense(4), layer, L.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse")
    return model


@pytest.mark.parametrize("layer", [Scanned, Looped, Mapped, Switched])
def test_goes_on(layer):
    model = model_of(layer())
    x, y = RNG.standard_normal((6, 5, 4)).astype(np.float32), RNG.standard_normal((6, 1)).astype(np.float32)
    file = ot.from_keras(model, x, y)
    trainer = ot.Trainer(file)
    here = [trainer.step({file.inputs[0]: x, "target": y}).loss for _ in range(3)]
    there = []
    for _ in range(3):
        model.reset_metrics()
        there.append(float(np.asarray(model.train_on_batch(x, y)).reshape(-1)[0]))
    assert here == pytest.approx(there, rel=1e-5)


def test_a_function_that_assigns():
    with pytest.raises(ot.ModelError, match="assigns to a variable") as e:
        ot.from_keras(model_of(Assigns()), np.ones((3, 5, 4), np.float32), np.ones((3, 1), np.float32))
    assert e.value.code == "OT1601" and "test_loops.py" in str(e.value)
