"""from_torch: trajectories, names, what stays untouched, bad input. The trajectories are in test_both_ways.py."""

import json
import pathlib
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'onnxtrain[torch]'")
onnx = pytest.importorskip("onnx")
import onnxtrain as ot  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tests" / "pytorch"))
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.optim import lr_scheduler as lrs  # noqa: E402

import trips as roundtrip  # noqa: E402


def proto_of(model):
    return onnx.ModelProto.FromString(model.proto())


def info_of(model):
    return json.loads({p.key: p.value for p in proto_of(model).metadata_props}["onnxtrain.torch"])


def net(seed=0):
    torch.manual_seed(seed)
    return (
        nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3)),
        torch.randn(8, 5),
        torch.randint(0, 3, (8,)),
        nn.CrossEntropyLoss(),
    )


def torch_steps(m, opt, x, t, loss, n, scheduler=None):
    return roundtrip.torch_steps(m, opt, x, t, loss, n, scheduler)


SCHEDULERS = {
    "step": lambda o: lrs.StepLR(o, 3, 0.5),
    "multistep": lambda o: lrs.MultiStepLR(o, [2, 6, 6, 9], 0.3),
    "exponential": lambda o: lrs.ExponentialLR(o, 0.9),
    "cosine": lambda o: lrs.CosineAnnealingLR(o, 8, 1e-4),
    "linear": lambda o: lrs.LinearLR(o, 0.3, 0.9, 7),
    "constant": lambda o: lrs.ConstantLR(o, 0.25, 6),
    "polynomial": lambda o: lrs.PolynomialLR(o, 12, 2.0),
    "restarts": lambda o: lrs.CosineAnnealingWarmRestarts(o, 3, 2, 1e-4),
    "onecycle": lambda o: lrs.OneCycleLR(o, 0.1, total_steps=30),
    "three_phases": lambda o: lrs.OneCycleLR(
        o, [0.1, 0.05], total_steps=25, three_phase=True, anneal_strategy="linear"
    ),
    "sequential": lambda o: lrs.SequentialLR(
        o, [lrs.LinearLR(o, 0.1, 1.0, 4), lrs.CosineAnnealingLR(o, 10)], milestones=[4]
    ),
}


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_schedules_of_two_groups_from_their_middle(kind):
    m, x, t, loss = net()
    groups = [{"params": m[0].parameters(), "weight_decay": 0.1}, {"params": m[2].parameters(), "lr": 2e-2}]
    opt = (
        torch.optim.SGD(groups, lr=1e-2, momentum=0.9, nesterov=True)
        if len(kind) % 2
        else torch.optim.AdamW(groups, lr=1e-2)
    )
    scheduler = SCHEDULERS[kind](opt)
    torch_steps(m, opt, x, t, loss, 5, scheduler)
    trainer = ot.Trainer(ot.from_torch(m, x, t, loss, opt, scheduler))
    ours = [trainer.step({"input": x.numpy(), "target": t.numpy()}).loss for _ in range(8)]
    theirs = torch_steps(m, opt, x, t, loss, 8, scheduler)
    np.testing.assert_allclose(ours, theirs, rtol=2e-6)
    np.testing.assert_allclose(
        [trainer.lr, float(trainer.state["learning_rate.1"])],
        [g["lr"] for g in opt.param_groups],
        rtol=1e-6,
        atol=1e-12,
    )
    np.testing.assert_allclose(trainer.state["0.weight"], m[0].weight.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_flags_and_uneven_histories():
    m, x, t, loss = net()
    m[0].bias.requires_grad_(False)
    opt = torch.optim.Adam([m[0].weight, m[2].weight], lr=1e-2, maximize=True, amsgrad=True)
    torch_steps(m, opt, x, t, lambda o, y: -loss(o, y), 3)
    opt.add_param_group({"params": [m[2].bias], "lr": 3e-3, "betas": (0.5, 0.9)})  # joins three steps late
    negative = lambda o, y: -loss(o, y)
    model = ot.from_torch(m, x, t, negative, opt)
    trainer = ot.Trainer(model)
    ours = [trainer.step({"input": x.numpy(), "target": t.numpy()}).loss for _ in range(5)]
    np.testing.assert_allclose(ours, torch_steps(m, opt, x, t, negative, 5), rtol=1e-5)
    info = info_of(model)
    assert info["frozen"] == ["0.bias"] and info["optimizer"]["counters"] == {"2.bias": "T.1"}
    assert "0.bias" not in trainer.state and int(trainer.state["T"]) == 8 and int(trainer.state["T.1"]) == 5


def test_names_ties_buffers_inputs():
    torch.manual_seed(0)
    module, x, t, loss = roundtrip.ARCHITECTURES["gpt"]()
    model = ot.from_torch(module, x, t, loss, torch.optim.SGD(module.parameters(), 0.1))
    info = info_of(model)
    assert info["ties"] == {"head.weight": "wte.weight"}
    assert set(model.parameters) == {n for n, _ in module.named_parameters()}
    assert model.inputs == ["idx"] and model.outputs == ["output"] and info["targets"] == ["target"]
    assert proto_of(model).graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    module, x, t, loss = roundtrip.ARCHITECTURES["cnn_bn"]()
    model = ot.from_torch(module, x, t, loss, torch.optim.SGD(module.parameters(), 0.1))
    for name, value in module.state_dict().items():
        np.testing.assert_array_equal(model.parameters[name], value.numpy())
    keys = {b.key for b in proto_of(model).training_info[0].update_binding}
    assert {"0.1.running_mean", "0.1.running_var", "0.1.num_batches_tracked"} <= keys


def test_another_batch_size_and_the_inference_form():
    module, x, t, loss = roundtrip.ARCHITECTURES["resnet"]()
    module.train()
    opt = torch.optim.SGD(module.parameters(), 0.05)
    model = ot.from_torch(module, x, t, loss, opt)
    big, bt = torch.randn(9, 3, 16, 16), torch.randint(0, 5, (9,))
    trainer = ot.Trainer(model)
    ours = [trainer.step({"input": big.numpy(), "target": bt.numpy()}).loss for _ in range(2)]
    np.testing.assert_allclose(ours, torch_steps(module, opt, big, bt, loss, 2), rtol=1e-5)
    module.eval()
    with torch.no_grad():
        want = module(big).numpy()
    got = ot.Session(trainer.model()).run({"input": big.numpy()})["output"]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_the_file_says_which_output_is_which_in_training():
    """By metadata, not by the ending of a name: other names mean the same."""
    module, x, t, loss = roundtrip.ARCHITECTURES["cnn_bn"]()
    model = ot.from_torch(module, x, t, loss, torch.optim.SGD(module.parameters(), 0.1))
    proto = proto_of(model)
    said = next(p for p in proto.metadata_props if p.key == "onnxtrain.inference_form")
    forms = json.loads(said.value)
    (copy, form), = forms.items()
    assert form == proto.graph.output[0].name and copy in [o.name for o in proto.training_info[0].algorithm.output]
    algorithm = proto.training_info[0].algorithm
    for n in algorithm.node:
        n.input[:] = ["scores" if v == copy else v for v in n.input]
        n.output[:] = ["scores" if v == copy else v for v in n.output]
    for o in [*algorithm.output, *algorithm.value_info]:
        o.name = "scores" if o.name == copy else o.name
    for b in proto.training_info[0].update_binding:
        b.value = "scores" if b.value == copy else b.value
    said.value = json.dumps({"scores": form})
    renamed = ot.load(proto.SerializeToString())
    data = {"input": x.numpy(), "target": t.numpy()}
    assert ot.Trainer(renamed).evaluate(data) == ot.Trainer(model).evaluate(data)
    made = ot.to_torch(renamed)
    assert [v.shape for v in [made.module.train()(x)]] == [module(x).shape]


def test_a_batch_of_one_leaves_the_size_open():
    m, x, t, loss = net()
    model = ot.from_torch(m, x[:1], t[:1], loss, torch.optim.SGD(m.parameters(), 0.1))
    trainer = ot.Trainer(model)
    assert np.isfinite(trainer.step({"input": x.numpy(), "target": t.numpy()}).loss)
    fixed = ot.from_torch(m, x, dynamic_batch=False)
    assert proto_of(fixed).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 8


def test_nothing_of_the_module_changes():
    torch.manual_seed(3)
    module, x, t, loss = roundtrip.ARCHITECTURES["cnn_bn"]()
    module.insert(1, nn.Dropout(0.3))
    module.train()
    module[0][1].eval()
    opt = torch.optim.AdamW(module.parameters(), 1e-3)
    torch_steps(module, opt, x, t, loss, 2)
    before = {n: v.clone() for n, v in module.state_dict().items()}
    modes = [m.training for m in module.modules()]
    grads = {n: p.grad.clone() for n, p in module.named_parameters()}
    saved = json.dumps({k: {a: b.tolist() for a, b in v.items()} for k, v in opt.state_dict()["state"].items()})
    random_state = torch.get_rng_state()
    ot.from_torch(module, x, t, loss, opt)
    assert torch.equal(random_state, torch.get_rng_state()) and modes == [m.training for m in module.modules()]
    assert all(torch.equal(v, before[n]) for n, v in module.state_dict().items())
    assert all(torch.equal(p.grad, grads[n]) for n, p in module.named_parameters())
    assert saved == json.dumps({k: {a: b.tolist() for a, b in v.items()} for k, v in opt.state_dict()["state"].items()})


def test_dropout_lives_with_the_right_distribution():
    torch.manual_seed(0)
    import from_zoo as zoo

    module, x = zoo.Encoder(p=0.3), torch.randint(1, 20, (16, 7))
    t, loss = torch.randint(0, 5, (16,)), nn.CrossEntropyLoss()
    module.train()
    model = ot.from_torch(module, x, t, loss, torch.optim.SGD(module.parameters(), 0.0))
    ours = [ot.Trainer(model, seed=s).step({"ids": x.numpy(), "target": t.numpy()}).loss for s in range(50)]
    theirs = torch_steps(module, torch.optim.SGD(module.parameters(), 0.0), x, t, loss, 50)
    assert np.std(ours) > 0
    gap = abs(np.mean(ours) - np.mean(theirs)) / np.sqrt(np.var(ours) / 50 + np.var(theirs) / 50)
    assert gap < 4, (np.mean(ours), np.mean(theirs))
    assert 0.5 < np.std(ours) / np.std(theirs) < 2
    again = [ot.Trainer(model, seed=s).step({"ids": x.numpy(), "target": t.numpy()}).loss for s in range(2)]
    assert again == ours[:2]


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        y = self.l(x)
        if y.sum() > 0:
            y = y * 2
        return y


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        return g


class Custom(Branch):
    def forward(self, x):
        return Straight.apply(self.l(x)) + torch.special.i0(self.l(x)) + torch.linalg.qr(x.t())[0].sum()


def refusal(*args, **kwargs):
    with pytest.raises(ot.Error) as e:
        ot.from_torch(*args, **kwargs)
    return str(e.value)


def test_refusals_name_every_obstacle_and_its_line():
    x, here = torch.randn(3, 4), pathlib.Path(__file__).name
    text = refusal(Branch(), x)
    assert here in text and "if y.sum() > 0" in text and "torch.where" in text
    text = refusal(Custom(), x)
    assert "Straight" in text and "i0" in text and "qr" in text and text.count(here) >= 3
    assert "half precision" in refusal(Branch().half(), x.half())
    assert "lazy" in refusal(nn.LazyLinear(3), x)


def test_refusals_of_optimizers_schedulers_losses():
    m, x, t, loss = net()

    class Lion(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 1e-3})

        def step(self):
            pass

    opt = torch.optim.SGD(m.parameters(), 0.1)
    assert "Lion" in refusal(m, x, t, loss, Lion(m.parameters()))
    assert "LBFGS" in refusal(m, x, t, loss, torch.optim.LBFGS(m.parameters()))
    text = refusal(m, x, t, loss, opt, lrs.LambdaLR(opt, lambda k: 0.9**k))
    assert "LambdaLR" in text and "StepLR" in text
    assert "ReduceLROnPlateau" in refusal(m, x, t, loss, opt, lrs.ReduceLROnPlateau(opt))
    assert "scalar" in refusal(m, x, t, nn.CrossEntropyLoss(reduction="none"), opt)
    assert "optimizer" in refusal(m, x, t, loss)
    assert "neither module nor loss" in refusal(m, x, t, loss, torch.optim.SGD(nn.Linear(2, 2).parameters(), 0.1))
    assert "trains nothing" in refusal(m, x, t, lambda o, y: F.cross_entropy(o.detach(), y) + 0 * x.sum(), opt)


