"""The layers of the workloads in TensorFlow, channels last."""

import numpy as np
import tensorflow as tf

EPSILON = 1e-5


def padded(x, pad):
    return tf.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0))) if pad else x


class TfLayers:
    """`updates` collects (variable, new value of this batch) of batch normalization's running values."""

    def __init__(self, values, running, xla):
        self.values, self.running, self.updates, self.xla = values, running, [], xla

    def _biased(self, y, name, bias):
        return tf.nn.bias_add(y, self.values[name + ".bias"]) if bias else y

    def linear(self, x, name, inputs, outputs, bias=True, image=()):
        weight = self.values[name + ".weight"]
        if x.shape.rank == 3:
            y = tf.reshape(tf.matmul(tf.reshape(x, (-1, inputs)), weight), (x.shape[0], x.shape[1], outputs))
        else:
            y = tf.matmul(x, weight)
        return self._biased(y, name, bias)

    def conv(self, x, name, inputs, outputs, kernel, stride, pad, groups=1, bias=False):
        same = stride == 1 and pad == kernel // 2
        x = x if same else padded(x, pad)
        mode, weight = "SAME" if same else "VALID", self.values[name + ".weight"]
        if groups > 1:
            weight = tf.transpose(weight, (0, 1, 3, 2)) if weight.shape[2] == 1 else weight
            y = tf.nn.depthwise_conv2d(x, weight, (1, stride, stride, 1), mode)
        else:
            y = tf.nn.conv2d(x, weight, stride, mode)
        return self._biased(y, name, bias)

    def batch_norm(self, x, name, channels):
        weight, bias = self.values[name + ".weight"], self.values[name + ".bias"]
        y, mean, variance = tf.compat.v1.nn.fused_batch_norm(x, weight, bias, epsilon=EPSILON, is_training=True)
        self.updates += [(self.running[name + ".running_mean"], mean), (self.running[name + ".running_var"], variance)]
        return y

    def layer_norm(self, x, name, width):
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        weight, bias = self.values[name + ".weight"], self.values[name + ".bias"]
        return tf.nn.batch_normalization(x, mean, variance, bias, weight, EPSILON)

    def relu(self, x):
        return tf.nn.relu(x)

    def relu6(self, x):
        return tf.nn.relu6(x)

    def gelu(self, x):
        return tf.nn.gelu(x, approximate=False)

    def tanh(self, x):
        return tf.tanh(x)

    def add(self, x, y):
        return x + y

    def dropout(self, x, ratio):
        return tf.nn.dropout(x, ratio) if ratio else x

    def max_pool(self, x, kernel, stride, pad):
        return tf.nn.max_pool2d(padded(x, pad), kernel, stride, "VALID")  # inputs come from ReLU: zero is neutral

    def global_average(self, x):
        return tf.reduce_mean(x, (1, 2))

    def flatten(self, x):
        return tf.reshape(x, (x.shape[0], -1))

    def embedding(self, x, name, words, width):
        return tf.gather(self.values[name + ".weight"], x)

    def position(self, name, length, width):
        return self.values[name + ".weight"]

    def split3(self, x):
        return tf.split(x, 3, -1)

    def attention(self, q, k, v, heads, causal, dropout):
        batch, length, size = q.shape
        width = size // heads
        q, k, v = (tf.transpose(tf.reshape(t, (batch, length, heads, width)), (0, 2, 1, 3)) for t in (q, k, v))
        scores = tf.matmul(q, k, transpose_b=True) * width**-0.5
        if causal:
            scores = scores + np.where(np.tril(np.ones((length, length), bool)), 0.0, -1e9).astype(np.float32)
        p = self.dropout(tf.nn.softmax(scores), dropout)
        return tf.reshape(tf.transpose(tf.matmul(p, v), (0, 2, 1, 3)), (batch, length, size))

    def first_token(self, x):
        return x[:, 0]

    def lstm_last(self, x, name, inputs, hidden):
        weight, recurrent, *biases = (self.values[f"{name}.{part}"] for part in
                                      ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"))
        batch, length, _ = x.shape
        projected = tf.matmul(tf.reshape(x, (-1, inputs)), weight) + (biases[0] + biases[1])
        steps = tf.unstack(tf.reshape(projected, (batch, length, 4 * hidden)), axis=1)
        recurrent = recurrent.read_value()  # once, not at every step

        def cell(now, h, c):
            i, f, g, o = tf.split(now + tf.matmul(h, recurrent), 4, -1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            return tf.sigmoid(o) * tf.tanh(c), c

        h = c = tf.zeros((batch, hidden))
        if self.xla:  # it takes minutes to compile the unrolled graph
            steps = tf.stack(steps)
            return tf.while_loop(lambda k, h, c: k < length, lambda k, h, c: (k + 1, *cell(steps[k], h, c)),
                                 (0, h, c), maximum_iterations=length)[1]
        for now in steps:  # faster than a loop without XLA
            h, c = cell(now, h, c)
        return h
