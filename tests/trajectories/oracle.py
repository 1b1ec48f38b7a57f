"""The same training in torch: losses, optimizers and schedules of `cases.py`, in any precision."""

import fnmatch

import numpy as np
import torch
import torch.nn.functional as F

import nets_other
import nets_sequence
import nets_vision
from trajectory_cases import STEPS, feeds


def find(name):
    for module in (nets_vision, nets_sequence, nets_other):
        if hasattr(module, name):
            return getattr(module, name)
    raise KeyError(name)


def build(case):
    """Start values are all different, so that a value tells where an exporter put it."""
    torch.manual_seed(7)
    net, rng, seen = find(case.net)(), np.random.RandomState(7), set()
    for p in state(net).values():
        a = p.detach().numpy()
        if p.ndim <= 1 or not a.any():
            a += (0.1 * rng.standard_normal(a.shape)).astype(np.float32)
        flat = a.reshape(-1)
        for k in range(flat.size):
            while abs(float(flat[k])) in seen or flat[k] == 0:
                flat[k] = np.float32(flat[k] + 1e-4 * rng.standard_normal())
            seen.add(abs(float(flat[k])))
    return net


def state(net):
    """Parameters and float buffers, each once, by name."""
    out, seen = {}, set()
    for name, p in list(net.named_parameters()) + list(net.named_buffers()):
        if p.is_floating_point() and p.data_ptr() not in seen:
            seen.add(p.data_ptr())
            out[name] = p
    return out


def term_loss(term, outputs, given):
    kind, how = term["kind"], dict(reduction=term.get("reduction", "mean"))
    if kind[0].isupper():
        return find(kind)()(*[outputs.get(n, given.get(n)) for n in term["inputs"]])
    y = outputs[term.get("output") or next(iter(outputs))]
    t = given[term.get("label", "label")]
    if kind == "cross_entropy":
        w = term.get("class_weights")
        w = None if w is None else torch.tensor(np.array(w, np.float32)).to(y.dtype)
        if y.ndim == 3 and t.shape != (y.shape[0], y.shape[2]):  # classes last
            y = y.transpose(1, 2)
        return F.cross_entropy(y, t, weight=w, ignore_index=term.get("ignore_index", -100),
                               label_smoothing=term.get("label_smoothing", 0.0), **how)
    if kind == "nll":
        w = term.get("class_weights")
        return F.nll_loss(y, t, None if w is None else torch.tensor(w, dtype=y.dtype),
                          ignore_index=term.get("ignore_index", -100), **how)
    if kind == "hinge":
        return getattr(torch.clamp(1 - y * t, min=0), how["reduction"])()
    if kind == "huber":
        return F.huber_loss(y, t, delta=term["delta"], **how)
    f = {"mse": F.mse_loss, "l1": F.l1_loss, "kl": F.kl_div, "bce": F.binary_cross_entropy,
         "bce_logits": F.binary_cross_entropy_with_logits}
    return f[kind](y, t, **how)


