"""ot.to_torch on many architectures: the same numbers in PyTorch as here, and weights that the original class takes."""

import copy
import io

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

import onnxtrain as ot
from architectures import ZOO
from graphs import batch, exported, largest_difference, mlp, prepared, torch_step

# files in which an exporter has folded weights together: the original's are not in them
FOLDED = {"resnet", "mobilenet", "efficientnet", "unet", "volume", "group_norm", "bert", "gpt"}
# Adam would enlarge the noise of gradients that are zero: SGD shows the agreement
OPTIMIZER = ot.SGD(lr=0.05, momentum=0.9)


@pytest.mark.parametrize("name", ZOO)
def test_architecture(name):
    original, args, target, feeds, model = prepared(name, OPTIMIZER)
    trainer = ot.Trainer(model)
    for _ in range(5):
        trainer.step(feeds)
    made = ot.to_torch(trainer)
    made.module.train()
    there = [torch_step(made, args, target) for _ in range(5)]
    here = [trainer.step(feeds).loss for _ in range(5)]
    assert here == pytest.approx(there, rel=2e-5, abs=1e-6)
    back = made.model()
    # a bias before a normalisation has no gradient but noise: tiny tensors are compared by a size of 1e-3
    assert largest_difference(trainer, ot.Trainer(back), 1e-3)[0] < 1e-4
    # inference: the same file, the same numbers
    made.module.eval()
    inputs = {k: v for k, v in feeds.items() if k != "label"}
    want = ot.Session(back).run(inputs)["out"]
    with torch.no_grad():
        np.testing.assert_allclose(made.module(*args).numpy(), want, rtol=1e-4, atol=1e-5)
    if name not in FOLDED:
        original.load_state_dict(ot.torch_state_dict(back), strict=True)
        with torch.no_grad():
            np.testing.assert_allclose(original.eval()(*args).numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["resnet", "gpt", "bert", "bilstm"])
def test_other_exporter(name):
    original, args, target, feeds, model = prepared(name, OPTIMIZER, dynamo=True)
    trainer = ot.Trainer(model)
    made = ot.to_torch(trainer)
    made.module.train()
    there = [torch_step(made, args, target) for _ in range(4)]
    assert [trainer.step(feeds).loss for _ in range(4)] == pytest.approx(there, rel=2e-5)
    state = ot.torch_state_dict(trainer)
    original.load_state_dict(state, strict=True)
    if name == "resnet":  # counted by the file's steps
        assert int(state["bn1.num_batches_tracked"]) == 4
    if name == "gpt":  # tied: one tensor under both names
        assert made.module.wte.weight is made.module.lm_head.weight


def test_names_and_modes():
    _, args, _, _, model = prepared("resnet", OPTIMIZER, dynamo=True)
    module = ot.to_torch(model).module
    names = dict(module.named_parameters())
    assert (
        "layer1.0.conv1.weight" in names and module.layer1._modules["0"].conv1.weight is names["layer1.0.conv1.weight"]
    )
    assert all(p.requires_grad for p in names.values())
    assert "bn1.running_mean" in dict(module.named_buffers()) and "bn1.running_mean" in module.state_dict()
    assert not [k for k in module.state_dict() if "constant" in k]
    before = module.bn1.running_mean.clone()
    module.eval()(*args)
    assert torch.equal(module.bn1.running_mean, before)
    module.train()(*args)
    assert not torch.equal(module.bn1.running_mean, before)


def test_frozen_parameters_stay():
    model = ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.Adam(), freeze=["fc1.*"])
    made = ot.to_torch(model)
    assert {n: p.requires_grad for n, p in made.module.named_parameters()} == {
        "fc1.weight": False, "fc1.bias": False, "fc2.weight": True, "fc2.bias": True}
    assert len(made.optimizer.param_groups[0]["params"]) == 2


def dropout(ratio):
    value = helper.make_tensor("ratio", TensorProto.FLOAT, [], [ratio])
    return [
        helper.make_node("Constant", [], ["ratio"], value=value),
        helper.make_node("Dropout", ["a", "ratio"], ["b"], "drop"),
    ]


def test_dropout_is_live_and_torchs():
    model = ot.prepare(mlp(middle=dropout(0.5)).SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=0.1))
    made, x = ot.to_torch(model), torch.from_numpy(batch()["x"])
    made.module.train()
    torch.manual_seed(3)
    a, b = made.module(x), made.module(x)
    assert not torch.equal(a, b)
    torch.manual_seed(3)
    assert torch.equal(a, made.module(x))
    made.module.eval()
    assert torch.equal(made.module(x), made.module(x))


