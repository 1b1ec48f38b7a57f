"""Optimizers, schedules, clipping, accumulation: five steps here, then the same five steps here and in PyTorch."""

import warnings

import numpy as np
import pytest
import torch

import onnxtrain as ot
from graphs import batch, largest_difference, mlp, torch_step

OPTIMIZERS = {
    "sgd": (ot.SGD(lr=0.1), "SGD"), "sgd_decay": (ot.SGD(lr=0.1, weight_decay=0.01), "SGD"),
    "momentum": (ot.SGD(lr=0.1, momentum=0.9), "SGD"),
    "dampening": (ot.SGD(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.01), "SGD"),
    "nesterov": (ot.SGD(lr=0.1, momentum=0.9, nesterov=True), "SGD"), "adam": (ot.Adam(lr=1e-2), "Adam"),
    "adam_ams": (ot.Adam(lr=1e-2, amsgrad=True, weight_decay=0.1), "Adam"), "adamw": (ot.AdamW(lr=1e-2), "AdamW"),
    "adamw_ams": (ot.AdamW(lr=1e-2, amsgrad=True), "AdamW"),
    "adam_keras": (ot.Adam(lr=1e-2, style="keras"), "GraphOptimizer"),
    "adagrad": (ot.Adagrad(lr_decay=0.1, initial_accumulator_value=0.2), "Adagrad"),
    "adagrad_keras": (ot.Adagrad(style="keras"), "GraphOptimizer"), "rmsprop": (ot.RMSprop(), "RMSprop"),
    "rmsprop_centered": (ot.RMSprop(centered=True), "RMSprop"),
    "rmsprop_momentum": (ot.RMSprop(momentum=0.9, centered=True, weight_decay=0.1), "RMSprop"),
    "rmsprop_keras": (ot.RMSprop(style="keras"), "GraphOptimizer"), "lion": (ot.Lion(), "GraphOptimizer"),
    "adadelta": (ot.Adadelta(), "Adadelta"), "nadam": (ot.NAdam(lr=1e-2, weight_decay=0.1), "NAdam"),
    "nadam_decoupled": (ot.NAdam(lr=1e-2, weight_decay=0.1, decoupled_weight_decay=True), "NAdam"),
    "radam": (ot.RAdam(lr=1e-2, betas=(0.9, 0.9)), "RAdam"), "adamax": (ot.Adamax(lr=1e-2), "Adamax"),
    "rprop": (ot.Rprop(lr=1e-3, etas=(0.4, 1.3), step_sizes=(1e-5, 0.1)), "Rprop"),
    "lamb": (ot.Lamb(), "GraphOptimizer"), "onnx_adam": (ot.OnnxAdam(lr=0.01), "GraphOptimizer"),
    "onnx_momentum": (ot.OnnxMomentum(lr=0.01, mode="nesterov"), "SGD"),
    "onnx_adagrad": (ot.OnnxAdagrad(lr=0.01), "Adagrad"),
    "groups": (ot.AdamW(overrides={"fc1.*": {"lr_scale": 0.5, "weight_decay": 0.0}}), "AdamW"),
}
SCHEDULES = {
    "step": ({"kind": "step", "step_size": 3}, "StepLR"),
    "multistep": ({"kind": "multistep", "milestones": [3, 7]}, "MultiStepLR"),
    "exponential": ({"kind": "exponential"}, "ExponentialLR"),
    "cosine": ({"kind": "cosine", "total_steps": 20}, "CosineAnnealingLR"),
    "cosine_low": ({"kind": "cosine", "total_steps": 20, "min_lr": 1e-4}, "CosineAnnealingLR"),
    "linear": ({"kind": "linear", "total_steps": 12}, "LinearLR"),
    "polynomial": ({"kind": "polynomial", "total_steps": 12, "power": 2}, "PolynomialLR"),
    "onecycle": ({"kind": "onecycle", "total_steps": 20}, "GraphLR"),
    "warm_cosine": ({"kind": "cosine", "total_steps": 20, "warmup_steps": 3}, "SequentialLR"),
    "warm_constant": ({"kind": "constant", "warmup_steps": 7}, "LinearLR"),
    "warm_step": ({"kind": "step", "step_size": 3, "warmup_steps": 7}, "SequentialLR"),
}


def both(optimizer, before=5, after=5, **options):
    """Trains on here and in PyTorch from the same point; (torch side, largest loss difference, state difference)."""
    trainer = ot.Trainer(ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=optimizer, **options))
    batches = [batch(seed=s) for s in range(before + after)]
    for b in batches[:before]:
        trainer.step(b)
    made = ot.to_torch(trainer)
    made.module.train()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there = [torch_step(made, [torch.from_numpy(b["x"])], torch.from_numpy(b["label"])) for b in batches[before:]]
    here = [trainer.step(b).loss for b in batches[before:]]
    back = ot.Trainer(made.model())
    assert here == pytest.approx(there, rel=1e-5)
    # RMSprop divides by tiny averages: its buffer is compared by size
    assert largest_difference(trainer, back)[0] < 5e-5, largest_difference(trainer, back)
    # and on: the file that came back continues here
    extra = batch(seed=99)
    assert trainer.step(extra).loss == pytest.approx(back.step(extra).loss, rel=1e-5)
    if isinstance(optimizer, ot.Rprop):  # its steps read no learning rate
        for t in (trainer, back):
            with pytest.raises(ot.UsageError, match="OT1125"):
                t.lr  # noqa: B018
    else:
        assert back.lr == pytest.approx(trainer.lr, rel=1e-6)
    return made


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("before", [0, 5])
def test_optimizer(name, before):
    optimizer, kind = OPTIMIZERS[name]
    made = both(optimizer, before)
    assert type(made.optimizer).__name__ == kind
    assert made.scheduler is None
    assert len(made.optimizer.param_groups) == (2 if name == "groups" else 1)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("before", [0, 5])
