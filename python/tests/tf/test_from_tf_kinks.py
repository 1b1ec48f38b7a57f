"""Zeros, ties and labels that do not sum to 1: the file's gradients there are TensorFlow's own. The self-check compares
them; a file that differs is not returned."""

import numpy as np
import pytest
import tensorflow as tf

import onnxtrain as ot

X = np.random.default_rng(2).integers(-2, 3, (6, 5)).astype(np.float32)
X[0] = 0
LABELS = np.random.default_rng(3).integers(0, 2, (6, 5)).astype(np.float32)
LABELS[1], LABELS[2] = 0, 1
FUNCTIONS = {
    "selu": tf.nn.selu, "relu6": tf.nn.relu6, "maximum": lambda z: tf.maximum(z, 0.0),
    "clip": lambda z: tf.clip_by_value(z, -1.0, 1.0), "norm": lambda z: tf.norm(z, axis=-1, keepdims=True) * z,
    "root": lambda z: tf.where(z > 0, tf.sqrt(z * z), z),
    "inverse root": lambda z: z * tf.minimum(tf.math.rsqrt(tf.reduce_sum(z * z, -1, keepdims=True)), 1e7),
    "unit length": lambda z: tf.math.l2_normalize(z, -1),
    "labels of several classes and of none": lambda z: tf.nn.softmax_cross_entropy_with_logits(LABELS, z),
    "a logit of zero": lambda z: tf.nn.sigmoid_cross_entropy_with_logits(LABELS, z),
}


class Module(tf.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.w, self.b = tf.Variable(tf.ones(5), name="w"), tf.Variable(tf.zeros(5), name="b")

    @tf.function(input_signature=[tf.TensorSpec((6, 5), tf.float32)], autograph=False)
    def __call__(self, x):
        return self.f(x * self.w + self.b)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    module = Module(FUNCTIONS[name])
    file = ot.from_tf(module, inputs=[X])
    with tf.GradientTape() as tape:
        made = module(tf.constant(X))
    want = tape.gradient(made, [module.w, module.b])
    got = ot.gradients(file, {file.inputs[0]: X}, wrt=["w", "b"])
    for n, g in zip("wb", want):
        np.testing.assert_allclose(got[n], g, rtol=1e-5, atol=1e-5)
