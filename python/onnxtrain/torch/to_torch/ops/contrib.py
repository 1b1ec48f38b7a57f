"""Deformable and causal convolution, linear attention, bits as another type; what stands before a network in
ai.onnx.ml."""

import torch
import torch.nn.functional as F

from .table import Unsupported, op, torch_dtype


# ---- deformable convolution
@op("DeformConv")
def deform_conv(n):
    strides, dilations, pads = n.get("strides"), n.get("dilations"), n.get("pads")
    group, offset_group = n.get("group", 1), n.get("offset_group", 1)

    def run(x, w, offset, bias=None, mask=None):
        if x.dim() != 4:
            raise Unsupported("DeformConv over other than two dimensions")
        s, d, p = strides or [1, 1], dilations or [1, 1], pads or [0] * 4
        columns = _deformed(x, w.shape[2:], offset, mask, s, d, p[:2], offset_group)
        batch, channels, taps, high, wide = columns.shape
        columns = columns.reshape(batch, group, channels // group * taps, high * wide)
        y = torch.matmul(w.reshape(group, w.shape[0] // group, -1), columns).reshape(batch, w.shape[0], high, wide)
        return y if bias is None else y + bias.reshape(1, -1, 1, 1)

    return run


def _deformed(x, kernel, offset, mask, stride, dilation, pad, groups):
    """[batch, channels, taps, high, wide]: x at the moved positions, bilinear, 0 outside."""
    batch, channels, height, width = x.shape
    high, wide = offset.shape[2:]
    moved = offset.reshape(batch, groups, -1, 2, high, wide)
    rows = torch.arange(high, device=x.device) * stride[0] - pad[0]
    cols = torch.arange(wide, device=x.device) * stride[1] - pad[1]
    parts = []
    for k in range(kernel[0] * kernel[1]):
        i, j = divmod(k, kernel[1])
        y = moved[:, :, k, 0] + (rows + i * dilation[0]).reshape(1, 1, -1, 1)
        z = moved[:, :, k, 1] + (cols + j * dilation[1]).reshape(1, 1, 1, -1)
        one = _bilinear(x.reshape(batch, groups, channels // groups, height * width), y, z, height, width)
        if mask is not None:
            one = one * mask.reshape(batch, groups, -1, high, wide)[:, :, k].unsqueeze(2)
        parts.append(one.reshape(batch, channels, high, wide))
    return torch.stack(parts, 2)


def _bilinear(x, rows, cols, height, width):
    """x [.., channels, height * width] at rows, cols [.., high, wide]; exact at whole positions, 0 outside."""
    top, left = rows.floor(), cols.floor()
    total = 0
    for down in (0, 1):
        for right in (0, 1):
            i, j = top + down, left + right
            weight = (
                (1 - (rows - i).abs()) * (1 - (cols - j).abs()) * ((i >= 0) & (i < height) & (j >= 0) & (j < width))
            )
            at = (i.clamp(0, height - 1) * width + j.clamp(0, width - 1)).long().flatten(-2).unsqueeze(-2)
            taken = x.gather(-1, at.expand(*x.shape[:-1], at.shape[-1])).unflatten(-1, rows.shape[-2:])
            total = total + taken * weight.unsqueeze(-3)
    return total


# ---- state that is carried along a sequence
@op("CausalConvWithState")
def causal_conv(n):
    activation = n.get("activation", "none")

    def run(x, w, bias=None, past=None):
        kept = w.shape[2] - 1
        whole = F.pad(x, (kept, 0)) if past is None else torch.cat([past, x], 2)
        y = F.conv1d(whole, w, bias, groups=x.shape[1])
        return (F.silu(y) if activation in ("silu", "swish") else y), whole[:, :, whole.shape[2] - kept:]

    return run


@op("LinearAttention")
def linear_attention(n):
    heads, kv_heads, scale, rule = (
        n.get("q_num_heads"),
        n.get("kv_num_heads"),
        n.get("scale", 0.0),
        n.get("update_rule", "gated_delta"),
    )

    def run(q, k, v, past=None, decay=None, beta=None):
        split = lambda t, h: t.reshape(*t.shape[:2], h, -1).transpose(1, 2)
        q, k, v = split(q, heads), split(k, kv_heads), split(v, kv_heads)
        gates = split(decay, kv_heads).exp() if "gated" in rule else None
        rates = beta.transpose(1, 2) if "delta" in rule else None  # [B, H or 1, T]
        factor = scale or q.shape[-1] ** -0.5
        state = (
            past
            if past is not None
            else torch.zeros(k.shape[0], kv_heads, k.shape[-1], v.shape[-1], dtype=k.dtype, device=k.device)
        )
        steps = []
        for t in range(q.shape[2]):
            if gates is not None:
                state = state * gates[:, :, t].unsqueeze(-1)
            new = v[:, :, t]
            if rates is not None:
                new = (new - (state * k[:, :, t].unsqueeze(-1)).sum(2)) * rates[:, :, t].unsqueeze(-1)
            state = state + k[:, :, t].unsqueeze(-1) * new.unsqueeze(-2)
            shared = state.repeat_interleave(heads // kv_heads, 1)
            steps.append((shared * q[:, :, t].unsqueeze(-1)).sum(2) * factor)
        y = torch.stack(steps, 1)  # [B, T, H, d_v]
        return y.reshape(*y.shape[:2], -1), state

    return run


@op("BitCast")
def bit_cast(n):
    dtype = torch_dtype(n.get("to"))
    return lambda x: x.contiguous().view(dtype)


# ---- ai.onnx.ml on numbers
def ml(*names):
    return op(*names, domain="ai.onnx.ml")


def _row(values, like):
    return torch.tensor(values, dtype=torch.float32, device=like.device)


@ml("Scaler")
def scaler(n):
    offset, scale = n.get("offset", [0.0]), n.get("scale", [1.0])
    return lambda x: (x.float() - _row(offset, x)) * _row(scale, x)


@ml("Normalizer")
def normalizer(n):
    kind = n.get("norm", "MAX")

    def run(x):
        x = x.float()
        size = (
            x.abs().amax(-1, True)
            if kind == "MAX"
            else x.abs().sum(-1, True)
            if kind == "L1"
            else x.square().sum(-1, True).sqrt()
        )
        return torch.where(size == 0, x, x / torch.where(size == 0, 1.0, size))

    return run


@ml("Imputer")
def imputer(n):
    floats, ints = n.get("imputed_value_floats"), n.get("imputed_value_int64s")
    missing = n.get("replaced_value_float", 0.0) if floats is not None else n.get("replaced_value_int64", 0)

    def run(x):
        gone = torch.isnan(x) if missing != missing else x == missing
        return torch.where(
            gone, torch.tensor(floats if floats is not None else ints, dtype=x.dtype, device=x.device), x
        )

    return run


@ml("Binarizer")
def binarizer(n):
    threshold = n.get("threshold", 0.0)
    return lambda x: (x > threshold).to(x.dtype)


@ml("LinearRegressor")
def linear_regressor(n):
    targets, weights, start = n.get("targets", 1), n.get("coefficients", []), n.get("intercepts")
    if n.get("post_transform", "NONE") != "NONE":
        raise Unsupported("LinearRegressor with a transformation of its result")

    def run(x):
        y = x.float() @ _row(weights, x).reshape(targets, -1).t()
        return y if start is None else y + _row(start, x)

    return run