def test_dropout_has_the_same_distribution():
    """Mean and spread of the loss over many masks agree with onnxtrain's."""
    data = batch(64)
    model = ot.prepare(mlp(middle=dropout(0.4)).SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=0.0))
    here = [ot.Trainer(model, seed=s).step(data).loss for s in range(200)]
    made = ot.to_torch(model)
    made.module.train()
    there = []
    for s in range(200):
        torch.manual_seed(s)
        there.append(
            float(made.loss(made.module(torch.from_numpy(data["x"])), torch.from_numpy(data["label"])).detach())
        )
    error = np.std(here) / np.sqrt(200)
    assert abs(np.mean(here) - np.mean(there)) < 5 * error
    assert 0.7 < np.std(here) / np.std(there) < 1.4


def test_plain_inference_model():
    """A file without training: a module to fine-tune, nothing else; BatchNormalization and Dropout follow train()."""
    original = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.5)
    )
    x = torch.randn(16, 4)
    original.train()(x)
    made = ot.to_torch(exported(original, (x,), dynamo=True))
    assert (made.loss, made.optimizer, made.scheduler) == (None, None, None)
    assert all(p.requires_grad for p in made.module.parameters())
    with torch.no_grad():
        np.testing.assert_allclose(made.module.eval()(x), original.eval()(x), rtol=1e-5, atol=1e-6)
    if any(n.endswith("running_mean") for n in dict(made.module.named_buffers())):
        before = made.module.state_dict()["1.running_mean"].clone()
        made.module.train()(x)
        assert not torch.equal(before, made.module.state_dict()["1.running_mean"])
    with pytest.raises(ot.UsageError, match="no training"):
        made.step({})


def test_loss_reads_inside_the_model():
    """Scores before a final Softmax: the loss gets them with the outputs, in training and in inference form."""
    original, args, target, feeds, model = prepared("softmax_head", OPTIMIZER)
    made = ot.to_torch(model)
    scores = torch.nn.Sequential(*list(original)[:-1])
    made.module.eval()
    want = torch.nn.functional.cross_entropy(scores.eval()(*args), target)
    assert float(made.loss(made.module(*args), target).detach()) == pytest.approx(float(want.detach()), rel=1e-5)
    made.module.train()
    out = made.module(*args)
    want = torch.nn.functional.cross_entropy(scores.train()(*args), target)
    assert float(made.loss(out, target).detach()) == pytest.approx(float(want.detach()), rel=1e-5)
    assert made.loss({"out": out}, {"label": target}).item() == made.loss((out,), [target]).item()
    with pytest.raises(ot.DataError, match="inside the model"):
        made.loss(out.clone(), target)
    with pytest.raises(ot.DataError, match="'label' is missing"):
        made.loss(out)


def test_every_value_of_a_step_is_on_the_modules_device():
    """The meta device refuses to mix: shapes stay on the CPU, everything else moves with the module."""
    for name in ("resnet", "vit", "gpt", "llama", "unet", "lstm", "dlrm"):
        _, args, target, _, model = prepared(name, OPTIMIZER)
        made = ot.to_torch(model)
        made.module.to("meta").train()
        out = made.module(*(a.to("meta") for a in args))
        made.loss(out, target.to("meta")).backward()
        assert all(
            p.grad is not None and p.grad.device.type == "meta" for p in made.module.parameters() if p.requires_grad
        ), name


def test_copies_and_double_precision():
    model = ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=0.1))
    made, x = ot.to_torch(model), torch.from_numpy(batch()["x"])
    other = copy.deepcopy(made.module)
    with torch.no_grad():
        other.fc1.weight.zero_()
    assert not torch.equal(made.module(x), other(x))
    assert made.module.double()(x.double()).dtype == torch.float64
    by_call = torch.func.functional_call(other, {"fc1.weight": made.module.fc1.weight.float()}, (x,))
    np.testing.assert_allclose(by_call.detach(), made.module.float()(x).detach(), rtol=1e-5, atol=1e-6)


