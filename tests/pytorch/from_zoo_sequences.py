"""Sequence models of the zoo: transformers, recurrent layers, mixtures (see from_zoo.py)."""

import math

import torch
import torch.nn.functional as F
from torch import nn

B = 4


def labels(n=5, *shape):
    return torch.randint(0, n, (B, *shape))


class Encoder(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.emb, self.pos = nn.Embedding(20, 16, padding_idx=0), nn.Parameter(torch.randn(1, 7, 16) * 0.02)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=p, activation="gelu", batch_first=True, norm_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 5)

    def forward(self, ids):
        x = self.emb(ids) + self.pos
        return self.head(self.body(x, src_key_padding_mask=ids == 0).mean(1))


def transformer():
    ids = torch.randint(1, 20, (B, 7))
    ids[0, 5:] = 0
    return Encoder(), ids, labels(), nn.CrossEntropyLoss()


class GPT(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p
        self.wte, self.wpe = nn.Embedding(23, 16), nn.Embedding(8, 16)
        self.blocks = nn.ModuleList(nn.ModuleDict({"ln1": nn.LayerNorm(16), "qkv": nn.Linear(16, 48),
                                                   "o": nn.Linear(16, 16), "ln2": nn.LayerNorm(16),
                                                   "fc": nn.Linear(16, 64), "pr": nn.Linear(64, 16)}) for _ in range(2))
        self.ln, self.head = nn.LayerNorm(16), nn.Linear(16, 23, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, idx):
        b, t = idx.shape
        x = F.dropout(self.wte(idx) + self.wpe(torch.arange(t, device=idx.device)), self.p, self.training)
        for m in self.blocks:
            q, k, v = m["qkv"](m["ln1"](x)).chunk(3, -1)
            q, k, v = (z.view(b, t, 2, 8).transpose(1, 2) for z in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p if self.training else 0.0)
            x = x + m["o"](y.transpose(1, 2).reshape(b, t, 16))
            x = x + m["pr"](F.gelu(m["fc"](m["ln2"](x)), approximate="tanh"))
        return self.head(self.ln(x))


def lm_loss(out, target):
    return F.cross_entropy(out.reshape(-1, out.size(-1)), target.reshape(-1))


def gpt():
    return GPT(), torch.randint(0, 23, (B, 8)), torch.randint(0, 23, (B, 8)), lm_loss


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.emb, self.rnn = nn.Embedding(20, 8), kind(8, 12, batch_first=True, **options)
        self.head = nn.Linear(12 * (2 if options.get("bidirectional") else 1), 5)

    def forward(self, ids):
        y, _ = self.rnn(self.emb(ids))
        return self.head(y[:, -1])


def tokens(t=6):
    return torch.randint(0, 20, (B, t))


def lstm():
    return Recurrent(nn.LSTM, num_layers=2), tokens(), labels(), nn.CrossEntropyLoss()


def bilstm():
    return Recurrent(nn.LSTM, bidirectional=True), tokens(), labels(), nn.CrossEntropyLoss()


def gru():
    return Recurrent(nn.GRU, num_layers=2), tokens(), labels(), nn.CrossEntropyLoss()


def rnn():
    return Recurrent(nn.RNN, nonlinearity="relu", bidirectional=True), tokens(), labels(), nn.CrossEntropyLoss()


class RMSNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(23, 16)
        self.n1, self.n2, self.nf = RMSNorm(16), RMSNorm(16), nn.RMSNorm(16)
        self.q, self.k, self.v, self.o = (
            nn.Linear(16, 16, False),
            nn.Linear(16, 8, False),
            nn.Linear(16, 8, False),
            nn.Linear(16, 16, False),
        )
        self.gate, self.up, self.down = nn.Linear(16, 40, False), nn.Linear(16, 40, False), nn.Linear(40, 16, False)
        self.head = nn.Linear(16, 23, False)
        f = 1.0 / 10000 ** (torch.arange(0, 4, 2).float() / 4)
        self.register_buffer("inv_freq", f, persistent=False)

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, ids):
        b, t = ids.shape
        angle = torch.outer(torch.arange(t).float(), self.inv_freq)
        angle = torch.cat([angle, angle], -1)
        cos, sin = angle.cos(), angle.sin()
        x = self.emb(ids)
        h = self.n1(x)
        q = self.rotate(self.q(h).view(b, t, 4, 4).transpose(1, 2), cos, sin)
        k = self.rotate(self.k(h).view(b, t, 2, 4).transpose(1, 2), cos, sin).repeat_interleave(2, 1)
        v = self.v(h).view(b, t, 2, 4).transpose(1, 2).repeat_interleave(2, 1)
        mask = torch.full((t, t), float("-inf")).triu(1)
        p = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(4) + mask, -1)
        x = x + self.o((p @ v).transpose(1, 2).reshape(b, t, 16))
        h = self.n2(x)
        return self.head(self.nf(x + self.down(F.silu(self.gate(h)) * self.up(h))))


def llama():
    return Llama(), torch.randint(0, 23, (B, 8)), torch.randint(0, 23, (B, 8)), lm_loss


class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5)) for _ in range(4))

    def forward(self, x):
        score, index = torch.topk(self.gate(x), 2, dim=-1)
        weight = torch.zeros_like(self.gate(x)).scatter(1, index, torch.softmax(score, -1))
        return sum(weight[:, k:k + 1] * e(x) for k, e in enumerate(self.experts))


def moe():
    return MoE(), torch.randn(B, 8), labels(), nn.CrossEntropyLoss()


class TCN(nn.Module):
    def __init__(self):
        super().__init__()
        wn = nn.utils.parametrizations.weight_norm
        self.a, self.b = wn(nn.Conv1d(4, 8, 3, dilation=1)), wn(nn.Conv1d(8, 8, 3, dilation=2))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x = F.elu(self.a(F.pad(x, (2, 0))))
        return self.head(F.elu(self.b(F.pad(x, (4, 0))))[:, :, -1])


def tcn():
    return TCN(), torch.randn(B, 4, 10), torch.randn(B, 2), nn.SmoothL1Loss()


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 16)
        self.body, self.out = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True), nn.Linear(16, 20)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        return self.out(self.body(self.emb(src) * 4.0, self.emb(tgt) * 4.0, tgt_mask=mask))


def seq2seq():
    return (
        Seq2Seq(),
        (torch.randint(0, 20, (B, 6)), torch.randint(0, 20, (B, 5))),
        torch.randint(0, 20, (B, 5)),
        lm_loss,
    )