def test_a_file_that_differs_is_not_returned(monkeypatch):
    from onnxtrain.torch.from_torch.lower import TABLE

    m, x, t, loss = net()
    right = TABLE["aten.relu"]
    monkeypatch.setitem(TABLE, "aten.relu", lambda c, a: c.op("Mul", right(c, a), c.num(1.01, a.self)))
    text = refusal(m, x, t, loss, torch.optim.SGD(m.parameters(), 0.1))
    assert "OT1605" in text and "output 'output'" in text


def test_detach_and_no_grad_stop_the_gradient():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            y = self.a(x)
            with torch.no_grad():
                z = self.b(y) * 2
            y = y.clone()
            y[:, 0] = 0
            return self.b(y.detach()) + z * y

    torch.manual_seed(0)
    m, x, t = Net(), torch.randn(6, 4), torch.randn(6, 4)
    opt = torch.optim.SGD(m.parameters(), 0.1)
    trainer = ot.Trainer(ot.from_torch(m, x, t, nn.MSELoss(), opt))
    ours = [trainer.step({"x": x.numpy(), "target": t.numpy()}).loss for _ in range(4)]
    np.testing.assert_allclose(ours, torch_steps(m, opt, x, t, nn.MSELoss(), 4), rtol=1e-5)


def test_evaluate_and_fit_on_a_converted_model(tmp_path):
    m, x, t, loss = net()
    model = ot.from_torch(m, x, t, loss, torch.optim.AdamW(m.parameters(), 1e-2))
    trainer = ot.Trainer(model)
    history = trainer.fit({"input": x.numpy()}, {"target": t.numpy()}, epochs=2, batch_size=4)
    assert len(history) == 2
    with torch.no_grad():
        want = float(loss(m(x), t))
    assert abs(ot.Trainer(model).evaluate({"input": x.numpy()}, {"target": t.numpy()})["loss"] - want) < 1e-5
    trainer.save(tmp_path / "a.train.onnx")
    assert not ot.check(str(tmp_path / "a.train.onnx"))


