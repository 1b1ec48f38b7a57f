"""`onnxtrain convert` through its Python side: files there and back, the check, and what is refused."""

import pytest
import torch

import onnxtrain as ot
from graphs import batch, mlp, torch_step
from onnxtrain.convert import main


@pytest.fixture
def trained(tmp_path):
    t = ot.Trainer(ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.AdamW(lr=1e-2),
                              schedule={"kind": "cosine", "total_steps": 50}))
    for s in range(3):
        t.step(batch(seed=s))
    t.model().save(tmp_path / "m.train.onnx")
    return t, tmp_path


def test_there_and_back(trained, capsys):
    t, d = trained
    assert main([str(d / "m.train.onnx"), str(d / "m.pt"), "--verify"]) == 0
    text = capsys.readouterr().out
    assert (
        "tensors agree" in text
        and "largest difference" in text
        and float(text.split("difference ")[1].split()[0]) < 1e-5
    )
    assert main([str(d / "m.pt"), str(d / "back.train.onnx")]) == 0
    again = ot.Trainer(ot.load(d / "back.train.onnx"))
    assert {k: v.tobytes() for k, v in t.state.items()} == {k: v.tobytes() for k, v in again.state.items()}


def test_training_in_between(trained):
    """A .pt that a PyTorch loop has trained on comes back with its state."""
    t, d = trained
    assert main([str(d / "m.train.onnx"), str(d / "m.pt")]) == 0
    saved = torch.load(d / "m.pt", weights_only=True)
    made = ot.to_torch(saved["onnx"].numpy().tobytes())
    b = batch(seed=9)
    torch_step(made, [torch.from_numpy(b["x"])], torch.from_numpy(b["label"]))
    saved.update(state_dict=made.module.state_dict(), optimizer=[made.optimizer.state_dict()],
                 scheduler=[made.scheduler.state_dict()])
    torch.save(saved, d / "m.pt")
    assert main([str(d / "m.pt"), str(d / "back.train.onnx")]) == 0
    t.step(b)
    again = ot.Trainer(ot.load(d / "back.train.onnx"))
    assert again.state["T"] == 4 and again.lr == pytest.approx(t.lr, rel=1e-6)
    b = batch(seed=10)
    assert again.step(b).loss == pytest.approx(t.step(b).loss, rel=1e-5)


def test_state_dict(trained):
    t, d = trained
    assert main([str(d / "m.train.onnx"), str(d / "w.pt"), "--to", "state_dict"]) == 0
    weights = torch.load(d / "w.pt", weights_only=True)
    original = torch.nn.ModuleDict({"fc1": torch.nn.Linear(4, 16), "fc2": torch.nn.Linear(16, 3)})
    original.load_state_dict(weights, strict=True)
    assert weights["fc1.weight"].numpy().tobytes() == t.state["fc1.weight"].tobytes()


def test_inference_model(tmp_path, capsys):
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    assert main([str(tmp_path / "m.onnx"), str(tmp_path / "m.pt"), "--verify"]) == 0
    assert "largest difference" in capsys.readouterr().out


def test_refusals(trained, capsys):
    _, d = trained
    (d / "bad.pt").write_bytes(b"not a file of torch")
    (d / "bad.pt2").write_bytes(b"not a file of torch")
    torch.save({"fc1.weight": torch.zeros(2)}, d / "weights.pt")
    for args, status, words in (
            (["nothing.onnx", "m.pt"], 3, "there is no file"), ([d / "m.train.onnx", "m.bin"], 2, "suffix"),
            ([d / "m.train.onnx", "n.onnx"], 2, "already onnx"),
            ([d / "m.train.onnx", d / "no" / "m.pt"], 2, "there is no folder"),
            ([d / "m.train.onnx", d], 2, "is a folder"), ([d / "bad.pt2", "n.onnx"], 3, "torch.export.load"),
            ([d / "bad.pt", "n.onnx"], 3, "torch.load"),
            ([d / "weights.pt", "n.onnx"], 3, "does not say what to compute")):
        assert main([str(a) for a in args]) == status
        assert words in capsys.readouterr().err
    assert not list(d.glob("*.part"))


def test_exported_program(tmp_path, capsys):
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
    ).eval()
    x = torch.randn(4, 4)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "p.pt2")
    assert main([str(tmp_path / "p.pt2"), str(tmp_path / "p.onnx"), "--verify"]) == 0
    got = ot.Session(tmp_path / "p.onnx")
    assert {"0.weight", "1.running_mean", "3.bias"} <= set(got.model.parameters)
    want = module(x).detach().numpy()
    assert abs(got.run({got.model.inputs[0]: x.numpy()})[got.model.outputs[0]] - want).max() < 1e-5


def test_to_an_exported_program(trained, capsys):
    t, d = trained
    assert main([str(d / "m.train.onnx"), str(d / "m.pt2")]) == 0
    program = torch.export.load(d / "m.pt2")
    x = batch(seed=4)["x"]
    rows = torch.from_numpy(x).repeat(3, 1)  # the batch is open
    got = program.module()(rows).detach().numpy()
    session = ot.Session(d / "m.train.onnx")
    want = session.run({"x": rows.numpy()})[session.model.outputs[0]]
    assert abs(got - want).max() < 1e-5 and "fc1.weight" in program.state_dict
    assert main([str(d / "m.pt2"), str(d / "again.onnx"), "--verify"]) == 0
    assert ot.load(d / "again.onnx").inputs == ["x"]
