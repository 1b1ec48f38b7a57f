"""Operators through from_torch: each group is a module whose outputs are the operators' results. The self-check
compares values and the gradient of the learned factor with PyTorch and names the operator that differs."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'onnxtrain[torch]'")
pytest.importorskip("onnx")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import onnxtrain as ot  # noqa: E402

# x: [4, 3, 6] floats; p: the same, positive; i: [4, 3] integers 0..5; m: x > 0
GROUPS = {
    "unary": lambda x, p, i, m: {
        "abs": x.abs(), "exp": x.exp(), "log": p.log(), "log1p": p.log1p(), "expm1": x.expm1(), "exp2": x.exp2(),
        "log2": p.log2(), "log10": p.log10(), "rsqrt": p.rsqrt(), "sqrt": p.sqrt(), "square": x.square(),
        "recip": p.reciprocal(), "sin": x.sin(), "tan": x.tan(), "atan": x.atan(), "sinh": x.sinh(), "asinh": x.asinh(),
        "erf": x.erf(), "erfc": x.erfc(), "floor": x.floor(), "trunc": x.trunc(), "frac": x.frac(), "round": x.round(),
        "sign": x.sign(), "neg": -x, "logit": torch.sigmoid(x).logit(1e-6), "nan": x.nan_to_num(), "inv": ~m},
    "activations": lambda x, p, i, m: {
        "gelu": F.gelu(x), "gelut": F.gelu(x, approximate="tanh"), "silu": F.silu(x), "mish": F.mish(x),
        "elu": F.elu(x, 0.7), "selu": F.selu(x), "celu": F.celu(x, 0.5), "leaky": F.leaky_relu(x, 0.1),
        "htanh": F.hardtanh(x, -0.5, 0.7), "hsig": F.hardsigmoid(x), "hswish": F.hardswish(x),
        "softplus": F.softplus(x, 2.0, 3.0), "softsign": F.softsign(x), "logsig": F.logsigmoid(x),
        "sshrink": F.softshrink(x, 0.3), "hshrink": F.hardshrink(x, 0.3), "tshrink": F.tanhshrink(x),
        "thresh": F.threshold(x, 0.1, 2.0), "glu": F.glu(x, -1), "relu6": F.relu6(x), "softmin": F.softmin(x, 1),
        "logsoftmax": F.log_softmax(x, 1), "rrelu": F.rrelu(x, training=False)},
    "binary": lambda x, p, i, m: {
        "add": torch.add(x, p, alpha=0.5), "sub": x - p, "rsub": 1 - x, "mul": x * i.unsqueeze(-1), "div": x / p,
        "fdiv": torch.div(x, p, rounding_mode="floor"), "tdiv": torch.div(x, p, rounding_mode="trunc"),
        "rem": torch.remainder(x, 0.7), "fmod": torch.fmod(x, 0.7), "pow": p**1.7, "powt": p**x, "pow3": x**3,
        "rpow": 2.0**x, "max": torch.maximum(x, p), "min": torch.minimum(x, p), "atan2": torch.atan2(x, p),
        "where": torch.where(m, x, p), "clamp": x.clamp(-0.5, 0.8), "clampt": x.clamp(min=p - 1),
        "lerp": torch.lerp(x, p, 0.3), "addcmul": torch.addcmul(x, x, p, value=0.5), "addcdiv": torch.addcdiv(x, x, p),
        "xlogy": torch.xlogy(x, p), "logaddexp": torch.logaddexp(x, p), "hypot": torch.hypot(x, p),
        "fill": x.masked_fill(m, 2.0), "idiv": i // 2, "imod": i % 4, "neg_idiv": (i - 3) // 2, "eq": i == 2,
        "bits": (i & 1) | (i ^ 2), "ge": x >= p},
    "shapes": lambda x, p, i, m: {
        "view": x.view(x.shape[0], -1), "flat": x.flatten(0, 1), "unflat": x.unflatten(2, (2, 3)),
        "perm": x.permute(2, 0, 1), "movedim": x.movedim(0, -1), "exp": x[:, :1].expand(-1, 3, -1),
        "rep": x.repeat(1, 2, 1), "tile": x.tile(2), "ri": x.repeat_interleave(2, 1), "cat": torch.cat([x, p], 1),
        "stack": torch.stack([x, p], 1), "chunk": x.chunk(2, -1)[1], "split": x.split([1, 2], 1)[1],
        "unbind": x.unbind(1)[2], "narrow": x.narrow(2, 1, 3), "step": x[:, :, ::2], "neg": x[:, -1],
        "flip": x.flip(1, 2), "roll": x.roll(2, -1), "roll2": x.roll((1, -2), (1, 2)), "unfold": x.unfold(2, 3, 2),
        "tril": x.tril(1), "triu": x.triu(), "diag": x.diagonal(0, 1, 2), "pad": F.pad(x, (1, 2, 0, 1), value=3.0),
        "refl": F.pad(x, (2, 1), mode="reflect"), "repl": F.pad(x, (2, 1), mode="replicate"),
        "circ": F.pad(x, (1, 1), mode="circular"), "sq": x.unsqueeze(1).squeeze(1),
        "mesh": torch.meshgrid(x[0, 0], p[0, 0], indexing="ij")[1], "emb": torch.diag_embed(x)},
    "reductions": lambda x, p, i, m: {
        "sum": x.sum((0, 2)), "mean": x.mean(1, keepdim=True), "prod": p.prod(1), "amax": x.amax(2),
        "amin": x.amin((1, 2)), "maxd": x.max(1)[0], "maxi": x.max(1)[1], "min": x.min(), "argmax": x.argmax(2),
        "argmin": x.argmin(), "var": x.var(1), "var0": x.var((1, 2), correction=0), "std": x.std(),
        "vm": torch.var_mean(x, 1)[0], "norm": x.norm(dim=-1), "norm1": x.norm(1, -1),
        "norm3": torch.linalg.vector_norm(x, 3, -1), "ninf": torch.linalg.vector_norm(x, float("inf"), -1),
        "lse": x.logsumexp(1), "any": m.any(1), "all": m.all(), "cumsum": x.cumsum(1), "cumprod": p.cumprod(1),
        "cummax": x.cummax(1)[0], "cummaxi": x.round().cummax(1)[1], "cummin": x.cummin(-1)[0],
        "cummini": x.round().cummin(1)[1], "lcse": x.logcumsumexp(1), "topk": x.topk(2, -1)[0], "sort": x.sort(-1)[0],
        "argsort": x.argsort(1, descending=True), "count": m.count_nonzero(), "softmax": x.softmax(0),
        "median2": x.sort(1)[0][:, 1]},
    "indexing": lambda x, p, i, m: {
        "gather": x.gather(2, i.unsqueeze(-1)), "isel": x.index_select(1, torch.tensor([2, 0])),
        "index": x[:, torch.tensor([0, 2]), torch.tensor([1, 5])], "index1": x[:, [2, 1]],
        "index2": x[torch.arange(x.shape[0]), 1],
        "scatter": torch.zeros_like(x).scatter(2, i.unsqueeze(-1), p[:, :, :1]),
        "scatadd": torch.zeros_like(x).scatter_add(2, i.unsqueeze(-1).expand(-1, -1, 6), p),
        "iadd": x.index_add(1, torch.tensor([0, 0]), p[:, :2]), "ifill": x.index_fill(2, torch.tensor([1]), 7.0),
        "put": torch.index_put(x, (torch.tensor([0, 1]), torch.tensor([1, 2])), p[0, :2]),
        "bucket": torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), "onehot": F.one_hot(i, 6),
        "along": torch.take_along_dim(x, x.argsort(-1), -1), "iput": put(x, p), "ellipsis": x[..., None, 1:3]},
    "products": lambda x, p, i, m: {
        "matmul": x @ p.transpose(1, 2), "bmm": torch.bmm(x, p.mT), "einsum": torch.einsum("bij,bkj->bik", x, p),
        "baddbmm": torch.baddbmm(x[:, :, :3], x, p.mT, beta=0.5, alpha=2.0), "outer": torch.outer(x[0, 0], p[0, 1]),
        "dot": torch.dot(x[0, 0], p[0, 1]), "addmm": torch.addmm(x[:, 0, :3], x[:, 1], p[0].T, alpha=0.5),
        "cdist": torch.cdist(x, p), "cos": F.cosine_similarity(x, p, -1), "det": torch.linalg.det(x[:, :, :3]),
        "slogdet": torch.slogdet(x[:, :, 3:])[1], "pair": F.pairwise_distance(x[:, 0], p[:, 0]),
        "sdpa": F.scaled_dot_product_attention(x, p, x, attn_mask=torch.ones(3, 3).tril().bool()),
        "conv": F.conv1d(x, p[:2, :, :2], padding="same"),
        "convt": F.conv_transpose1d(x, p[:3, :2, :2], stride=2, output_padding=1), "ln": F.layer_norm(x, (6,)),
        "bilinear": F.bilinear(x[:, 0], p[:, 1], p[:2, :, :1].expand(2, 3, 6).repeat(1, 2, 1))},
    "images": lambda x, p, i, m: {
        "maxpool": F.max_pool1d(x, 2, padding=1), "avgpool": F.avg_pool1d(x, 3, 2, padding=1, count_include_pad=False),
        "ada": F.adaptive_avg_pool1d(x, 4), "adamax": F.adaptive_max_pool1d(x, 3), "lp": F.lp_pool1d(p, 2.0, 2),
        "near": F.interpolate(x, scale_factor=2), "lin": F.interpolate(x, size=9, mode="linear"),
        "bil": F.interpolate(x.unsqueeze(1), scale_factor=(2.0, 1.5), mode="bilinear", align_corners=True),
        "bic": F.interpolate(x.unsqueeze(1), size=(5, 8), mode="bicubic"),
        "grid": F.grid_sample(x.unsqueeze(1), torch.tanh(p[:, :, :4].reshape(-1, 2, 3, 2)), align_corners=False),
        "unfold": F.unfold(x.unsqueeze(1), 2), "fold": F.fold(x[:, :, :4].repeat(1, 4, 1)[:, :4], (3, 3), 2),
        "shuffle": F.pixel_shuffle(x[:, :2].repeat(1, 2, 1).unsqueeze(-1), 2),
        "unshuffle": F.pixel_unshuffle(x[:, :2].unsqueeze(1), 2), "gn": F.group_norm(x, 3), "inorm": F.instance_norm(x),
        "lrn": F.local_response_norm(x, 2)},
    "losses": lambda x, p, i, m: {
        "mse": F.mse_loss(x, p), "l1": F.l1_loss(x, p, reduction="sum"), "smooth": F.smooth_l1_loss(x, p, beta=0.5),
        "huber": F.huber_loss(x, p, delta=0.5), "bcel": F.binary_cross_entropy_with_logits(x, torch.sigmoid(p)),
        "bce": F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(p)),
        "kl": F.kl_div(x.log_softmax(-1), p.softmax(-1), reduction="batchmean"),
        "nll": F.nll_loss(x.log_softmax(2).transpose(1, 2), i),
        "ce": F.cross_entropy(x.transpose(1, 2), i, weight=torch.arange(1.0, 7.0), label_smoothing=0.1, ignore_index=1),
        "ceprob": F.cross_entropy(x, p.softmax(1)), "softmargin": F.soft_margin_loss(x, p.sign().detach()),
        "triplet": F.triplet_margin_loss(x[:, 0], p[:, 0], x[:, 1]),
        "rank": F.margin_ranking_loss(x, p, torch.ones_like(x)),
        "hinge": F.hinge_embedding_loss(x, torch.where(m, 1.0, -1.0)), "poisson": F.poisson_nll_loss(x, p),
        "cosemb": F.cosine_embedding_loss(x[:, 0], p[:, 0], torch.ones(x.shape[0])),
        "multilabel": F.multilabel_soft_margin_loss(x[:, 0], m[:, 0].float())},
}


def put(x, p):
    y = x.clone()
    y[:, 1] = p[:, 0]
    y[:, :, 2:4] *= 2.0
    y[y > 1.5] = 0.25
    return y


class Group(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f, self.scale = f, nn.Parameter(torch.linspace(0.8, 1.2, 6))

    def forward(self, x, p, i):
        return self.f(x * self.scale, p * self.scale, i, x > 0)


def total(out, _):
    return sum((v * v).mean() + 0.5 * v.mean() for v in out.values() if v.dtype.is_floating_point)


@pytest.mark.parametrize("name", GROUPS)
def test_group(name):
    torch.manual_seed(0)
    module = Group(GROUPS[name])
    inputs = {"x": torch.randn(4, 3, 6), "p": torch.rand(4, 3, 6) + 0.3, "i": torch.randint(0, 6, (4, 3))}
    model = ot.from_torch(
        module, inputs, None, total, torch.optim.SGD(module.parameters(), 0.1), dynamic_batch=name != "products"
    )
    assert len(model.outputs) == len(GROUPS[name](inputs["x"], inputs["p"], inputs["i"], inputs["x"] > 0))


@pytest.mark.parametrize("f", [F.relu6, lambda x: F.hardtanh(x, -3.0, 3.0), lambda x: x.clamp(-3, 3), F.relu],
                         ids=["relu6", "hardtanh", "clamp", "relu"])
def test_gradients_at_the_bounds(f):
    """0 for activations, 1 for clamp. The examples have no number there, so that the self-check does not see it."""
    class Bounded(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = nn.Parameter(torch.ones(5)), nn.Parameter(torch.zeros(5))

        def forward(self, x):
            return f(x * self.w + self.b)

    torch.manual_seed(0)
    module, target = Bounded(), torch.randn(6, 5)
    optimizer = torch.optim.SGD(module.parameters(), 1.0)

    def product(p, t):
        return (p * t).sum()

    trainer = ot.Trainer(ot.from_torch(module, torch.randn(6, 5), target, loss=product, optimizer=optimizer))
    x = torch.arange(30.0).reshape(6, 5) % 4 * 3 - 3
    trainer.step({trainer.inputs[0]: x.numpy(), trainer.targets[0]: target.numpy()})
    product(module(x), target).backward()
    optimizer.step()
    for name, p in module.named_parameters():
        assert torch.allclose(torch.tensor(trainer.state[name]), p, atol=1e-5), name