def test_versions_table():
    from onnxtrain.torch.shared import versions

    assert versions.version_of("2.13.0+cpu") == (2, 13) and versions.version_of("2.9.1") == (2, 9)
    assert versions.TESTED in versions.TABLE and versions.OLDEST == min(versions.TABLE)
    assert versions.check_version() in versions.TABLE or versions.version_of(torch.__version__) > versions.TESTED
    with pytest.raises(ot.ModelError, match="older"):
        versions.check_version("2.1.0")
    with pytest.warns(UserWarning, match="tested"):
        versions.check_version("99.0.0")
    assert versions.decomposition(torch.ops.aten.triplet_margin_loss.default) is not None


@pytest.mark.parametrize("rows", [1, 4])
def test_a_size_that_forward_fixes_is_fixed_in_the_file(rows):
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 2)

        def forward(self, x):
            return self.a(x).sum(1) / len(x)

    m = Mean()
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    with pytest.warns(UserWarning, match=f"fixes the first size of 'x' at {rows}"):
        model = ot.from_torch(m, torch.randn(rows, 3), torch.randn(rows), nn.MSELoss(), optimizer)
    x, y = torch.randn(rows, 3), torch.randn(rows)
    trainer = ot.Trainer(model)
    assert abs(trainer.step({"x": x.numpy(), "target": y.numpy()}).loss - float(nn.MSELoss()(m(x), y).detach())) < 1e-6
    with pytest.raises(ot.DataError, match=f"wants float\\[{rows},3\\]"):
        trainer.step({"x": np.zeros((6, 3), np.float32), "target": np.zeros(6, np.float32)})
