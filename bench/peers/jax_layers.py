"""The layers of the workloads in JAX, channels last."""

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

EPSILON = 1e-5


class JaxLayers:
    """`running` is read, `updated` collects its new values; `key` is split at every dropout."""

    def __init__(self, values, running, key):
        self.values, self.running, self.updated, self.key = values, running, {}, key

    def linear(self, x, name, inputs, outputs, bias=True, image=()):
        y = x.reshape(-1, inputs) @ self.values[name + ".weight"]  # two dimensions are faster than three
        y = y + self.values[name + ".bias"] if bias else y
        return y.reshape(*x.shape[:-1], outputs)

    def conv(self, x, name, inputs, outputs, kernel, stride, pad, groups=1, bias=False):
        y = lax.conv_general_dilated(x, self.values[name + ".weight"], (stride, stride), ((pad, pad), (pad, pad)),
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)
        return y + self.values[name + ".bias"] if bias else y

    def batch_norm(self, x, name, channels):
        mean = jnp.mean(x, (0, 1, 2))
        variance = jnp.maximum(jnp.mean(x * x, (0, 1, 2)) - mean * mean, 0.0)  # as flax does by default
        count = x.shape[0] * x.shape[1] * x.shape[2]
        unbiased = variance * (count / (count - 1))
        for part, now in ((".running_mean", mean), (".running_var", unbiased)):
            self.updated[name + part] = 0.9 * self.running[name + part] + 0.1 * lax.stop_gradient(now)
        scale = lax.rsqrt(variance + EPSILON) * self.values[name + ".weight"]
        return (x - mean) * scale + self.values[name + ".bias"]

    def layer_norm(self, x, name, width):
        mean = jnp.mean(x, -1, keepdims=True)
        variance = jnp.mean(jnp.square(x - mean), -1, keepdims=True)
        y = (x - mean) * lax.rsqrt(variance + EPSILON)
        return y * self.values[name + ".weight"] + self.values[name + ".bias"]

    def relu(self, x):
        return jax.nn.relu(x)

    def relu6(self, x):
        return jax.nn.relu6(x)

    def gelu(self, x):
        return jax.nn.gelu(x, approximate=False)

    def tanh(self, x):
        return jnp.tanh(x)

    def add(self, x, y):
        return x + y

    def dropout(self, x, ratio):
        if not ratio:
            return x
        self.key, key = jax.random.split(self.key)
        return jnp.where(jax.random.bernoulli(key, 1 - ratio, x.shape), x / (1 - ratio), 0.0)

    def max_pool(self, x, kernel, stride, pad):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, kernel, kernel, 1), (1, stride, stride, 1),
                                 ((0, 0), (pad, pad), (pad, pad), (0, 0)))

    def global_average(self, x):
        return jnp.mean(x, (1, 2))

    def flatten(self, x):
        return x.reshape(x.shape[0], -1)

    def embedding(self, x, name, words, width):
        return jnp.take(self.values[name + ".weight"], x, axis=0)

    def position(self, name, length, width):
        return self.values[name + ".weight"]

    def split3(self, x):
        return jnp.split(x, 3, -1)

    def attention(self, q, k, v, heads, causal, dropout):
        batch, length, size = q.shape
        width = size // heads
        q, k, v = (t.reshape(batch, length, heads, width).transpose(0, 2, 1, 3) for t in (q, k, v))
        scores = (q @ k.transpose(0, 1, 3, 2)) * width**-0.5
        if causal:
            scores = jnp.where(np.tril(np.ones((length, length), bool)), scores, -jnp.inf)
        p = self.dropout(jax.nn.softmax(scores, -1), dropout)
        return (p @ v).transpose(0, 2, 1, 3).reshape(batch, length, size)

    def first_token(self, x):
        return x[:, 0]

    def lstm_last(self, x, name, inputs, hidden):
        weight, recurrent, *biases = (self.values[f"{name}.{part}"] for part in
                                      ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"))
        steps = (x @ weight + (biases[0] + biases[1])).transpose(1, 0, 2)

        def cell(state, now):
            h, c = state
            i, f, g, o = jnp.split(now + h @ recurrent, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zero = jnp.zeros((x.shape[0], hidden), x.dtype)
        return lax.scan(cell, (zero, zero), steps)[0][0]
