"""Sizes that are open while Keras' code is followed: steps of a sequence, rows of a batch; batches of other sizes."""

import keras
import numpy as np
import pytest
from keras import layers as L
from keras import ops

import onnxtrain as ot

RNG = np.random.default_rng(8)


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def go_on(model, batches):
    """The losses of some steps here and in Keras; the file is made from the first batch."""
    file = ot.from_keras(model, *batches[0])
    trainer = ot.Trainer(file)
    here = [trainer.step(dict(zip([*trainer.inputs, *trainer.targets], b))).loss for b in batches]
    there = []
    for b in batches:
        model.reset_metrics()
        there.append(float(np.asarray(model.train_on_batch(*b)).reshape(-1)[0]))
    assert here == pytest.approx(there, rel=1e-5)


def compiled(inputs, outputs, loss="mse"):
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss, run_eagerly=True)
    return model


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(5)


def test_time_distributed_over_an_open_number_of_steps():
    i = keras.Input((None,), dtype="int32")
    h = L.LSTM(4, return_sequences=True)(L.Embedding(9, 3, mask_zero=True)(i))
    model = compiled(i, L.TimeDistributed(L.Dense(2))(h))
    go_on(model, [(RNG.integers(0, 9, (rows, steps)).astype(np.int32), numbers(rows, steps, 2))
                  for rows, steps in ((4, 6), (3, 7), (5, 2))])


def test_time_distributed_statistics_are_refused():
    i = keras.Input((None, 4))
    model = compiled(i, L.Dense(1)(L.TimeDistributed(L.BatchNormalization())(i)))
    with pytest.raises(ot.ModelError, match="TimeDistributed over an open number of steps") as e:
        ot.from_keras(model, numbers(3, 5, 4), numbers(3, 5, 1))
    assert e.value.code == "OT1601"


def contrastive(y, p):
    """Every row of the batch against every other one."""
    rows = ops.shape(p)[0]
    scores = ops.matmul(p, ops.transpose(p)) - 1e3 * ops.eye(rows)
    same = ops.cast(ops.equal(y, ops.transpose(y)), "float32") - ops.identity(rows)
    return -ops.sum(same * ops.log_softmax(scores), -1)


def test_a_loss_over_the_rows_of_the_batch():
    i = keras.Input((5,))
    model = compiled(i, L.Dense(3)(i), contrastive)
    go_on(model, [(numbers(n, 5), RNG.integers(0, 2, (n, 1)).astype(np.int32)) for n in (6, 3, 8)])


class Own(L.Layer):
    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        rows = ops.vectorized_map(lambda r: ops.softmax(r * self.w), x)
        step = ops.cast(ops.sum(ops.cast(x[0, 0] > 0, "int32")) % 3, "int32")
        return rows[:, 0] + ops.transpose(rows, (1, 0, 2))[step]


def test_vectorized_map_and_a_position_that_is_computed():
    i = keras.Input((3, 4))
    go_on(compiled(i, L.Dense(1)(Own()(i))), [(numbers(n, 3, 4), numbers(n, 1)) for n in (4, 2)])


def test_embedding_read_in_parts_of_different_sizes():
    i, j = keras.Input((5,), dtype="int32"), keras.Input((2,), dtype="int32")
    shared = L.Embedding(9, 4)
    model = keras.Model([i, j], L.Dense(1)(L.Flatten()(L.Concatenate(axis=1)([shared(i), shared(j)]))))
    model.compile(keras.optimizers.Adam(0.01), "mse", run_eagerly=True)
    x = [RNG.integers(0, 9, (3, n)).astype(np.int32) for n in (5, 2)]
    assert ot.from_keras(model, x, numbers(3, 1)).trainable


def test_sparsemax():
    i = keras.Input((4, 6))
    go_on(compiled(i, L.Dense(2)(L.Activation("sparsemax")(L.Dense(6)(i)))), [(numbers(3, 4, 6), numbers(3, 4, 2))] * 2)


def test_circle_loss():
    """Its code asks for the rank of its tensors."""
    i = keras.Input((5,))
    model = compiled(i, L.UnitNormalization()(L.Dense(4)(i)), keras.losses.Circle())
    go_on(model, [(numbers(n, 5), RNG.integers(0, 2, n).astype(np.int32)) for n in (6, 4)])
