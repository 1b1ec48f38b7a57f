"""Functions of torch that look at values, or stand for many operators, in a form that is a graph."""

import math

import torch
import torch.nn.functional as F


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """As torch's, without its look at the sign of every variance."""
    if isinstance(var, float):
        var = var * torch.ones_like(input)
    elif var.size() != input.size() and input.size()[:-1] == var.size():
        var = var.unsqueeze(-1)
    var = var + (var.clamp(min=eps) - var).detach()  # torch clamps outside of the gradient
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Rows and a reduction; bags of different sizes by adding each row to its bag."""
    if weight.dtype in (torch.long, torch.int):  # torch's older order of arguments
        input, weight = weight, input
    rows = F.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    keep = torch.ones_like(input, dtype=torch.bool) if padding_idx is None else input != padding_idx % weight.shape[0]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if input.dim() == 2:
        return _bag(rows, keep, mode)
    starts = offsets[:-1] if include_last_offset else offsets
    if mode == "max":
        raise NotImplementedError("EmbeddingBag of mode 'max' with offsets")
    bag = (torch.arange(input.shape[0], device=input.device).unsqueeze(1) >= starts.unsqueeze(0)).sum(1) - 1
    zero = torch.zeros(starts.shape[0], weight.shape[1], dtype=weight.dtype, device=weight.device)
    total = zero.index_add(0, bag, rows * keep.unsqueeze(-1))
    if mode == "sum":
        return total
    return total / zero[:, 0].index_add(0, bag, keep.to(weight.dtype)).clamp(min=1).unsqueeze(-1)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """torch's own simpler form of it gives another number."""
    x, t = (input, target) if input.dim() == 2 else (input.unsqueeze(0), target.unsqueeze(0))
    valid = (t >= 0).long().cumprod(1)  # up to the first -1
    named = t.clamp(min=0)
    hit = (F.one_hot(named, x.shape[1]) * valid.unsqueeze(-1)).sum(1)
    apart = F.relu(1 - x.gather(1, named).unsqueeze(2) + x.unsqueeze(1))
    loss = (apart * valid.unsqueeze(2) * (hit == 0).unsqueeze(1)).sum((1, 2)) / x.shape[1]
    if reduction == "none":
        return loss if input.dim() == 2 else loss[0]
    return loss.mean() if reduction == "mean" else loss.sum()


def _bag(rows, keep, mode):
    kept = keep.unsqueeze(-1)
    if mode == "max":
        most = torch.where(kept, rows, -math.inf).max(1).values
        return torch.where(kept.any(1), most, 0.0)
    total = (rows * kept).sum(1)
    return total if mode == "sum" else total / kept.sum(1).clamp(min=1)


_NEVER = -1e30  # the logarithm of probability 0; finite, so that differences of it are


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """The probability of all paths, step by step: blanks between the labels, every path may stay, go on, or pass over a
    blank."""
    if log_probs.dim() == 2:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
    if targets.dim() != 2:
        raise NotImplementedError("CTCLoss with targets that are joined to one row; give them padded, [batch, length]")
    steps, batch = log_probs.shape[:2]
    many, count = (torch.as_tensor(v, dtype=torch.int64).reshape(-1) for v in (input_lengths, target_lengths))
    targets = targets.long()
    blanks = torch.full_like(targets, blank)
    states = torch.cat([torch.stack([blanks, targets], 2).flatten(1), blanks[:, :1]], 1)
    over = F.pad((states[:, 2:] != states[:, :-2]) & (states[:, 2:] != blank), (2, 0), value=False)
    said = log_probs.gather(2, states.unsqueeze(0).expand(steps, batch, states.shape[1]))
    none = torch.full_like(said[0], _NEVER)
    path = torch.cat([said[0, :, :2], none[:, 2:]], 1)
    for t in range(1, steps):
        ways = [
            path,
            F.pad(path[:, :-1], (1, 0), value=_NEVER),
            torch.where(over, F.pad(path[:, :-2], (2, 0), value=_NEVER), none),
        ]
        path = torch.where((t < many).unsqueeze(1), torch.logsumexp(torch.stack(ways), 0) + said[t], path)
    last = path.gather(1, (2 * count).unsqueeze(1)).squeeze(1)
    before = path.gather(1, (2 * count - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    loss = -torch.logsumexp(torch.stack([last, torch.where(count > 0, before, none[:, 0])]), 0)
    loss = torch.where(loss > -_NEVER / 2, 0.0 if zero_infinity else math.inf, loss)
    if reduction == "mean":
        return (loss / count.clamp(min=1)).mean()
    return loss.sum() if reduction == "sum" else loss


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    """Running statistics are the mean of the instances' own, the variance unbiased; torch's operator writes them
    unseen."""
    if running_mean is not None and use_input_stats:
        with torch.no_grad():
            var, mean = torch.var_mean(input, list(range(2, input.dim())))
            running_mean.copy_(running_mean * (1 - momentum) + mean.mean(0) * momentum)
            running_var.copy_(running_var * (1 - momentum) + var.mean(0) * momentum)
        running_mean = running_var = None
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def fill_diagonal_(x, fill_value, wrap=False):
    """By a mask; torch's operator reads the memory in other steps."""
    if x.dim() != 2 or wrap:
        raise NotImplementedError("fill_diagonal_ of a tensor that is no matrix, or with wrap")
    return x.masked_fill_(torch.eye(x.shape[0], x.shape[1], dtype=torch.bool, device=x.device), fill_value)


def cov(x, *, correction=1, fweights=None, aweights=None):
    """Without weights of observations, whose values torch looks at."""
    if fweights is not None or aweights is not None:
        raise NotImplementedError("cov with weights")
    apart = x - x.mean(-1, keepdim=True)
    return (apart @ apart.transpose(-1, -2) if x.dim() == 2 else apart.square().sum()) / (x.shape[-1] - correction)


def corrcoef(x):
    c = cov(x)
    if c.dim() == 0:
        return c / c
    size = torch.diagonal(c).sqrt()
    return (c / size.unsqueeze(1) / size.unsqueeze(0)).clip(-1, 1)


DECOMPOSITIONS = {F.gaussian_nll_loss: gaussian_nll_loss, F.embedding_bag: embedding_bag,
                  F.multilabel_margin_loss: multilabel_margin_loss, F.ctc_loss: ctc_loss,
                  F.instance_norm: instance_norm, torch.Tensor.fill_diagonal_: fill_diagonal_, torch.cov: cov,
                  torch.Tensor.cov: cov, torch.corrcoef: corrcoef, torch.Tensor.corrcoef: corrcoef}
