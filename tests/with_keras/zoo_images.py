"""Models over images and vectors: name -> (model, loss, x, y) with small sizes and random data."""

import keras
import numpy as np
from keras import layers as L
from keras import ops

N = 8
MODELS = {}


def model(f):
    MODELS[f.__name__] = f
    return f


def rng(seed=0):
    return np.random.default_rng(seed)


def vectors(*shape, seed=0):
    return rng(seed).standard_normal((N, *shape)).astype(np.float32)


def labels(classes, *shape, seed=1):
    return rng(seed).integers(0, classes, (N, *shape))


SPARSE = "sparse_categorical_crossentropy"


@model
def mlp():
    return keras.Sequential([keras.Input((6,)), L.Dense(16, activation="relu"), L.Dense(3, activation="softmax")]), \
        SPARSE, vectors(6), labels(3)


@model
def mlp_logits():
    m = keras.Sequential([keras.Input((6,)), L.Dense(16, activation="tanh"), L.Dense(3)])
    return m, keras.losses.SparseCategoricalCrossentropy(from_logits=True), vectors(6), labels(3)


@model
def regression():
    m = keras.Sequential([keras.Input((5,)), L.Dense(12, activation="gelu"), L.Dense(8, activation="elu"), L.Dense(1)])
    return m, "mse", vectors(5), vectors(1, seed=2)


@model
def binary():
    m = keras.Sequential([keras.Input((5,)), L.Dense(8, activation="swish"), L.Dense(1, activation="sigmoid")])
    return m, "binary_crossentropy", vectors(5), labels(2, 1).astype(np.float32)


@model
def one_hot_targets():
    m = keras.Sequential([keras.Input((5,)), L.Dense(8, activation="selu"), L.Dense(4, activation="softmax")])
    loss = keras.losses.CategoricalCrossentropy(label_smoothing=0.1)
    return m, loss, vectors(5), np.eye(4, dtype=np.float32)[labels(4)]


@model
def regularized():
    m = keras.Sequential([keras.Input((6,)), L.Dense(10, activation="relu", kernel_regularizer="l2",
                                                     bias_regularizer=keras.regularizers.L1L2(0.01, 0.02),
                                                     activity_regularizer=keras.regularizers.L1(0.01)),
                          L.Dense(3, activation="softmax", kernel_regularizer=keras.regularizers.L1(0.003))])
    return m, SPARSE, vectors(6), labels(3)


@model
def constrained():
    c = keras.constraints
    m = keras.Sequential([keras.Input((6,)), L.Dense(10, activation="relu", kernel_constraint=c.MaxNorm(1.0)),
                          L.Dense(8, kernel_constraint=c.UnitNorm(), bias_constraint=c.NonNeg()),
                          L.Dense(3, kernel_constraint=c.MinMaxNorm(0.2, 0.9, rate=0.7))])
    return m, keras.losses.SparseCategoricalCrossentropy(from_logits=True), vectors(6), labels(3)


