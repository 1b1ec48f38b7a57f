"""Small networks over sequences: transformers, recurrent and convolutional ones."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Written by hand, as many models do; `mask` is added to the scores."""

    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, mask=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-2, -1)) / math.sqrt(d // self.heads)
        if mask is not None:
            a = a.masked_fill(mask, float("-inf"))
        return self.out((a.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln1, self.attn, self.ln2 = nn.LayerNorm(d), Attention(d, heads), nn.LayerNorm(d)
        self.fc1, self.fc2 = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x, mask=None):
        x = x + self.attn(self.ln1(x), mask)
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 12, 4, 4)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, 12)), nn.Parameter(torch.zeros(1, 5, 12))
        self.block, self.norm, self.head = Block(12, 2), nn.LayerNorm(12), nn.Linear(12, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.block(x))[:, 0])


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.pos, self.kind = nn.Embedding(30, 12), nn.Embedding(8, 12), nn.Embedding(2, 12)
        self.norm, self.block = nn.LayerNorm(12, eps=1e-12), Block(12, 3)
        self.dense, self.norm2, self.decoder = nn.Linear(12, 12), nn.LayerNorm(12), nn.Linear(12, 30)

    def forward(self, ids, kinds, mask):
        at = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.word(ids) + self.pos(at) + self.kind(kinds))
        x = self.block(x, (mask == 0)[:, None, None, :])
        return self.decoder(self.norm2(F.gelu(self.dense(x))))


class Gpt(nn.Module):
    """Causal, with the embedding tied to the head."""

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(26, 16), nn.Embedding(10, 16)
        self.ln1, self.qkv, self.proj = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.ln2, self.fc, self.out = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
        self.lnf, self.head = nn.LayerNorm(16), nn.Linear(16, 26, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids):
        b, t = ids.shape
        x = self.wte(ids) + self.wpe(torch.arange(t))
        q, k, v = (y.view(b, t, 2, 8).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(16, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(b, t, 16))
        x = x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))
        return self.head(self.lnf(x))


class RmsNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class Llama(nn.Module):
    """RMSNorm, rotary positions, grouped queries, SwiGLU."""

    def __init__(self):
        super().__init__()
        self.embed, self.n1, self.n2, self.nf = nn.Embedding(20, 16), RmsNorm(16), RmsNorm(16), RmsNorm(16)
        self.q, self.k, self.v = (nn.Linear(16, n, bias=False) for n in (16, 8, 8))
        self.o = nn.Linear(16, 16, bias=False)
        self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((16, 24), (16, 24), (24, 16)))
        self.head = nn.Linear(16, 20, bias=False)

    @staticmethod
    def rotate(x, cos, sin):
        half = torch.cat((-x[..., 2:], x[..., :2]), -1)
        return x * cos + half * sin

    def forward(self, ids):
        b, t = ids.shape
        at = torch.arange(t, dtype=self.q.weight.dtype)
        freq = 1.0 / (10000.0 ** (torch.arange(0, 4, 2, dtype=self.q.weight.dtype) / 4))
        angle = torch.outer(at, freq)
        angle = torch.cat((angle, angle), -1)
        cos, sin = angle.cos(), angle.sin()
        x = self.embed(ids)
        h = self.n1(x)
        q = self.rotate(self.q(h).view(b, t, 4, 4).transpose(1, 2), cos, sin)
        k = self.rotate(self.k(h).view(b, t, 2, 4).transpose(1, 2), cos, sin)
        v = self.v(h).view(b, t, 2, 4).transpose(1, 2)
        k, v = (y[:, :, None].expand(b, 2, 2, t, 4).reshape(b, 4, t, 4) for y in (k, v))
        scores = q @ k.transpose(2, 3) / 2.0
        causal = torch.full((t, t), torch.finfo(scores.dtype).min / 2, dtype=scores.dtype).triu(1)
        x = x + self.o(((scores + causal).softmax(-1) @ v).transpose(1, 2).reshape(b, t, 16))
        h = self.n2(x)
        x = x + self.down(F.silu(self.gate(h)) * self.up(h))
        return self.head(self.nf(x))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.fc = nn.Embedding(15, 8), nn.LSTM(8, 10, 2, batch_first=True), nn.Linear(10, 4)

    def forward(self, ids):
        return self.fc(self.rnn(self.embed(ids))[0][:, -1])


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.fc = nn.GRU(6, 12), nn.Linear(12, 1)

    def forward(self, x):
        return self.fc(self.rnn(x)[0][-1])


class BiRnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.lstm = nn.RNN(5, 7, bidirectional=True), nn.LSTM(14, 6, bidirectional=True)
        self.fc = nn.Linear(12, 3)

    def forward(self, x):
        y, _ = self.lstm(self.rnn(x)[0])
        return self.fc(y.amax(0))


class Tcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(3 if k == 0 else 8, 8, 3, dilation=2**k) for k in range(3))
        self.res, self.out = nn.Conv1d(3, 8, 1), nn.Conv1d(8, 2, 1)

    def forward(self, x):
        y = x
        for k, conv in enumerate(self.convs):
            y = F.relu(conv(F.pad(y, (2 * 2**k, 0))))
        return self.out(F.relu(y + self.res(x)))


class WaveNet(nn.Module):
    """Gated dilated convolutions with skip connections over classes of samples."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.gates = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=2**k) for k in range(3))
        self.skips = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(3))
        self.res = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(2))
        self.out = nn.Conv1d(8, 12, 1)

    def forward(self, ids):
        x, total = self.embed(ids).transpose(1, 2), 0
        for k, (gate, skip) in enumerate(zip(self.gates, self.skips)):
            a, b = gate(F.pad(x, (2**k, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            total = total + skip(y)
            if k < 2:
                x = x + self.res[k](y)
        return self.out(F.relu(total))


class Seq2Seq(nn.Module):
    """GRU encoder and decoder with additive attention; the target is fed shifted."""

    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(12, 6), nn.Embedding(14, 6)
        self.enc, self.dec = nn.GRU(6, 8, batch_first=True), nn.GRU(6, 8, batch_first=True)
        self.wq, self.wk, self.v = nn.Linear(8, 8), nn.Linear(8, 8, bias=False), nn.Linear(8, 1, bias=False)
        self.out = nn.Linear(16, 14)

    def forward(self, src, tgt):
        memory, h = self.enc(self.src(src))
        y, _ = self.dec(self.tgt(tgt), h)
        score = self.v(torch.tanh(self.wq(y)[:, :, None] + self.wk(memory)[:, None])).squeeze(-1)
        return self.out(torch.cat([y, score.softmax(-1) @ memory], -1))


class Translator(nn.Module):
    """torch's own encoder and decoder layers."""

    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(12, 8), nn.Embedding(14, 8)
        self.enc = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.dec = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
        self.out = nn.Linear(8, 14)

    def forward(self, src, tgt):
        causal = torch.triu(torch.full((5, 5), float("-inf"), dtype=self.out.weight.dtype), 1)
        return self.out(self.dec(self.tgt(tgt), self.enc(self.src(src)), tgt_mask=causal))
