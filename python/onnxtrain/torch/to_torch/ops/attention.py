"""Attention and rotary embedding of the standard, by torch's scaled_dot_product_attention where it says the same."""

import math

import torch
import torch.nn.functional as F

from .table import op


def _heads(x, count):
    return x if x.dim() == 4 else x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


@op("Attention")
def attention(n):
    q_heads, kv_heads = n.get("q_num_heads"), n.get("kv_num_heads")
    causal, scale, cap = bool(n.get("is_causal", 0)), n.get("scale"), n.get("softcap", 0.0)
    mode, window = n.get("qk_matmul_output_mode", 0), (n.get("left_window_size", -1), n.get("right_window_size", -1))

    def run(q, k, v, mask=None, past_k=None, past_v=None, lengths=None):
        flat = q.dim() == 3
        q, k, v = _heads(q, q_heads), _heads(k, kv_heads), _heads(v, kv_heads)
        if past_k is not None:
            k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        present = (k, v)
        groups = q.shape[1] // k.shape[1]
        if groups > 1:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        past = 0 if past_k is None else past_k.shape[2]
        mask = _fit(mask, k.shape[2])
        special = (
            lengths is not None or cap or n.wants(3) or causal and (past or mask is not None) or window != (-1, -1)
        )
        if not special:
            y, scores = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale), None
        else:
            bias = _bias(q, k, mask, lengths, past, causal, window)
            y, scores = _explicit(q, k, v, bias, scale, cap, mode)
        if flat:
            y = y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)
        return (y, *present, scores) if n.outputs > 1 else y

    return run


def _fit(mask, keys):
    """A mask shorter than the keys hides the rest."""
    if mask is None or mask.shape[-1] >= keys:
        return mask
    return F.pad(mask, (0, keys - mask.shape[-1]), value=False if mask.dtype == torch.bool else float("-inf"))


def _bias(q, k, mask, lengths, past, causal, window):
    """Everything that hides keys, as a sum of zeros and infinities (and the mask's own numbers)."""
    rows, columns = torch.arange(q.shape[2], device=q.device).unsqueeze(1), torch.arange(k.shape[2], device=q.device)
    at = rows + (past if lengths is None or past else lengths.reshape(-1, 1, 1, 1) - q.shape[2])
    hidden = torch.zeros((q.shape[2], k.shape[2]), dtype=torch.bool, device=q.device)
    if causal:
        hidden = hidden | (columns > at)
    if window[0] >= 0:
        hidden = hidden | (at - columns > window[0])
    if window[1] >= 0:
        hidden = hidden | (columns - at > window[1])
    if lengths is not None:
        hidden = hidden | (columns >= lengths.reshape(-1, 1, 1, 1))
    if mask is not None and mask.dtype == torch.bool:
        hidden, mask = hidden | ~mask, None
    bias = torch.zeros(hidden.shape, dtype=q.dtype, device=q.device).masked_fill(hidden, float("-inf"))
    return bias if mask is None else bias + mask


def _explicit(q, k, v, bias, scale, cap, mode):
    root = math.sqrt(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    scores = (q * root) @ (k * root).transpose(-1, -2)
    capped = cap * torch.tanh(scores / cap) if cap else scores
    masked = capped + bias
    p = torch.softmax(masked, -1)
    p = torch.where(torch.isneginf(bias).all(-1, keepdim=True), torch.zeros_like(p), p)  # a row that sees nothing
    return p @ v, (scores, capped, masked, p)[mode]


@op("RotaryEmbedding")
def rotary(n):
    pairs, part, heads = n.get("interleaved", 0), n.get("rotary_embedding_dim", 0), n.get("num_heads", 0)

    def run(x, cos, sin, positions=None):
        flat = x.dim() == 3
        y = x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2) if flat else x
        size = part or y.shape[-1]
        turn, rest = y[..., :size], y[..., size:]
        if positions is not None:
            cos, sin = cos[positions], sin[positions]
        cos, sin = (t[..., : size // 2].unsqueeze(1) for t in (cos, sin))
        if pairs:
            a, b = turn[..., 0::2], turn[..., 1::2]
            turn = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
        else:
            a, b = turn.chunk(2, -1)
            turn = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        y = torch.cat([turn, rest], -1) if rest.shape[-1] else turn
        return y.transpose(1, 2).reshape(x.shape) if flat else y

    return run
