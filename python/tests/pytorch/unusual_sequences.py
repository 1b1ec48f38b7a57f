"""Ways of sequence and graph models: attention step by step, masks, scans, tags with transitions, messages along
edges."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from unusual import exact

B = 4


def tokens(t=6, n=12):
    return torch.randint(1, n, (B, t))


def next_token(out, target):
    return F.cross_entropy(out.reshape(-1, out.size(-1)), target.reshape(-1))


class Decoder(nn.Module):
    """A cell in a loop that looks at all that the encoder gave."""

    def __init__(self, h=6):
        super().__init__()
        self.emb, self.encode, self.bridge = (
            nn.Embedding(12, 4, padding_idx=0),
            nn.GRU(4, h, batch_first=True, bidirectional=True),
            nn.Linear(2 * h, h),
        )
        self.query, self.key, self.score = nn.Linear(h, h), nn.Linear(2 * h, h), nn.Linear(h, 1)
        self.cell, self.out = nn.GRUCell(4 + 2 * h, h), nn.Linear(3 * h, 12)

    def forward(self, source, target):
        seen, h = self.encode(self.emb(source))
        h, padding, out = torch.tanh(self.bridge(torch.cat([h[-2], h[-1]], -1))), source == 0, []
        for k in range(target.size(1)):
            score = (
                self.score(torch.tanh(self.query(h).unsqueeze(1) + self.key(seen)))
                .squeeze(-1)
                .masked_fill(padding, -1e10)
            )
            context = torch.bmm(F.softmax(score, -1).unsqueeze(1), seen).squeeze(1)
            h = self.cell(torch.cat([self.emb(target[:, k]), context], -1), h)
            out.append(self.out(torch.cat([h, context], -1)))
        return torch.stack(out, 1)


def padded_tokens():
    ids = tokens()
    ids[1, 4:] = 0
    return ids


@exact
def attention_in_a_loop():
    return Decoder(), (padded_tokens(), tokens(3)), tokens(3), next_token


class Places(nn.Module):
    def __init__(self, d, n=20):
        super().__init__()
        at, rate = torch.arange(n).unsqueeze(1), torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
        table = torch.zeros(1, n, d)
        table[0, :, 0::2], table[0, :, 1::2] = torch.sin(at * rate), torch.cos(at * rate)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[:, :x.size(1)].requires_grad_(False)


class Translator(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.emb, self.places, self.out = nn.Embedding(12, d), Places(d), nn.Linear(d, 12)
        self.body = nn.Transformer(d, 2, 1, 1, 16, 0.0, batch_first=True, activation=F.gelu)
        self.out.weight = self.emb.weight

    def forward(self, src, tgt):
        mask, none = self.body.generate_square_subsequent_mask(tgt.size(1)), src == 0
        hidden = (tgt == 0).float().masked_fill(tgt == 0, float("-inf"))
        s, t = (self.places(self.emb(x) * math.sqrt(8)) for x in (src, tgt))
        return self.out(
            self.body(
                s,
                t,
                tgt_mask=mask,
                src_key_padding_mask=none,
                tgt_key_padding_mask=hidden,
                memory_key_padding_mask=none,
            )
        )


@exact
def encoder_and_decoder():
    return Translator(), {"src": padded_tokens(), "tgt": tokens(5)}, tokens(5), next_token


@exact
def decoder_that_is_time_first():
    class Captions(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.see, self.out = nn.Embedding(12, 8), nn.Linear(5, 8), nn.Linear(8, 12)
            self.body = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2, norm=nn.LayerNorm(8))

        def forward(self, image, ids):
            t, memory = self.emb(ids).transpose(0, 1), self.see(image).permute(1, 0, 2)
            mask = torch.triu(torch.ones(t.size(0), t.size(0), dtype=torch.bool), 1)
            return self.out(self.body(t, memory, tgt_mask=mask, tgt_is_causal=True)).transpose(0, 1)

    return Captions(), (torch.randn(B, 3, 5), tokens(5)), tokens(5), next_token


class SelectiveScan(nn.Module):
    def __init__(self, d=4, n=3):
        super().__init__()
        self.n, self.inside, self.out, self.conv = (
            n,
            nn.Linear(d, 2 * d, False),
            nn.Linear(d, d, False),
            nn.Conv1d(d, d, 4, groups=d, padding=3),
        )
        self.project, self.step, self.a = (
            nn.Linear(d, 1 + 2 * n, False),
            nn.Linear(1, d),
            nn.Parameter(torch.log(torch.arange(1.0, n + 1).repeat(d, 1))),
        )

    def forward(self, x):
        b, length, d = x.shape
        u, gate = self.inside(x).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., :length].transpose(1, 2))
        dt, left, right = self.project(u).split([1, self.n, self.n], -1)
        dt = F.softplus(self.step(dt))
        keep = torch.exp(torch.einsum("bld,dn->bldn", dt, -torch.exp(self.a)))
        new, h, out = torch.einsum("bld,bln,bld->bldn", dt, left, u), torch.zeros(b, d, self.n), []
        for k in range(length):
            h = keep[:, k] * h + new[:, k]
            out.append(torch.einsum("bdn,bn->bd", h, right[:, k, :]))
        return self.out(torch.stack(out, 1) * F.silu(gate))


@exact
def selective_scan():
    return SelectiveScan(), torch.randn(B, 5, 4), torch.randn(B, 5, 4), nn.MSELoss()


class Tagger(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.emb, self.body, self.head = (
            nn.Embedding(12, 4),
            nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True),
            nn.Linear(6, k),
        )
        self.moves, self.first = nn.Parameter(torch.randn(k, k) * 0.1), nn.Parameter(torch.zeros(k))

    def forward(self, ids):
        return self.head(self.body(self.emb(ids))[0])

    def loss(self, out, t):
        """A chain of tags: the sum over all chains by logsumexp."""
        tags, mask = t["tags"], t["mask"].bool()
        score, every = self.first[tags[:, 0]] + out[:, 0].gather(1, tags[:, :1]).squeeze(1), self.first + out[:, 0]
        for k in range(1, out.size(1)):
            step = self.moves[tags[:, k - 1], tags[:, k]] + out[:, k].gather(1, tags[:, k:k + 1]).squeeze(1)
            score = score + step * mask[:, k]
            then = torch.logsumexp(every.unsqueeze(2) + self.moves.unsqueeze(0) + out[:, k].unsqueeze(1), 1)
            every = torch.where(mask[:, k].unsqueeze(1), then, every)
        return (torch.logsumexp(every, 1) - score).mean()


@exact
def chain_of_tags():
    m, mask = Tagger(), torch.ones(B, 5, dtype=torch.long)
    mask[1, 3:] = 0
    return m, tokens(5), {"tags": torch.randint(0, 4, (B, 5)), "mask": mask}, m.loss


class Messages(nn.Module):
    """Degrees, attention along edges, and nodes of each graph by sum, mean and maximum."""

    def __init__(self, heads=2, d=3):
        super().__init__()
        self.heads, self.d, self.a, self.b = heads, d, nn.Linear(5, 6), nn.Linear(6, heads * d, bias=False)
        self.weight, self.head = nn.Parameter(torch.randn(heads, 2 * d) * 0.3), nn.Linear(heads * d, 3)

    def forward(self, x, edges, graph):
        (source, target), n = edges, x.size(0)
        degree = torch.zeros(n).index_add_(0, target, torch.ones_like(target, dtype=x.dtype)).clamp(min=1)
        h = self.a(x)
        h = F.relu(h.index_add(0, target, h[source] / (degree[source] * degree[target]).sqrt().unsqueeze(-1)))
        h = self.b(h).view(-1, self.heads, self.d)
        e, at = (
            F.leaky_relu((torch.cat([h[source], h[target]], -1) * self.weight).sum(-1), 0.2),
            target.unsqueeze(-1).expand(-1, self.heads),
        )
        most = torch.full((n, self.heads), float("-inf")).scatter_reduce(0, at, e, "amax")
        e = torch.exp(e - most[target].detach())
        share = e / torch.zeros(n, self.heads).scatter_add(0, at, e)[target]
        h = torch.zeros(n, self.heads, self.d).index_add(0, target, h[source] * share.unsqueeze(-1)).flatten(1)
        zero, at = torch.zeros(2, h.size(1)), graph.unsqueeze(-1).expand(-1, h.size(1))
        mean, most = (zero.scatter_reduce(0, at, h, kind, include_self=False) for kind in ("mean", "amax"))
        return self.head(
            zero.scatter_add(0, at, h) + mean + most + zero.index_reduce(0, graph, h, "prod", include_self=False)
        )


@exact
def messages_along_edges():
    edges = torch.cat([torch.arange(9).repeat(2, 1), torch.randint(0, 9, (2, 21))], 1)
    return Messages(), (torch.randn(9, 5), edges, torch.tensor([0, 0, 0, 0, 1, 1, 1, 1,
                                                                1])), torch.tensor([0, 2]), nn.CrossEntropyLoss()


messages_along_edges.static = True  # nodes, edges and graphs have sizes of their own


class Rotary(nn.Module):
    """Rotation of queries by complex numbers, kept as a plain attribute."""

    def __init__(self):
        super().__init__()
        self.q, self.out = nn.Linear(6, 8), nn.Linear(8, 4)
        angle = torch.outer(torch.arange(16.0), 1 / 10000 ** (torch.arange(0, 4, 2) / 4))
        self.turns = torch.polar(torch.ones_like(angle), angle)

    def forward(self, x):
        q = self.q(x).view(*x.shape[:2], 2, 4)
        pairs = torch.view_as_complex(q.reshape(*q.shape[:-1], -1, 2)) * self.turns[:x.size(1)].view(1, x.size(1), 1, 2)
        return self.out(torch.view_as_real(pairs).flatten(3).flatten(2))


@exact
def rotation_by_complex_numbers():
    return Rotary(), torch.randn(3, 5, 6), torch.randn(3, 5, 4), nn.MSELoss()


class Waves(nn.Module):
    """Filters among frequencies, in one and two dimensions, and parts of a spectrum."""

    def __init__(self):
        super().__init__()
        self.a, self.line, self.plane = (
            nn.Linear(6, 6),
            nn.Parameter(torch.randn(4, 6, 2)),
            nn.Parameter(torch.randn(5, 4, 2)),
        )

    def forward(self, x):
        y = torch.fft.irfft(torch.fft.rfft(self.a(x), n=7, dim=1) * torch.view_as_complex(self.line), n=7, dim=1)[:, :5]
        z = torch.fft.irfft2(
            torch.fft.rfft2(x, norm="ortho") * torch.view_as_complex(self.plane), s=(5, 6), norm="ortho"
        )
        w = torch.fft.ifft(torch.fft.fft2(self.a(x)) / (1 + 2j))
        return y + z, w.real, w.imag + (w * w.conj()).abs() + (1 - w).real


@exact
def filters_among_frequencies():
    return Waves(), torch.randn(3, 5, 6), torch.randn(3, 5, 6), lambda o, t: sum(F.mse_loss(v, t) for v in o)
