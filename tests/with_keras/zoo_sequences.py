"""Models over sequences: embeddings, recurrent layers with and without masks, attention."""

import keras
import numpy as np
from keras import layers as L
from keras import ops

from zoo_images import SPARSE, N, labels, model, rng, vectors

T = 7


def tokens(seed=0, high=9, length=T):
    return rng(seed).integers(1, high, (N, length)).astype(np.int32)


def padded(side):
    """Sequences of several lengths, zeros on one side or in the middle."""
    x = tokens()
    for k in range(N):
        n = k % 4
        if n:
            x[k, slice(T - n, T) if side == "right" else slice(0, n) if side == "left" else slice(2, 2 + n)] = 0
    return x


@model
def bag_of_words():
    m = keras.Sequential([keras.Input((T,), dtype="int32"), L.Embedding(9, 5), L.GlobalAveragePooling1D(),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, tokens(), labels(3)


@model
def lstm():
    m = keras.Sequential([keras.Input((T, 4)), L.LSTM(6), L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(T, 4), labels(3)


@model
def lstm_stacked():
    m = keras.Sequential([keras.Input((T, 4)), L.LSTM(5, return_sequences=True),
                          L.LSTM(4, go_backwards=True, unit_forget_bias=False), L.Dense(2)])
    return m, "mse", vectors(T, 4), vectors(2, seed=3)


@model
def gru():
    m = keras.Sequential([keras.Input((T, 4)), L.GRU(6, return_sequences=True), L.GRU(5, reset_after=False),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(T, 4), labels(3)


@model
def simple_rnn():
    m = keras.Sequential([keras.Input((T, 4)), L.SimpleRNN(6, return_sequences=True), L.SimpleRNN(4, activation="relu"),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(T, 4), labels(3)


@model
def bidirectional():
    m = keras.Sequential([keras.Input((T, 4)), L.Bidirectional(L.LSTM(4, return_sequences=True)),
                          L.Bidirectional(L.GRU(3), merge_mode="sum"), L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(T, 4), labels(3)


@model
def lstm_masked_right():
    m = keras.Sequential([keras.Input((T,), dtype="int32"), L.Embedding(9, 5, mask_zero=True), L.LSTM(6),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, padded("right"), labels(3)


@model
def lstm_masked_left():
    m = keras.Sequential([keras.Input((T,), dtype="int32"), L.Embedding(9, 5, mask_zero=True),
                          L.LSTM(6, return_sequences=True), L.GRU(4), L.Dense(3, activation="softmax")])
    return m, SPARSE, padded("left"), labels(3)


@model
def gru_masked_holes():
    m = keras.Sequential([keras.Input((T,), dtype="int32"), L.Embedding(9, 5, mask_zero=True),
                          L.Bidirectional(L.GRU(4, return_sequences=True)), L.Dense(3, activation="softmax")])
    return m, SPARSE, padded("holes"), labels(3, T)


@model
def tagged():
    i = keras.Input((T, 3))
    x = L.Masking(0.0)(i)
    x = L.LSTM(5, return_sequences=True)(x)
    data = vectors(T, 3)
    data[::2, :2] = 0
    return keras.Model(i, L.TimeDistributed(L.Dense(2))(x)), "mse", data, vectors(T, 2, seed=3)


@model
def encoder_decoder():
    a, b = keras.Input((T, 3), name="source"), keras.Input((5, 2), name="shifted")
    _, h, c = L.LSTM(4, return_state=True)(a)
    y = L.LSTM(4, return_sequences=True)(b, initial_state=[h, c])
    return keras.Model([a, b], L.Dense(3, activation="softmax")(y)), SPARSE, [vectors(T, 3), vectors(5, 2, seed=4)], \
        labels(3, 5)


@model
def open_length():
    m = keras.Sequential([keras.Input((None, 4)), L.Conv1D(5, 3, padding="same"), L.GRU(5),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(T, 4), labels(3)


@model
def own_cell():
    class Cell(L.Layer):
        state_size = 4

        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1], 4), name="w")
            self.u = self.add_weight(shape=(4, 4), name="u", initializer="orthogonal")

        def call(self, x, states):
            h = ops.tanh(ops.matmul(x, self.w) + ops.matmul(states[0], self.u)) * 0.9
            return h, [h]

    m = keras.Sequential([keras.Input((T, 3)), L.RNN(Cell()), L.Dense(2)])
    return m, "mse", vectors(T, 3), vectors(2, seed=4)


@model
def stacked_cells():
    m = keras.Sequential([keras.Input((T, 3)), L.RNN([L.LSTMCell(4), L.GRUCell(3)]), L.Dense(2)])
    return m, "mse", vectors(T, 3), vectors(2, seed=4)


@model
def conv_lstm():
    m = keras.Sequential([keras.Input((4, 5, 5, 2)), L.ConvLSTM2D(3, 3, padding="same"), L.GlobalAveragePooling2D(),
                          L.Dense(2, activation="softmax")])
    return m, SPARSE, vectors(4, 5, 5, 2), labels(2)


class Block(L.Layer):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.attention = L.MultiHeadAttention(2, 4, name="attention")
        self.n1, self.n2 = L.LayerNormalization(name="n1"), L.LayerNormalization(name="n2")
        self.up, self.down = L.Dense(16, activation="gelu", name="up"), L.Dense(8, name="down")
        self.supports_masking = True

    def build(self, shape):
        self.attention.build(shape, shape)
        self.n1.build(shape)
        self.n2.build(shape)
        self.up.build(shape)
        self.down.build((*shape[:-1], 16))

    def call(self, x, mask=None):
        mask = None if mask is None else mask[:, None, :]
        x = self.n1(x + self.attention(x, x, use_causal_mask=True, attention_mask=mask))
        return self.n2(x + self.down(self.up(x)))


@model
def transformer():
    i = keras.Input((T,), dtype="int32")
    x = L.Embedding(9, 8, mask_zero=True, name="tokens")(i)
    x = Block(name="b0")(x)
    x = Block(name="b1")(x)
    return keras.Model(i, L.Dense(9, activation="softmax")(x)), SPARSE, padded("right"), labels(9, T)


@model
def attention():
    i = keras.Input((T, 4))
    q = L.Dense(4)(i)
    x = L.Attention(use_scale=True)([q, i])
    x = L.AdditiveAttention()([x, i])
    x = L.GroupQueryAttention(4, 4, 2)(x, x)
    x = L.GlobalMaxPooling1D()(x)
    return keras.Model(i, L.Dense(3, activation="softmax")(x)), SPARSE, vectors(T, 4), labels(3)


@model
def tied_embedding():
    class Tied(L.Layer):
        def __init__(self):
            super().__init__()
            self.table = L.Embedding(9, 5, name="table")

        def build(self, shape):
            self.table.build(shape)

        def call(self, x):
            return ops.matmul(ops.mean(self.table(x), axis=1), ops.transpose(self.table.embeddings))

    m = keras.Sequential([keras.Input((T,), dtype="int32"), Tied()])
    return m, keras.losses.SparseCategoricalCrossentropy(from_logits=True), tokens(), labels(9)


@model
def two_embeddings():
    i = keras.Input((T,), dtype="int32")
    table = L.Embedding(9, 5)
    x = L.Concatenate()([L.Flatten()(table(i)), L.Flatten()(table(L.Lambda(lambda v: v % 3)(i)))])
    return keras.Model(i, L.Dense(2, activation="softmax")(x)), SPARSE, tokens(), labels(2)
