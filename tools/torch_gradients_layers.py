"""Convolutions, pools, normalisations, recurrent layers and attention."""

import numpy as np
import torch
import torch.nn.functional as F


def convolutions(b):
    for dims, conv, transpose in ((1, F.conv1d, F.conv_transpose1d), (2, F.conv2d, F.conv_transpose2d),
                                  (3, F.conv3d, F.conv_transpose3d)):
        size = [5, 4, 3][:dims]
        for group, stride, pad, dilation in ((1, 1, 0, 1), (2, 2, 1, 1), (1, 1, 1, 2)):
            attrs = {"group": group, "strides": [stride] * dims, "pads": [pad] * 2 * dims,
                     "dilations": [dilation] * dims}
            if dilation == 2 and dims == 3:
                continue
            b.add("Conv", [b.normal(2, 4, *size), b.normal(6, 4 // group, *[2] * dims), b.normal(6)],
                  lambda x, w, c, f=conv, g=group, s=stride, p=pad, d=dilation: f(x, w, c, s, p, d, g), attrs,
                  name=f"Conv {dims}d")
            b.add("ConvTranspose", [b.normal(2, 4, *size), b.normal(4, 6 // group, *[2] * dims), b.normal(6)],
                  lambda x, w, c, f=transpose, g=group, s=stride, p=pad, d=dilation: f(x, w, c, s, p, 0, g, d), attrs,
                  name=f"ConvTranspose {dims}d")
    b.add("Conv", [b.normal(2, 4, 5, 5), b.normal(8, 1, 3, 3)], lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 4),
          {"group": 4, "pads": [1, 1, 1, 1]}, name="Conv depthwise")


def pools(b):
    x, ties = b.normal(2, 3, 6, 5), b.whole(2, 3, 6, 5)
    square = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]}
    b.add("MaxPool", [ties], lambda v: F.max_pool2d(v, (3, 2), (2, 1), (1, 0)), square, name="MaxPool ties")
    b.add("MaxPool", [x], lambda v: F.max_pool2d(v, 2, 2, 0, 2),
          {"kernel_shape": [2, 2], "strides": [2, 2], "dilations": [2, 2]})
    for include in (0, 1):
        b.add("AveragePool", [x],
              lambda v, i=include: F.avg_pool2d(v, (3, 2), (2, 1), (1, 0), count_include_pad=bool(i)),
              {**square, "count_include_pad": include})
    b.add("LpPool", [np.abs(x) + 0.1],
          lambda v: (v.abs() ** 3).unfold(2, 3, 2).unfold(3, 2, 1).sum((-1, -2)) ** (1 / 3),
          {"kernel_shape": [3, 2], "strides": [2, 1], "p": 3})
    b.add("GlobalAveragePool", [x], lambda v: F.adaptive_avg_pool2d(v, 1))
    b.add("GlobalMaxPool", [ties], lambda v: F.adaptive_max_pool2d(v, 1), name="GlobalMaxPool ties")
    pooled, where = F.max_pool2d(torch.tensor(x[..., :4]), 2, 2, return_indices=True)
    flat = where.numpy() + (np.arange(6).reshape(2, 3, 1, 1) * 24)
    b.add("MaxUnpool", [pooled.numpy(), flat], lambda v, _: F.max_unpool2d(v, where, 2, 2),
          {"kernel_shape": [2, 2], "strides": [2, 2]})


def norms(b):
    x, w, c = b.normal(3, 4, 5), b.normal(4), b.normal(4)
    mean, var = b.normal(4), b.positive(4)
    b.add("BatchNormalization", [x, w, c, mean,
                                 var], lambda v, s, t, m, q: F.batch_norm(v, m, q, s, t, False, eps=1e-5),
          {"epsilon": 1e-5}, wrt=[0, 1, 2])
    b.add("BatchNormalization", [x, w, c, mean, var],
          lambda v, s, t, m, q: (F.batch_norm(v, None, None, s, t, True, eps=1e-5), None, None),
          {"epsilon": 1e-5, "training_mode": 1}, wrt=[0, 1, 2], name="BatchNormalization training")
    b.add("InstanceNormalization", [x, w, c], lambda v, s, t: F.instance_norm(v, None, None, s, t), {"epsilon": 1e-5})
    b.add("GroupNormalization", [x, w, c], lambda v, s, t: F.group_norm(v, 2, s, t), {"num_groups": 2, "epsilon": 1e-5})
    b.add("LayerNormalization", [x, b.normal(4, 5), b.normal(4, 5)], lambda v, s, t: F.layer_norm(v, (4, 5), s, t),
          {"axis": 1, "epsilon": 1e-5})
    b.add("RMSNormalization", [x, b.normal(5)], lambda v, s: F.rms_norm(v, (5,), s, 1e-5), {"epsilon": 1e-5}, opset=23)
    b.add("LRN", [b.normal(2, 5, 3)], lambda v: F.local_response_norm(v, 3, 0.0002, 0.5, 2.0),
          {"size": 3, "alpha": 0.0002, "beta": 0.5, "bias": 2.0})
    b.add("LpNormalization", [x], lambda v: F.normalize(v, 2, 1), {"axis": 1, "p": 2})
    b.add("MeanVarianceNormalization", [b.normal(2, 3, 2, 2)],
          lambda v: (v - v.mean((0, 2, 3), keepdim=True)) / (v.var((0, 2, 3), correction=0, keepdim=True).sqrt()
                                                             + 1e-9))


def recurrent(b):
    steps, batch, size, hidden = 4, 2, 3, 3
    for bidirectional in (False, True):
        d = 2 if bidirectional else 1
        direction = {"direction": "bidirectional"} if bidirectional else {}
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            # ONNX's order of gates -> PyTorch's
            order = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}[op]
            x, h0 = b.normal(steps, batch, size), b.normal(d, batch, hidden)
            w, r = b.normal(d, gates * hidden, size), b.normal(d, gates * hidden, hidden)
            bias = b.normal(d, 2 * gates * hidden)
            c0 = b.normal(d, batch, hidden)

            def gate(m, o=order):
                return torch.cat([m[k * hidden:(k + 1) * hidden] for k in o])

            def run(x, w, r, bias, _, h, c=None, op=op, d=d, gates=gates, gate=gate):
                weights = []
                for k in range(d):
                    half = gates * hidden
                    weights += [gate(w[k]), gate(r[k]), gate(bias[k][:half]), gate(bias[k][half:])]
                tail = (weights, True, 1, 0.0, False, d == 2, False)
                if op == "LSTM":
                    y, hn, cn = torch.lstm(x, (h, c), *tail)
                elif op == "GRU":
                    y, hn = torch.gru(x, h, *tail)
                else:
                    y, hn = torch.rnn_tanh(x, h, *tail)
                y = y.reshape(steps, batch, d, hidden).transpose(1, 2)
                return (y, hn, cn) if op == "LSTM" else (y, hn)

            attrs = {"hidden_size": hidden, **direction, **({"linear_before_reset": 1} if op == "GRU" else {})}
            inputs = [x, w, r, bias, None, h0] + ([c0] if op == "LSTM" else [])
            b.add(op, inputs, run, attrs, outputs=3 if op == "LSTM" else 2,
                  name=f"{op} {'both ways' if bidirectional else ''}")


def attention(b):
    q, k, v = b.normal(2, 4, 3, 5), b.normal(2, 2, 6, 5), b.normal(2, 2, 6, 4)
    scale = {"scale": 0.5}
    b.add("Attention", [q, k, v], lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.5, enable_gqa=True),
          scale, opset=23, name="Attention grouped")
    mask = b.normal(3, 6)
    b.add("Attention", [q, k, v, mask],
          lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.5, enable_gqa=True), scale, opset=23,
          name="Attention mask")
    square = b.normal(2, 2, 4, 5)
    b.add("Attention", [square, b.normal(2, 2, 4, 5), b.normal(2, 2, 4, 5)],
          lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5),
          {**scale, "is_causal": 1}, opset=23, name="Attention causal")


def add_cases(b):
    convolutions(b)
    pools(b)
    norms(b)
    recurrent(b)
    attention(b)
