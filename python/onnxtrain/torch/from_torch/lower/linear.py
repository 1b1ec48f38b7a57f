"""Products: linear layers, matrix products, convolutions, attention."""

import math

import torch

from .base import Unsupported, Value, lower, promote, static
from .create import live_dropout


@lower("aten.linear")
def linear(c, a):
    x, w, b = a.input, a.weight, a.bias
    if len(x.shape) == 2 and len(w.shape) == 2:
        return c.op("Gemm", x, w, b, transB=1)
    y = c.op("MatMul", x, c.transpose(w, [1, 0]) if len(w.shape) == 2 else w)
    return y if b is None else c.op("Add", y, b)


@lower("aten.matmul", "aten.mm", "aten.bmm", "aten.mv", "aten.dot", "aten.vdot", "aten.inner", "aten.linalg_matmul")
def matmul(c, a):
    x, y = a.positional[:2]
    if c.operator.endswith("inner") and max(len(x.shape), len(y.shape)) > 1:
        raise Unsupported("inner product of matrices; use matmul")
    return c.op("MatMul", x, y)


@lower("aten.outer", "aten.ger")
def outer(c, a):
    x, y = a.positional[:2]
    return c.op("Mul", c.unsqueeze(x, [1]), c.unsqueeze(y, [0]))


def _weighted_sum(c, a, product):
    if a.alpha not in (1, 1.0, None):
        product = c.op("Mul", product, c.num(a.alpha, product))
    x = c.tensor(a.self, product.dtype)
    if a.beta == 0:
        return product
    if a.beta not in (1, 1.0, None):
        x = c.op("Mul", x, c.num(a.beta, x))
    return c.op("Add", x, product)


@lower("aten.addmm")
def addmm(c, a):
    if a.beta in (1, None) and a.alpha in (1, None):
        return c.op("Gemm", a.mat1, a.mat2, a.self)
    return _weighted_sum(c, a, c.op("MatMul", a.mat1, a.mat2))


@lower("aten.baddbmm")
def baddbmm(c, a):
    return _weighted_sum(c, a, c.op("MatMul", a.batch1, a.batch2))


@lower("aten.addmv")
def addmv(c, a):
    return _weighted_sum(c, a, c.op("MatMul", a.mat, a.vec))


@lower("aten.addbmm")
def addbmm(c, a):
    return _weighted_sum(c, a, c.reduce("Sum", c.op("MatMul", a.batch1, a.batch2), [0]))


@lower("aten.einsum")
def einsum(c, a):
    dtype = promote(*a.tensors)
    return c.op("Einsum", *[c.tensor(t, dtype) for t in a.tensors], equation=a.equation.replace(" ", ""))


@lower("aten.bilinear")
def bilinear(c, a):
    y = c.op("Einsum", a.input1, a.weight, a.input2, equation="...i,oij,...j->...o")
    return y if a.bias is None else c.op("Add", y, a.bias)


@lower("aten.cdist", "aten._cdist_forward")
def cdist(c, a):
    p = a.p
    x, y = (a.x1, a.x2)
    d = c.op("Sub", c.unsqueeze(x, [-2]), c.unsqueeze(y, [-3]))
    if p == 2:
        return c.reduce("L2", d, [-1])
    if p == 1:
        return c.reduce("L1", d, [-1])
    raise Unsupported(f"cdist with p = {p}")


# ---- convolutions
def _conv_attrs(c, x, w, spatial, stride, padding, dilation, groups):
    wide = lambda v: list(v) * spatial if len(v) == 1 else list(v)
    if not isinstance(groups, int):
        raise Unsupported("as many groups as the open batch has elements")
    attrs = {"strides": wide(stride), "dilations": wide(dilation), "group": groups}
    if isinstance(padding, str):
        kernel = [static(s) for s in w.shape[2:]]
        total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(attrs["dilations"], kernel)]
        attrs["pads"] = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        attrs["pads"] = wide(padding) * 2
    return attrs


def _convolve(c, x, w, b, **attrs):
    spatial = len(w.shape) - 2
    if len(x.shape) == spatial + 1:  # without a batch
        y = c.op("Conv", c.unsqueeze(x, [0]), w, b, **attrs)
        return c.squeeze(y, [0])
    return c.op("Conv", x, w, b, **attrs)


@lower("aten.conv1d", "aten.conv2d", "aten.conv3d")
def conv(c, a):
    spatial = len(a.weight.shape) - 2
    attrs = _conv_attrs(c, a.input, a.weight, spatial, a.stride, a.padding, a.dilation, a.groups)
    return _convolve(c, a.input, a.weight, a.bias, **attrs)