def test_inputs_by_name_and_wrong_ones():
    made = ot.to_torch(ot.prepare(mlp().SerializeToString(), loss="cross_entropy"))
    x = torch.from_numpy(batch()["x"])
    assert torch.equal(made.module(x), made.module(x=x))
    for call, words in ((lambda: made.module(), "'x' is missing"), (lambda: made.module(x, x), "takes 1 input"),
                        (lambda: made.module(x, y=x), "no free input 'y'")):
        with pytest.raises(ot.DataError, match=words):
            call()


def test_sources(tmp_path):
    model = ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.Adam())
    model.save(tmp_path / "m.train.onnx")
    x = torch.from_numpy(batch()["x"])
    want = ot.to_torch(model).module(x)
    for source in (tmp_path / "m.train.onnx", str(tmp_path / "m.train.onnx"), model.proto(), ot.Trainer(model)):
        assert torch.equal(ot.to_torch(source).module(x), want)


def test_refuses_everything_at_once():
    scalars = [
        helper.make_node("Constant", [], [n], n, value_int=v) for n, v in (("bins", 8), ("size", 16), ("rate", 8000))
    ]
    ends = [helper.make_node("Constant", [], [n], n, value_float=v) for n, v in (("low", 0.0), ("high", 4000.0))]
    unknown = [helper.make_node("MelWeightMatrix", ["bins", "size", "rate", "low", "high"], ["m"], "mel"),
               helper.make_node("StringNormalizer", ["t"], ["s"], "text"),
               helper.make_node("Relu", ["x"], ["y"], "fine")]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [*scalars, *ends, *unknown],
        "g",
        [info("x", 1, ["n"]), info("t", TensorProto.STRING, ["n"])],
        [info("m", 1, None), info("s", TensorProto.STRING, None), info("y", 1, ["n"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ot.ModelError) as e:
        ot.to_torch(model)
    assert "'mel'" in str(e.value) and "'text'" in str(e.value) and "fine" not in str(e.value)
    assert e.value.code == "OT1711"


def test_refuses_a_lowered_file():
    model = ot.prepare(mlp().SerializeToString(), loss="cross_entropy", lowered=True)
    with pytest.raises(ot.ModelError, match="lowered"):
        ot.to_torch(model)


def test_whole_training_travels_by_torch_save():
    """state_dicts of module, optimizer and scheduler are plain: they load with weights_only, and training goes on as if
    it had not stopped."""
    model = ot.prepare(
        mlp().SerializeToString(),
        loss="cross_entropy",
        optimizer=ot.Adam(),
        schedule=ot.Schedule("step", {"step_size": 2, "gamma": 0.5}),
    )
    feeds = {n: torch.from_numpy(v) for n, v in batch().items()}
    made, other = ot.to_torch(model), ot.to_torch(model)
    before = [made.step(feeds) for _ in range(3)]
    f = io.BytesIO()
    torch.save([made.module.state_dict(), made.optimizer.state_dict(), made.scheduler.state_dict()], f)
    f.seek(0)
    module, optimizer, scheduler = torch.load(f, weights_only=True)
    other.module.load_state_dict(module, strict=True)
    other.optimizer.load_state_dict(optimizer)
    other.scheduler.load_state_dict(scheduler)
    after = [made.step(feeds) for _ in range(3)]
    assert [other.step(feeds) for _ in range(3)] == after
    assert len(set(before + after)) == 6
    for name, tensor in made.module.state_dict().items():
        assert torch.equal(other.module.state_dict()[name], tensor), name


def test_import_does_not_pull_torch_in():
    import subprocess
    import sys

    code = "import sys, onnxtrain; assert 'torch' not in sys.modules and 'onnx' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", ["gpt", "resnet"])
def test_weights_are_read_without_the_optimizer(name):
    """The library has the file; of a graph only those tensors are copied into torch that somebody asks for."""
    from onnxtrain.graph import Constants

    model = ot.Trainer(prepared(name, ot.AdamW(lr=1e-3))[4]).model()
    asked, inner = [], Constants.__getitem__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Constants, "__getitem__", lambda self, key: asked.append(key) or inner(self, key))
        weights = ot.torch_state_dict(model)
    inside = [s["name"] for s in model.info["training"][0]["initializers"] if s["elements"] > 1]
    state = {n for n in inside if n not in model.parameters}
    assert state and not state & set(asked)
    assert {n for n in weights if n in model.parameters} <= set(asked)
    for n in set(weights) & set(model.parameters):
        assert np.array_equal(weights[n].numpy(), model.parameters[n])
