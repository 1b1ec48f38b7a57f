"""Modules, losses and layers off the beaten track: (module, inputs, targets, loss) each, and what is refused with the
words that say why."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

EXACT, RANDOM, REFUSED = {}, {}, {}
mse = nn.MSELoss()


class Free(nn.Module):
    """forward is f(self, *inputs); parts are modules, parameters and buffers."""

    def __init__(self, f, **parts):
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, torch.Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)
        self.__dict__["f"] = f

    def forward(self, x, *more):
        return self.f(self, x, *more)


def lin(i=6, o=4):
    return nn.Linear(i, o)


def x6(n=8):
    return torch.randn(n, 6)


def t4(n=8):
    return torch.randn(n, 4)


def exact(make):
    EXACT[make.__name__] = make
    return make


def refused(*words):
    def add(make):
        REFUSED[make.__name__] = (make, words)
        return make

    return add


# ---- forms of inputs and outputs
@exact
def list_of_outputs():
    return (
        Free(lambda s, x: [s.a(x), s.b(x)], a=lin(), b=lin()),
        x6(),
        (t4(), t4()),
        lambda o, t: mse(o[0], t[0]) + F.l1_loss(o[1], t[1]),
    )


@exact
def dict_as_input():
    return (
        Free(lambda s, batch: s.a(batch["left"]) + s.b(batch["right"]), a=lin(), b=lin()),
        ({"left": x6(), "right": x6()},),
        t4(),
        mse,
    )


class KeywordOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = lin()

    def forward(self, *, pixels, scale=None, extra=None):
        return {"y": self.a(pixels) if scale is None else self.a(pixels) * scale, "nothing": None, "count": 3}


@exact
def keywords_only():
    return KeywordOnly(), {"pixels": x6(), "scale": torch.randn(8, 1)}, t4(), lambda o, t: mse(o["y"], t)


@exact
def integers_as_input():
    return Free(lambda s, x: s.a(x.float() / 7), a=lin()), torch.randint(0, 9, (8, 6), dtype=torch.int32), t4(), mse


# ---- buffers and parameters
class Averages(nn.Module):
    def __init__(self, replaced):
        super().__init__()
        self.a, self.replaced = lin(), replaced
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x):
        if self.training:
            self.seen += 1
            if self.replaced:
                self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
            else:
                self.mean.mul_(0.9).add_(0.1 * x.mean(0))
        return self.a(x - self.mean)


@exact
def buffer_written_twice():
    return Averages(False), x6(), t4(), mse


@exact
def buffer_replaced():
    return Averages(True), x6(), t4(), mse


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


@exact
def parametrized_and_shared():
    layer = lin(5, 5)
    nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    return nn.Sequential(layer, nn.Tanh(), layer), torch.randn(8, 5), torch.randn(8, 5), mse


@exact
def weight_norm():
    return nn.Sequential(nn.utils.parametrizations.weight_norm(lin()), nn.utils.weight_norm(lin(4, 4))), x6(), t4(), mse


@exact
def spectral_norm_of_old():
    return nn.Sequential(nn.utils.spectral_norm(lin()), nn.Tanh()), x6(), t4(), mse


@exact
def unused_frozen_and_scalar_parameters():
    m = Free(
        lambda s, x: s.a(x) * s.t.exp() + s.fixed(x),
        a=lin(),
        dead=lin(3, 3),
        fixed=lin(),
        t=nn.Parameter(torch.tensor(0.3)),
    )
    m.fixed.requires_grad_(False)
    return m, x6(), t4(), mse


@exact
def part_named_loss():
    return (
        Free(lambda s, x: s.loss(x), loss=lin()),
        x6(),
        torch.randint(0, 4, (8,)),
        nn.CrossEntropyLoss(weight=torch.rand(4)),
    )


@exact
def views_of_a_parameter():
    return Free(lambda s, x: F.linear(x, s.w[:4], s.w[4, :4]), w=nn.Parameter(torch.randn(5, 6))), x6(), t4(), mse


@exact
def writes_into_views():
    def f(s, x):
        y = s.a(x) * 1
        y[:, 0] = y[:, 1] * 2
        y[:, 2:].add_(1)
        y[y < -1] = 0.5
        return y

    return Free(f, a=lin()), x6(), t4(), mse


# ---- layers
@exact
def embedding_bags():
    def f(s, x):
        flat, starts = x.flatten(), torch.arange(0, x.numel(), 6)
        return s.mean(x) + s.sum(x) + s.max(x) + s.ragged(flat, starts)

    bags = {k: nn.EmbeddingBag(9, 4, mode=k, padding_idx=2 if k == "sum" else None) for k in ("mean", "sum", "max")}
    return Free(f, ragged=nn.EmbeddingBag(9, 4), **bags), torch.randint(0, 9, (8, 6)), t4(), mse


@exact
def sparse_embedding():
    return (
        nn.Sequential(nn.Embedding(9, 4, padding_idx=0, sparse=True), nn.Flatten(), lin(24, 4)),
        torch.randint(0, 9, (8, 6)),
        t4(),
        mse,
    )


@exact
def attention_of_every_kind():
    def f(s, q, k):
        a, w = s.a(q, k, k)
        return a + s.b(q, k, k)[0] + s.c(q, q, q, need_weights=False)[0], w

    parts = {
        "a": nn.MultiheadAttention(8, 2, batch_first=True),
        "c": nn.MultiheadAttention(8, 4, batch_first=True, bias=False),
        "b": nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True),
    }
    return (
        Free(f, **parts),
        (torch.randn(4, 5, 8), torch.randn(4, 7, 8)),
        torch.randn(4, 5, 8),
        lambda o, t: mse(o[0], t) + o[1].square().sum(),
    )


@exact
def norms():
    return (
        nn.Sequential(
            nn.Conv1d(3, 4, 3),
            nn.BatchNorm1d(4, track_running_stats=False),
            nn.Conv1d(4, 6, 1),
            nn.BatchNorm1d(6, affine=False),
            nn.GroupNorm(3, 6),
            nn.LocalResponseNorm(3),
        ),
        torch.randn(5, 3, 8),
        torch.randn(5, 6, 6),
        mse,
    )


@exact
def cells_in_a_loop():
    def f(s, x):
        h = c = torch.zeros(x.shape[0], 4)
        for _ in range(3):
            h = s.gru(x, h)
            h, c = s.lstm(h, (h, c))
        return h

    return Free(f, gru=nn.GRUCell(6, 4), lstm=nn.LSTMCell(4, 4)), x6(), t4(), mse


# ---- packed sequences and projections
def packed(x, lengths, **options):
    return pack_padded_sequence(x, lengths, **{"batch_first": True, "enforce_sorted": False} | options)


@exact
def packed_and_padded():
    def f(s, x, lengths):
        y, (h, c) = s.r(packed(x, lengths))
        return (
            pad_packed_sequence(y, batch_first=True, padding_value=0.5)[0].mean(1)
            + h[-1].repeat(1, 2)
            + c[0].repeat(1, 2)
        )

    return (
        Free(f, r=nn.LSTM(6, 4, 2, batch_first=True, bidirectional=True)),
        (torch.randn(3, 5, 6), torch.tensor([5, 3, 2])),
        torch.randn(3, 8),
        mse,
    )


@exact
def packed_rows_and_total_length():
    def f(s, x, lengths):
        p = packed(x.transpose(0, 1), lengths, batch_first=False, enforce_sorted=True)
        y = s.r(PackedSequence(torch.tanh(s.a(p.data)), *p[1:]))[0]
        return pad_packed_sequence(PackedSequence(s.b(y.data), *y[1:]), total_length=6)[0].transpose(0, 1)

    return (
        Free(f, r=nn.RNN(5, 4, nonlinearity="relu"), a=lin(6, 5), b=lin(4, 3)),
        (torch.randn(3, 5, 6), torch.tensor([4, 4, 1])),
        torch.randn(3, 6, 3),
        mse,
    )


@exact
def projections():
    def f(s, x, lengths):
        y, (h, c) = s.a(x)
        z, (k, _) = s.b(packed(y, lengths))
        return pad_packed_sequence(z, batch_first=True)[0] + (h.sum(0) + k[0]).unsqueeze(1) + c.mean()

    parts = {
        "a": nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True, proj_size=3),
        "b": nn.LSTM(6, 7, batch_first=True, proj_size=3, bias=False),
    }
    return Free(f, **parts), (torch.randn(3, 5, 6), torch.tensor([2, 5, 3])), torch.randn(3, 5, 3), mse


@exact
def wrapped():
    return nn.DataParallel(nn.Sequential(lin(), nn.ReLU())), x6(), t4(), mse


@exact
def order_statistics():
    def f(s, x):
        y = s.a(x)
        return (
            y.kthvalue(2, -1).values[:, None]
            + y.median(-1, keepdim=True).values
            + y.sort(-1)[0]
            + s.pool(y.unsqueeze(1)).squeeze(1).repeat(1, 2)[:, :5]
        )

    return Free(f, a=lin(6, 5), pool=nn.AdaptiveMaxPool1d(3)), x6(), torch.randn(8, 5), mse


# ---- losses
@exact
def gaussian_nll():
    return (
        Free(lambda s, x: (s.a(x), F.softplus(s.b(x))), a=lin(), b=lin()),
        x6(),
        t4(),
        lambda o, t: nn.GaussianNLLLoss(full=True)(o[0], t, o[1]),
    )


@exact
def margins():
    labels = torch.stack([torch.tensor([1, 0, -1, 2]), torch.tensor([3, -1, 0, 0])] * 4)
    return (
        lin(),
        x6(),
        labels,
        lambda o, t: nn.MultiLabelMarginLoss()(o, t) + nn.MultiMarginLoss(margin=0.7)(o, t[:, 0]),
    )


# ---- randomness
RANDOM["rrelu"] = lambda: (nn.Sequential(lin(), nn.RReLU(0.1, 0.4), lin(4, 4)), x6(), t4(), mse)
RANDOM["gumbel"] = lambda: (Free(lambda s, x: F.gumbel_softmax(s.a(x), hard=True), a=lin()), x6(), t4(), mse)
RANDOM["alpha_dropout"] = lambda: (
    nn.Sequential(nn.Conv2d(2, 3, 1), nn.Dropout2d(0.3), nn.AlphaDropout(0.2), nn.FeatureAlphaDropout(0.2)),
    torch.randn(3, 2, 4, 4),
    torch.randn(3, 3, 4, 4),
    mse,
)
RANDOM["distribution"] = lambda: (
    Free(lambda s, x: torch.distributions.Normal(s.a(x), 1.0).rsample(), a=lin()),
    x6(),
    t4(),
    mse,
)