def test_schedule(name, before):
    schedule, kind = SCHEDULES[name]
    made = both(ot.AdamW(lr=1e-2), before, 8, schedule=schedule)
    assert type(made.scheduler).__name__ == kind
    assert made.scheduler.last_epoch == before + 8


def test_schedule_with_groups():
    made = both(ot.AdamW(overrides={"fc1.*": {"lr_scale": 0.5}}), schedule={"kind": "cosine", "total_steps": 20})
    slow, fast = (g["lr"] for g in made.optimizer.param_groups)
    assert slow == pytest.approx(fast / 2)


@pytest.mark.parametrize(
    "options", [{"clip_norm": 0.1}, {"clip_value": 0.01}, {"clip_norm": 0.1, "clip_value": 0.01}], ids=str
)
def test_clipping_keeps_torchs_class(options):
    assert type(both(ot.AdamW(lr=1e-2), **options).optimizer) is torch.optim.AdamW


@pytest.mark.parametrize("options", [{"accumulate": 2}, {"accumulate": 3, "clip_norm": 0.1},
                                     {"accumulate": 2, "schedule": {"kind": "cosine", "total_steps": 20}}], ids=str)
def test_accumulation(options):
    both(ot.AdamW(lr=1e-2), **options)


def test_hyper_parameters_are_the_users_numbers():
    made = ot.to_torch(ot.prepare(mlp().SerializeToString(), loss="cross_entropy",
                                  optimizer=ot.SGD(lr=0.3, momentum=0.85, dampening=0.15, weight_decay=3e-4)))
    g = made.optimizer.param_groups[0]
    assert (g["lr"], g["momentum"], g["dampening"], g["weight_decay"]) == (0.3, 0.85, 0.15, 3e-4)
    made = ot.to_torch(ot.prepare(mlp().SerializeToString(), loss="cross_entropy",
                                  optimizer=ot.AdamW(lr=3e-4, betas=(0.91, 0.98), eps=1e-7, weight_decay=0.05)))
    g = made.optimizer.param_groups[0]
    assert (g["lr"], g["betas"], g["eps"], g["weight_decay"]) == (3e-4, (0.91, 0.98), 1e-7, 0.05)


@pytest.mark.parametrize("name", ["adamw", "momentum", "lion", "rmsprop_momentum"])
def test_state_dicts_travel(name):
    """optimizer.state_dict() and scheduler.state_dict() go through torch.save and load again."""
    import io

    options = {"optimizer": OPTIMIZERS[name][0], "schedule": {"kind": "onecycle", "total_steps": 30}}
    model = ot.prepare(mlp().SerializeToString(), loss="cross_entropy", **options)
    a, b = ot.to_torch(model), ot.to_torch(model)
    x, y = (torch.from_numpy(batch()[k]) for k in ("x", "label"))
    for _ in range(4):
        torch_step(a, [x], y)
    f = io.BytesIO()
    torch.save([a.module.state_dict(), a.optimizer.state_dict(), a.scheduler.state_dict()], f)
    f.seek(0)
    weights, optimizer, scheduler = torch.load(f, weights_only=True)
    b.module.load_state_dict(weights)
    b.optimizer.load_state_dict(optimizer)
    b.scheduler.load_state_dict(scheduler)
    assert [torch_step(a, [x], y) for _ in range(4)] == [torch_step(b, [x], y) for _ in range(4)]
    assert b.scheduler.last_epoch == 8


def test_lr_is_live():
    """A user who sets the rate by hand gets it, in every kind of optimizer."""
    for name in ("adamw", "lion"):
        made = ot.to_torch(ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=OPTIMIZERS[name][0]))
        before = {k: v.clone() for k, v in made.module.state_dict().items()}
        made.optimizer.param_groups[0]["lr"] = 0.0
        torch_step(made, [torch.from_numpy(batch()["x"])], torch.from_numpy(batch()["label"]))
        assert all(torch.equal(v, made.module.state_dict()[k]) for k, v in before.items()), name
        assert made.model().parameters["fc1.weight"].tobytes() == before["fc1.weight"].numpy().tobytes()
        assert ot.Trainer(made.model()).lr == 0.0


def test_user_optimizer_from_a_file(tmp_path):
    from onnx import TensorProto, helper, numpy_helper, save

    f = TensorProto.FLOAT
    infos = [helper.make_tensor_value_info(n, f, [] if n == "R" else None) for n in ("R", "X", "G", "m")]
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["m", "half"], ["mh"]),
            helper.make_node("Add", ["mh", "G"], ["m1"]),
            helper.make_node("Sign", ["m1"], ["s"]),
            helper.make_node("Mul", ["R", "s"], ["d"]),
            helper.make_node("Sub", ["X", "d"], ["X1"]),
        ],
        "rule",
        infos,
        [helper.make_tensor_value_info(n, f, None) for n in ("X1", "m1")],
        [numpy_helper.from_array(np.array(0.5, np.float32), "half")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "rule.onnx")

    class FromFile:
        def spec(self):
            return {"kind": str(tmp_path / "rule.onnx"), "lr": 0.01}

    assert type(both(FromFile()).optimizer).__name__ == "GraphOptimizer"