def loss_of(section, outputs, given):
    return sum(t.get("weight", 1.0) * term_loss(t, outputs, given) for t in section.loss)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            b1, b2 = g["betas"]
            for p in g["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - g["lr"] * g["weight_decay"])
                p.sub_(g["lr"] * torch.sign(m * b1 + p.grad * (1 - b1)))
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


class Lamb(torch.optim.Optimizer):
    """You et al., version 5, with bias correction."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, t=0))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            g["t"] += 1
            b1, b2 = g["betas"]
            for p in g["params"]:
                s = self.state[p]
                m, v = s.setdefault("m", torch.zeros_like(p)), s.setdefault("v", torch.zeros_like(p))
                m.mul_(b1).add_(p.grad, alpha=1 - b1)
                v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                way = (m / (1 - b1 ** g["t"])) / ((v / (1 - b2 ** g["t"])).sqrt() + g["eps"]) + g["weight_decay"] * p
                a, b = p.norm(), way.norm()
                p.sub_(g["lr"] * (a / b if a > 0 and b > 0 else 1.0) * way)


def optimizer(section, params):
    name, args = section.optimizer
    args = dict(args)
    groups = list(params.values())
    if args.pop("no_decay_on_bias_and_norm", False):
        groups = [{"params": [p for p in groups if p.ndim > 1]},
                  {"params": [p for p in groups if p.ndim <= 1], "weight_decay": 0.0}]
    made = {"Lion": Lion, "Lamb": Lamb}.get(name) or getattr(torch.optim, name)
    return made(groups, **args)


def scheduler(section, opt):
    s = dict(section.schedule or {"kind": "constant"})
    kind, warm, lrs = s.pop("kind"), s.pop("warmup_steps", 0), torch.optim.lr_scheduler
    total = s.pop("total_steps", 0) - warm
    make = {
        "constant": lambda: lrs.ConstantLR(opt, 1.0, 1), "exponential": lambda: lrs.ExponentialLR(opt, **s),
        "step": lambda: lrs.StepLR(opt, **s), "multistep": lambda: lrs.MultiStepLR(opt, **s),
        "cosine": lambda: lrs.CosineAnnealingLR(opt, total, **s),
        "polynomial": lambda: lrs.PolynomialLR(opt, total, **s),
        "linear": lambda: lrs.LinearLR(opt, total_iters=total, **s),
        "onecycle": lambda: lrs.OneCycleLR(opt, total_steps=total, cycle_momentum=False, **s),
    }
    if not warm:
        return make[kind]()
    rise = lrs.LinearLR(opt, 1 / (warm + 1), 1.0, warm)
    return lrs.SequentialLR(opt, [rise, make[kind]()], [warm])


def given(case, step, dtype, order=None):
    out = {}
    for name, a in feeds(case, step).items():
        axis = case.batch_axis.get(name, 0)
        if order is not None and axis is not None:
            a = np.take(a, order, axis)
        t = torch.from_numpy(np.ascontiguousarray(a))
        out[name] = t.to(dtype) if t.is_floating_point() else t
    return out


def forward(case, net, data):
    y = net(*[data[n] for n in case.inputs])
    return dict(zip(case.outputs, y if isinstance(y, tuple) else (y,)))


def learn(settings, step, loss, params, opt, plan):
    """Backward, and an update when enough steps are accumulated; whether there was one."""
    (loss / settings.accumulate).backward()
    if (step + 1) % settings.accumulate:
        return False
    if settings.clip_value:
        torch.nn.utils.clip_grad_value_(list(params.values()), settings.clip_value)
    if settings.clip_norm:
        torch.nn.utils.clip_grad_norm_(list(params.values()), settings.clip_norm)
    opt.step()
    plan.step()
    return True


def trajectory(case, net, dtype=torch.float64, seed=None):
    """Losses of STEPS steps, gradients of the first, state after the last. With a seed the batch
    is in another order in every step: the same numbers but for rounding."""
    net = net.to(dtype).train()
    names = {n: p for n, p in net.named_parameters()}
    mine = [{n: p for n, p in names.items() if fnmatch.fnmatch(n, s.only or "*")} for s in case.sections]
    opts = [optimizer(s, p) for s, p in zip(case.sections, mine)]
    plans = [scheduler(s, o) for s, o in zip(case.sections, opts)]
    rng, grads = np.random.RandomState(seed or 0), {}
    buffers = {n: b.clone() for n, b in net.named_buffers()}
    losses = []
    for step in range(STEPS):
        batch = feeds(case, step)[next(iter(case.inputs))].shape[case.batch_axis.get(next(iter(case.inputs)), 0)]
        order = None if seed is None or not case.permute else rng.permutation(batch)
        data = given(case, step, dtype, order)
        if step == 0:
            for section, params in zip(case.sections, mine):
                loss = loss_of(section, forward(case, net, data), data)
                got = torch.autograd.grad(loss, list(params.values()), allow_unused=True)
                grads |= {n: torch.zeros_like(p) if g is None else g for (n, p), g in zip(params.items(), got)}
            for n, b in net.named_buffers():
                b.data.copy_(buffers[n])
        for section, params, opt, plan in zip(case.sections, mine, opts, plans):
            if step % section.accumulate == 0:
                net.zero_grad()
            loss = loss_of(section, forward(case, net, data), data)
            losses.append(float(loss.detach()))
            if learn(section, step, loss, params, opt, plan):
                net.zero_grad()
    to = lambda d: {n: p.detach().to(torch.float64).numpy().copy() for n, p in d.items()}  # noqa: E731
    return np.array(losses), to(grads), to(state(net))
