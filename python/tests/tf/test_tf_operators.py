"""Operators where TensorFlow has conventions of its own (padding SAME, depth before space, half-pixel resizing):
outputs and gradients of the ONNX form against TensorFlow's, in float64."""

import numpy as np
import pytest
import tensorflow as tf

import onnxtrain as ot


def last(x):
    return tf.transpose(x, [0, 2, 3, 1])


def first(x):
    return tf.transpose(x, [0, 3, 1, 2])


def conv(x, w):
    return first(tf.nn.conv2d(last(x), tf.transpose(w, [2, 3, 1, 0]), 2, "SAME"))


def depthwise(x, w):
    return first(tf.nn.depthwise_conv2d(last(x), tf.transpose(w, [2, 3, 0, 1]), [1, 2, 2, 1], "SAME"))


def transposed(x, w):
    return first(tf.nn.conv2d_transpose(last(x), tf.transpose(w, [2, 3, 1, 0]), [2, 14, 10, 3], 2, "SAME"))


def average(x, _):
    return first(tf.nn.avg_pool2d(last(x), 3, 2, "SAME"))


def largest(x, _):
    return first(tf.nn.max_pool2d(last(x), 2, 2, "SAME"))


def resize(x, _):
    return first(tf.image.resize(last(x), [11, 8], "bilinear"))


def spread(x, _):
    return first(tf.nn.depth_to_space(last(x), 2))


X = (2, 4, 7, 5)
CASES = {  # TensorFlow's function, the node, the shape of w
    "Conv": (conv, 'y = Conv <auto_pad = "SAME_UPPER", kernel_shape = [2, 3], strides = [2, 2]> (x, w)', (6, 4, 2, 3)),
    "Conv depthwise": (depthwise, 'y = Conv <auto_pad = "SAME_UPPER", group = 4, kernel_shape = [3, 2], strides = [2, '
                                  '2]>'
                       ' (x, w)', (4, 1, 3, 2)),
    "ConvTranspose": (transposed, 'y = ConvTranspose <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [2, 2]>'
                      ' (x, w)', (4, 3, 3, 3)),
    "AveragePool": (average, 'y = AveragePool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3], strides = [2, 2]> (x)',
                    None),
    "MaxPool": (largest, 'y = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [2, 2], strides = [2, 2]> (x)', None),
    "Resize": (resize, 's = Constant <value_ints = [2, 4, 11, 8]> () y = Resize <mode = "linear"> (x, , , s)', None),
    "DepthToSpace": (spread, "y = DepthToSpace <blocksize = 2> (x)", None),
}


@pytest.mark.parametrize("name", CASES)
def test_output_and_gradients(name):
    function, node, shape = CASES[name]
    rng = np.random.default_rng(3)
    feeds = {"x": rng.standard_normal(X)} | ({"w": rng.standard_normal(shape)} if shape else {})
    inputs = ", ".join(f"double[{','.join(map(str, v.shape))}] {n}" for n, v in feeds.items())
    model = ot.parse(f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => (double[a,b,c,d] y) {{ {node} }}')
    given = {n: tf.constant(v) for n, v in feeds.items()}
    with tf.GradientTape() as tape:
        tape.watch(given)
        want = function(given["x"], given.get("w"))
        cotangent = rng.standard_normal(want.shape)
        total = tf.reduce_sum(tf.cast(want, tf.float64) * cotangent)
    tolerance = 1e-5 if want.dtype == tf.float32 else 1e-12  # tf.image.resize answers in float32
    np.testing.assert_allclose(ot.Session(model).run(feeds)["y"], want.numpy(), rtol=tolerance, atol=tolerance)
    gradients = ot.gradients(model, feeds, of="y", wrt=list(feeds), cotangent={"y": cotangent})
    for n, g in tape.gradient(total, given).items():
        np.testing.assert_allclose(gradients[n], g.numpy(), rtol=tolerance, atol=tolerance, err_msg=n)
