"""Functions of TensorFlow that `from_tf` is tried with: {name: () -> (function, examples, holder of the variables)}.

Layers of Keras are the usual way to many operations; the functions here call them, or TensorFlow itself.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

RNG = np.random.default_rng(0)
IMAGE = RNG.normal(size=(2, 8, 8, 4)).astype(np.float32)
SEQUENCE = RNG.normal(size=(2, 6, 5)).astype(np.float32)
ROWS = RNG.normal(size=(3, 5)).astype(np.float32)
VOLUME = RNG.normal(size=(2, 4, 4, 4, 2)).astype(np.float32)
IDS = np.array([[1, 2, 3, 0, 0, 0], [4, 5, 1, 2, 9, 0]], np.int32)
WIDE = RNG.normal(size=(2, 6, 8)).astype(np.float32)

LAYERS = {
    "conv": (lambda: [L.Conv2D(3, 3, padding="same", strides=2), L.BatchNormalization(), L.ReLU(), L.MaxPooling2D(),
                      L.Flatten(), L.Dense(3, activation="softmax")], IMAGE),
    "depthwise": (lambda: [L.DepthwiseConv2D(3), L.SeparableConv2D(4, 3), L.AveragePooling2D(2),
                           L.GlobalAveragePooling2D()], IMAGE),
    "transposed": (lambda: [L.Conv2DTranspose(2, 3, 2, padding="same"), L.UpSampling2D(),
                            L.UpSampling2D(interpolation="bilinear"), L.ZeroPadding2D(), L.Cropping2D(),
                            L.Conv2DTranspose(2, 2, 2, padding="valid")], IMAGE),
    "normalizations": (lambda: [L.Conv2D(4, 3, dilation_rate=2), L.GroupNormalization(2), L.LayerNormalization(),
                                L.GlobalMaxPooling2D(), L.Reshape((2, 2)), L.Permute((2, 1))], IMAGE),
    "grouped": (lambda: [L.Conv2D(4, 3, groups=2, padding="same"), L.PReLU(shared_axes=[1, 2])], IMAGE),
    "3d": (lambda: [L.Conv3D(2, 2), L.MaxPooling3D(2), L.Conv3DTranspose(2, 2), L.Flatten()], VOLUME),
    "1d": (lambda: [L.Conv1D(4, 3, padding="causal", dilation_rate=2), L.Conv1DTranspose(3, 3), L.MaxPooling1D(2),
                    L.AveragePooling1D(2), L.UpSampling1D(2), L.GlobalMaxPooling1D()], SEQUENCE),
    "lstm": (lambda: [L.LSTM(4, return_sequences=True), L.GRU(3)], SEQUENCE),
    "bidirectional": (lambda: [L.Bidirectional(L.LSTM(3)), L.Dense(2)], SEQUENCE),
    "rnn": (lambda: [L.SimpleRNN(3, return_sequences=True), L.TimeDistributed(L.Dense(3)),
                     L.GRU(3, reset_after=False, go_backwards=True)], SEQUENCE),
    "masked": (lambda: [L.Embedding(10, 4, mask_zero=True), L.LSTM(4), L.Dense(3), L.UnitNormalization()], IDS),
}
ACTIVATIONS = ["elu", "selu", "gelu", "silu", "softplus", "softsign", "hard_sigmoid", "hard_silu", "mish", "leaky_relu",
               "relu6", "exponential", "tanh", "sigmoid", "log_softmax", "celu", "glu", "hard_tanh", "tanh_shrink",
               "soft_shrink", "hard_shrink", "squareplus", "sparse_plus", "log_sigmoid", "sparsemax"]
LOSSES = ["MeanSquaredError", "MeanAbsoluteError", "Huber", "KLDivergence", "Poisson", "LogCosh", "CosineSimilarity",
          "Hinge", "SquaredHinge", "CategoricalHinge", "MeanSquaredLogarithmicError", "MeanAbsolutePercentageError",
          "BinaryCrossentropy", "CategoricalCrossentropy", "BinaryFocalCrossentropy", "CategoricalFocalCrossentropy",
          "Dice", "Tversky"]


def forward(model, x, training=False):
    """A function of a Keras model with an open batch."""
    model(x)

    @tf.function(input_signature=[tf.TensorSpec([None, *x.shape[1:]], x.dtype, "x")], autograph=False)
    def call(x):
        return model(x, training=training)

    return call, x, model


def with_loss(model, x, target, loss, training=True):
    """forward + loss: {"loss", "scores"}."""
    model(x)
    specs = [tf.TensorSpec([None, *v.shape[1:]], v.dtype, n) for n, v in (("x", x), ("target", target))]

    @tf.function(input_signature=specs, autograph=False)
    def call(x, target):
        y = model(x, training=training)
        return {"loss": loss(target, y), "scores": y}

    return call, (x, target), model


def attention():
    keras.utils.set_random_seed(1)
    i = keras.Input((6, 8))
    a = L.MultiHeadAttention(2, 4)(i, i, use_causal_mask=True)
    b = L.Attention()([i, a])
    c = L.AdditiveAttention()([i, b])
    o = L.Concatenate()([L.Add()([a, b]), L.Multiply()([a, c]), L.Subtract()([a, b]), L.Maximum()([a, b]),
                         L.Average()([a, c])])
    return keras.Model(i, L.Dot(1)([o, o]))


def _cases():
    made = {}
    for name, (make, x) in LAYERS.items():
        for training in (False, True):
            def build(make=make, x=x, training=training):
                keras.utils.set_random_seed(1)
                return forward(keras.Sequential(make()), x, training)

            made[f"{name}{' training' if training else ''}"] = build
    made["attention"] = lambda: forward(attention(), WIDE)

    def activations():
        keras.utils.set_random_seed(1)
        i = keras.Input((5,))
        model = keras.Model(i, {a: L.Dense(6, activation=a)(i) for a in ACTIVATIONS})
        return forward(model, ROWS)

    made["activations"] = activations
    for name in LOSSES:
        def build(name=name):
            keras.utils.set_random_seed(1)
            model = keras.Sequential([L.Dense(3, activation="softmax")])
            return with_loss(model, ROWS, np.eye(3, dtype=np.float32), getattr(keras.losses, name)())

        made[f"loss {name}"] = build

    def sparse():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([L.Dense(4, activation="relu"), L.Dropout(0.0), L.Dense(3)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return with_loss(model, ROWS, np.array([0, 2, 1], np.int64), loss)

    made["loss sparse"] = sparse
    return made


CASES = _cases()