@lower("aten.convolution")
def convolution(c, a):
    spatial = len(a.weight.shape) - 2
    if a.transposed:
        return _conv_transpose(c, a)
    attrs = _conv_attrs(c, a.input, a.weight, spatial, a.stride, a.padding, a.dilation, a.groups)
    return _convolve(c, a.input, a.weight, a.bias, **attrs)


@lower("aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")
def conv_transpose(c, a):
    return _conv_transpose(c, a)


def _conv_transpose(c, a):
    spatial = len(a.weight.shape) - 2
    attrs = _conv_attrs(c, a.input, a.weight, spatial, a.stride, a.padding, a.dilation, a.groups)
    extra = list(a.output_padding)
    attrs["output_padding"] = extra * spatial if len(extra) == 1 else extra
    x = a.input
    bare = len(x.shape) == spatial + 1
    y = c.op("ConvTranspose", c.unsqueeze(x, [0]) if bare else x, a.weight, a.bias, **attrs)
    return c.squeeze(y, [0]) if bare else y


@lower("aten.im2col")
def im2col(c, a):
    x = a.self
    n, ch = c.dim(x, 0), static(x.shape[1])
    kh, kw = a.kernel_size
    if ch is None:
        raise Unsupported("unfold with an open number of channels")
    # a convolution whose kernels are the unit positions
    unit = torch.eye(kh * kw).reshape(kh * kw, 1, kh, kw).repeat(ch, 1, 1, 1).to(x.dtype)
    y = c.op(
        "Conv",
        x,
        c.e.const(unit),
        strides=list(a.stride),
        dilations=list(a.dilation),
        pads=list(a.padding) * 2,
        group=ch,
    )
    return c.reshape(y, [n, ch * kh * kw, -1])


@lower("aten.col2im")
def col2im(c, a):
    return c.op("Col2Im", a.self, c.ints(a.output_size), c.ints(a.kernel_size), dilations=list(a.dilation),
                pads=list(a.padding) * 2, strides=list(a.stride))


# ---- attention
@lower("aten.scaled_dot_product_attention")
def attention(c, a):
    q, k, v = a.query, a.key, a.value
    if a.enable_gqa and static(q.shape[-3]) != static(k.shape[-3]):
        k, v = (_repeat_heads(c, t, static(q.shape[-3]) // static(k.shape[-3])) for t in (k, v))
    width = static(q.shape[-1])
    scale = a.scale if a.scale is not None else 1 / math.sqrt(width)
    q = c.op("Mul", q, c.num(float(scale), q))
    rank = len(k.shape)
    scores = c.op("MatMul", q, c.transpose(k, list(range(rank - 2)) + [rank - 1, rank - 2]))
    mask = a.attn_mask
    if a.is_causal:
        mask = _causal(c, a.query, a.key)
    closed = None  # True where nothing may flow
    if mask is not None and mask.dtype == torch.bool:
        closed = c.op("Not", mask)
    elif mask is not None:
        mask = c.tensor(mask, scores.dtype)
        scores = c.op("Add", scores, mask)
        closed = c.op("Equal", mask, c.num(-math.inf, scores))
    if closed is not None:  # finite, so that a row without any open place has no NaN; it gives 0 as in PyTorch
        scores = c.where(closed, c.num(torch.finfo(scores.dtype).min, scores), scores)
    weights = c.op("Softmax", scores, axis=-1)
    if closed is not None and not a.is_causal:
        weights = c.where(closed, c.num(0.0, weights), weights)
    if a.dropout_p:
        weights = live_dropout(c, weights, a.dropout_p)
    return c.op("MatMul", weights, v)


def _repeat_heads(c, x, times):
    sizes = c.dims(x)
    rank = len(sizes)
    wide = c.op("Expand", c.unsqueeze(x, [rank - 2]), c.ints([1] * (rank - 2) + [times] + [1, 1]))
    sizes[rank - 3] = sizes[rank - 3] * times
    y = c.reshape(wide, sizes)
    y.shape = list(x.shape)
    y.shape[rank - 3] = sizes[rank - 3]
    return y


def _causal(c, q, k):
    rows, cols = c.dim(q, -2), c.dim(k, -2)
    if isinstance(rows, int) and isinstance(cols, int):
        return c.e.const(torch.ones(rows, cols, dtype=torch.bool).tril())
    line = lambda n: c.op("Range", c.e.const(0), c.tensor(n, torch.int64), c.e.const(1))
    y = c.op("GreaterOrEqual", c.unsqueeze(line(rows), [1]), c.unsqueeze(line(cols), [0]))
    return Value(y.name, torch.bool, [None, None])


# ---- determinants
@lower("aten._linalg_det")
def det(c, a):
    return c.op("Det", a.A), None, None


@lower("aten._linalg_slogdet")
def slogdet(c, a):
    d = c.op("Det", a.A)
    return c.op("Sign", d), c.op("Log", c.op("Abs", d)), None, None
