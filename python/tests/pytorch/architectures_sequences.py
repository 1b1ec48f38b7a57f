"""Small sequence models: transformers, recurrent layers, causal convolutions."""

import torch
import torch.nn.functional as F
from torch import nn

from architectures_list import model, tokens


class Attention(nn.Module):
    def __init__(self, d, heads, causal=False):
        super().__init__()
        self.qkv, self.proj, self.heads, self.causal = nn.Linear(d, 3 * d), nn.Linear(d, d), heads, causal

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(
            F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(b, t, d)
        )


class Block(nn.Module):
    def __init__(self, d, heads, causal=False):
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(d), Attention(d, heads, causal), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.0))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Bert(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.word, self.position, self.norm = nn.Embedding(20, d), nn.Embedding(8, d), nn.LayerNorm(d)
        layer = nn.TransformerEncoderLayer(d, 4, 32, 0.0, "gelu", batch_first=True)
        self.encoder, self.pooler, self.head = (
            nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            nn.Linear(d, d),
            nn.Linear(d, 4),
        )
        self.register_buffer("position_ids", torch.arange(8).unsqueeze(0))

    def forward(self, ids):
        x = self.norm(self.word(ids) + self.position(self.position_ids))
        return self.head(torch.tanh(self.pooler(self.encoder(x)[:, 0])))


@model()
def bert():
    return Bert(), (tokens(),)


class GPT(nn.Module):
    def __init__(self, d=16, vocab=20):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(8, d)
        self.blocks, self.ln = nn.ModuleList([Block(d, 4, True), Block(d, 4, True)]), nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for b in self.blocks:
            x = b(x)
        return self.lm_head(self.ln(x))


@model(classes=20)
def gpt():
    return GPT(), (tokens(),)


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class LlamaBlock(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.n1, self.n2 = heads, RMSNorm(d), RMSNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.gate, self.up, self.down = (
            nn.Linear(d, 2 * d, bias=False),
            nn.Linear(d, 2 * d, bias=False),
            nn.Linear(2 * d, d, bias=False),
        )
        half = d // heads // 2
        angles = torch.outer(torch.arange(8.0), 10000 ** (-torch.arange(half) / half))
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, -1), persistent=False)
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, -1), persistent=False)

    def rotate(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (f(self.n1(x)).reshape(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@model(classes=20)
def llama():
    return nn.Sequential(
        nn.Embedding(20, 16), LlamaBlock(16, 4), LlamaBlock(16, 4), RMSNorm(16), nn.Linear(16, 20, bias=False)
    ), (tokens(),)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(20, 8), kind(8, 12, batch_first=True, **options)
        self.head = nn.Linear(12 * (2 if options.get("bidirectional") else 1), 4)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0][:, -1])


@model()
def lstm():
    return Recurrent(nn.LSTM, num_layers=2), (tokens(),)


@model()
def bilstm():
    return Recurrent(nn.LSTM, bidirectional=True), (tokens(),)


@model()
def gru():
    return Recurrent(nn.GRU), (tokens(),)


@model()
def rnn():
    return Recurrent(nn.RNN), (tokens(),)


class Causal(nn.Module):
    def __init__(self, i, o, dilation):
        super().__init__()
        self.conv, self.pad, self.skip = nn.Conv1d(i, o, 3, dilation=dilation), 2 * dilation, nn.Conv1d(i, o, 1)

    def forward(self, x):
        return F.relu(self.conv(F.pad(x, (self.pad, 0)))) + self.skip(x)


@model()
def tcn():
    return nn.Sequential(
        Causal(3, 8, 1), Causal(8, 8, 2), Causal(8, 8, 4), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 4)
    ), (torch.randn(4, 3, 12),)