@model
def normalized():
    m = keras.Sequential([keras.Input((6,)), L.Dense(12), L.LayerNormalization(), L.Activation("relu"), L.Dense(12),
                          L.BatchNormalization(), L.LeakyReLU(), L.Dense(8), L.GroupNormalization(4), L.PReLU(),
                          L.UnitNormalization(), L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(6), labels(3)


@model
def cnn():
    m = keras.Sequential([keras.Input((12, 12, 2)), L.Conv2D(6, 3, activation="relu"), L.MaxPooling2D(),
                          L.Conv2D(8, 3, activation="relu"), L.Flatten(), L.Dense(4, activation="softmax")])
    return m, SPARSE, vectors(12, 12, 2), labels(4)


@model
def cnn_same():
    m = keras.Sequential([keras.Input((13, 12, 3)), L.Conv2D(6, 3, strides=2, padding="same", activation="relu"),
                          L.Conv2D(6, 4, padding="same", dilation_rate=2), L.AveragePooling2D(3, 2, padding="same"),
                          L.Conv2D(8, 3, strides=2, padding="same", activation="relu"),
                          L.MaxPooling2D(2, padding="same"), L.GlobalAveragePooling2D(), L.Dense(4)])
    return m, keras.losses.SparseCategoricalCrossentropy(from_logits=True), vectors(13, 12, 3), labels(4)


@model
def cnn_batchnorm():
    m = keras.Sequential([keras.Input((10, 10, 2)), L.Conv2D(6, 3, use_bias=False), L.BatchNormalization(momentum=0.8),
                          L.ReLU(), L.Conv2D(6, 3), L.BatchNormalization(scale=False), L.ReLU(max_value=6),
                          L.GlobalMaxPooling2D(), L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(10, 10, 2), labels(3)


@model
def frozen_batchnorm():
    m = keras.Sequential([keras.Input((10, 10, 2)), L.Conv2D(6, 3), L.BatchNormalization(trainable=False), L.ReLU(),
                          L.Conv2D(5, 3, trainable=False), L.BatchNormalization(), L.GlobalAveragePooling2D(),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(10, 10, 2), labels(3)


@model
def separable():
    m = keras.Sequential([keras.Input((11, 11, 3)), L.SeparableConv2D(8, 3, padding="same", activation="relu"),
                          L.DepthwiseConv2D(3, depth_multiplier=2, strides=2, padding="same"), L.BatchNormalization(),
                          L.Conv2D(8, 3, groups=4), L.GlobalAveragePooling2D(), L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(11, 11, 3), labels(3)


@model
def autoencoder():
    m = keras.Sequential([keras.Input((8, 8, 2)), L.Conv2D(6, 3, strides=2, padding="same", activation="relu"),
                          L.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu"),
                          L.Conv2DTranspose(3, 2, strides=3, padding="valid"), L.Cropping2D(((1, 2), (3, 1))),
                          L.UpSampling2D(2), L.AveragePooling2D(2), L.Conv2D(2, 3, padding="same")])
    return m, "mae", vectors(8, 8, 2), vectors(21, 20, 2, seed=3)


@model
def upsampled():
    m = keras.Sequential([keras.Input((5, 6, 2)), L.Conv2D(4, 3, padding="same"),
                          L.UpSampling2D(2, interpolation="bilinear"), L.Conv2D(3, 3), L.ZeroPadding2D((1, 2)),
                          L.Conv2D(2, 1)])
    return m, "mse", vectors(5, 6, 2), vectors(10, 14, 2, seed=3)


@model
def residual():
    x = inputs = keras.Input((10, 10, 3), name="image")
    x = L.Conv2D(8, 3, padding="same")(x)
    for k in range(2):
        y = L.BatchNormalization()(x)
        y = L.Activation("relu")(y)
        y = L.Conv2D(8, 3, padding="same", name=f"c{k}")(y)
        x = L.Add()([x, y])
    x = L.Concatenate()([x, L.MaxPooling2D(3, 1, padding="same")(x)])
    x = L.Multiply()([x, L.Reshape((1, 1, 16))(L.Dense(16, activation="sigmoid")(L.GlobalAveragePooling2D()(x)))])
    x = L.Dense(4, activation="softmax", name="class")(L.Flatten()(x))
    return keras.Model(inputs, x), SPARSE, vectors(10, 10, 3), labels(4)


@model
def conv1d():
    m = keras.Sequential([keras.Input((14, 3)), L.Conv1D(6, 3, padding="causal", dilation_rate=2, activation="relu"),
                          L.Conv1D(6, 4, strides=2, padding="same"), L.MaxPooling1D(2), L.SeparableConv1D(5, 2),
                          L.Conv1DTranspose(4, 3, strides=2), L.GlobalAveragePooling1D(),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(14, 3), labels(3)


@model
def conv3d():
    m = keras.Sequential([keras.Input((6, 7, 6, 2)), L.Conv3D(4, 3, padding="same", activation="relu"),
                          L.MaxPooling3D(2), L.Conv3DTranspose(3, 2, strides=2), L.GlobalAveragePooling3D(),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(6, 7, 6, 2), labels(3)


@model
def preprocessing():
    m = keras.Sequential([keras.Input((8, 8, 3)), L.Rescaling(1 / 127.5, offset=-1), L.Resizing(10, 12),
                          L.CenterCrop(9, 9), L.Conv2D(4, 3), L.GlobalAveragePooling2D(),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, (vectors(8, 8, 3) * 30 + 120).astype(np.float32), labels(3)


@model
def standardized():
    n = L.Normalization()
    n.adapt(vectors(6) * 3 + 1)
    m = keras.Sequential([keras.Input((6,)), n, L.Dense(9, activation="softplus"), L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(6), labels(3)


@model
def categories():
    a, b = keras.Input((1,), name="bin"), keras.Input((4,), name="numbers")
    d = L.Discretization(bin_boundaries=[-0.5, 0.0, 0.7])(a)
    hot = L.CategoryEncoding(num_tokens=4, output_mode="one_hot")(d)
    x = L.Concatenate()([hot, L.Dense(5)(b)])
    return keras.Model([a, b], L.Dense(2, activation="softmax")(x)), SPARSE, [vectors(1), vectors(4, seed=5)], labels(2)


@model
def two_in_two_out():
    a, b = keras.Input((6,), name="left"), keras.Input((4,), name="right")
    shared = L.Dense(5, activation="relu", name="shared")
    h = L.Dense(5)(b)
    x = L.Concatenate()([shared(L.Dense(5)(a)), shared(h)])
    kind, size = L.Dense(3, activation="softmax", name="kind")(x), L.Dense(1, name="size")(x)
    m = keras.Model([a, b], {"kind": kind, "size": size})
    loss = {"kind": SPARSE, "size": "mse"}
    y = {"kind": labels(3), "size": vectors(1, seed=7)}
    return m, (loss, {"kind": 0.7, "size": 0.2}), [vectors(6), vectors(4, seed=5)], y


@model
def nested():
    def inner(name):
        return keras.Sequential([keras.Input((5,)), L.Dense(6, activation="relu", name="d"), L.Dense(5, name="out")],
                                name=name)
    i = keras.Input((5,))
    x = inner("first")(i)
    x = L.Add()([x, inner("second")(x)])
    return keras.Model(i, L.Dense(3, activation="softmax")(x)), SPARSE, vectors(5), labels(3)


class Scale(L.Layer):
    """Its own weight, its own statistic, its own loss."""

    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],), initializer="ones", name="gain")
        self.seen = self.add_weight(shape=(), initializer="zeros", trainable=False, name="seen")

    def call(self, x, training=False):
        if training:
            self.seen.assign(self.seen * 0.9 + ops.mean(ops.abs(x)) * 0.1)
        self.add_loss(0.01 * ops.sum(ops.square(self.gain)))
        strength = ops.exp(self.gain) + ops.square(self.gain)
        return x * strength / (1 + self.seen)


@model
def own_layers():
    m = keras.Sequential([keras.Input((6,)), L.Dense(8, activation="relu"), Scale(), L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(6), labels(3)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.norm = L.Dense(8, name="first"), L.BatchNormalization(name="norm")
        self.parts = [L.Dense(8, activation="tanh", name=f"part{k}") for k in range(2)]
        self.head = L.Dense(3, name="head")

    def call(self, x, training=False):
        x = self.norm(self.first(x), training=training)
        for p in self.parts:
            x = x + p(x)
        if training:
            x = ops.clip(x, -3.0, 3.0)
        batch = ops.shape(x)[0]
        x = ops.reshape(x, (batch, 2, 4))
        return ops.softmax(self.head(ops.reshape(ops.transpose(x, (0, 2, 1)), (batch, -1))))


@model
def subclassed():
    m = Subclassed()
    m(np.zeros((2, 6), np.float32))
    return m, SPARSE, vectors(6), labels(3)


def own_loss(y, p):
    return ops.mean(ops.sqrt(ops.square(y - p) + 0.01), axis=-1) + 0.1 * ops.logsumexp(p, axis=-1)


@model
def loss_in_ops():
    m = keras.Sequential([keras.Input((5,)), L.Dense(8, activation="mish"), L.Dense(4)])
    return m, own_loss, vectors(5), vectors(4, seed=3)


@model
def maxout():
    i = keras.Input((6,))
    x = L.Maximum()([L.Dense(5)(i), L.Dense(5)(i)])
    x = L.Subtract()([x, L.Minimum()([L.Dense(5)(i), L.Dense(5)(i)])])
    x = L.Average()([x, L.Dense(5, activation="hard_sigmoid")(i)])
    x = L.Dot(axes=1)([x, L.Dense(5)(i)])
    return keras.Model(i, x), "huber", vectors(6), vectors(1, seed=4)


@model
def channels_first():
    i = keras.Input((2, 9, 9))
    x = L.Permute((2, 3, 1))(i)
    x = L.Conv2D(5, 3, activation="relu")(x)
    x = L.Permute((3, 1, 2))(x)
    return keras.Model(i, L.Dense(3, activation="softmax")(L.Flatten()(x))), SPARSE, vectors(2, 9, 9), labels(3)


@model
def spectral():
    m = keras.Sequential([keras.Input((6,)), L.SpectralNormalization(L.Dense(8)), L.ELU(),
                          L.Dense(3, activation="softmax")])
    return m, SPARSE, vectors(6), labels(3)


@model
def separate_losses():
    i = keras.Input((6,))
    x = L.Dense(6, activation="softsign")(i)
    m = keras.Model(i, [L.Dense(1, activation="sigmoid", name="p")(x), L.Dense(4, activation="softmax", name="q")(x),
                        L.Dense(2, name="r")(x)])
    y = [labels(2, 1).astype(np.float32), rng(3).dirichlet(np.ones(4), N).astype(np.float32), vectors(2, seed=9)]
    return m, (["binary_focal_crossentropy", "kl_divergence", "log_cosh"], [1.0, 0.5, 2.0]), vectors(6), y
