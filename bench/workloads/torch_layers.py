"""The layers of the workloads in PyTorch, and a module that trains a workload under PyTorch's parameter names."""

import torch
from torch import nn
from torch.nn import functional as F

EPSILON = 1e-5


class TorchLayers:
    def __init__(self, values, training):
        self.values, self.training = values, training
        self.lstm = torch.lstm

    def _bias(self, name, bias):
        return self.values[name + ".bias"] if bias else None

    def linear(self, x, name, inputs, outputs, bias=True, image=()):
        return F.linear(x, self.values[name + ".weight"], self._bias(name, bias))

    def conv(self, x, name, inputs, outputs, kernel, stride, pad, groups=1, bias=False):
        return F.conv2d(x, self.values[name + ".weight"], self._bias(name, bias), stride, pad, 1, groups)

    def batch_norm(self, x, name, channels):
        mean, variance, weight, bias = (self.values[f"{name}.{part}"]
                                        for part in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(x, mean, variance, weight, bias, self.training, 0.1, EPSILON)

    def layer_norm(self, x, name, width):
        return F.layer_norm(x, (width,), self.values[name + ".weight"], self.values[name + ".bias"], EPSILON)

    def relu(self, x):
        return F.relu(x)

    def relu6(self, x):
        return F.relu6(x)

    def gelu(self, x):
        return F.gelu(x)

    def tanh(self, x):
        return torch.tanh(x)

    def add(self, x, y):
        return x + y

    def dropout(self, x, ratio):
        return F.dropout(x, ratio, self.training) if ratio else x

    def max_pool(self, x, kernel, stride, pad):
        return F.max_pool2d(x, kernel, stride, pad)

    def global_average(self, x):
        return F.adaptive_avg_pool2d(x, 1).flatten(1)

    def flatten(self, x):
        return x.flatten(1)

    def embedding(self, x, name, words, width):
        return F.embedding(x, self.values[name + ".weight"])

    def position(self, name, length, width):
        return self.values[name + ".weight"]

    def split3(self, x):
        return x.chunk(3, -1)

    def attention(self, q, k, v, heads, causal, dropout):
        batch, length, size = q.shape
        q, k, v = (t.view(batch, length, heads, size // heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout if self.training else 0.0, is_causal=causal)
        return y.transpose(1, 2).reshape(batch, length, size)

    def first_token(self, x):
        return x[:, 0]

    def lstm_last(self, x, name, inputs, hidden):
        state = x.new_zeros(1, x.shape[0], hidden)
        parts = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        weights = [self.values[f"{name}.{part}"] for part in parts]
        return self.lstm(x, (state, state), weights, True, 1, 0.0, self.training, False, True)[0][:, -1]


class Network(nn.Module):
    """forward(x) -> logits"""

    def __init__(self, workload):
        super().__init__()
        self.workload = workload
        for values, trained in ((workload.parameters(), True), (workload.running(), False)):
            for name, value in values.items():
                self._register(name, torch.from_numpy(value.copy()), trained)
        self.bind()

    def _register(self, name, tensor, trained):
        *path, leaf = name.split(".")
        module = self
        for part in path:
            if part not in module._modules:
                module.add_module(part, nn.Module())
            module = module._modules[part]
        if trained:
            module.register_parameter(leaf, nn.Parameter(tensor))
        else:
            module.register_buffer(leaf, tensor)

    def bind(self):
        """Again after tensors were replaced (another memory format)."""
        values = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        object.__setattr__(self, "layers", TorchLayers(values, self.training))

    def train(self, mode=True):
        super().train(mode)
        if "layers" in self.__dict__:
            self.layers.training = mode
        return self

    def forward(self, x):
        return self.workload.build(self.layers, x)


def cross_entropy(logits, labels):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def optimizer_of(workload, parameters, **more):
    o = workload.optimizer
    if o.kind == "sgd":
        return torch.optim.SGD(parameters, lr=o.lr, momentum=o.momentum, weight_decay=o.weight_decay, **more)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[o.kind]
    return kind(parameters, lr=o.lr, betas=(o.beta1, o.beta2), eps=o.eps, weight_decay=o.weight_decay, **more)
