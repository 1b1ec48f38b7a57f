"""Losses, rules, schedules, clipping and accumulation of a small network: PyTorch's numbers, within its own float32
noise (the rule is in compare.py), by the file with Gradient and by the lowered one."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import compare  # noqa: E402
import onnxtrain as ot  # noqa: E402
from onnxtrain.recipe import Term  # noqa: E402
from small_cases import CASES, LOSS_FILE, RULE_FILE, STEPS, feeds, model, weights  # noqa: E402


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    for name, text in (("loss", LOSS_FILE), ("rule", RULE_FILE)):
        onnx.save(onnx.parser.parse_model(text), folder / f"{name}.onnx")
    return folder


class FromFile:
    def __init__(self, kind, **more):
        self.words = {"kind": str(kind), **more}

    def spec(self):
        return self.words


def prepared(case, files, lowered):
    terms = [Term(**dict(t, kind=str(files / "loss.onnx") if t["kind"] == "FILE" else t["kind"])) for t in case.loss]
    name, args = case.optimizer
    rule = FromFile(files / "rule.onnx", **args) if name == "FILE" else getattr(ot, name)(**args)
    return ot.prepare(model(case.tail), loss=terms, optimizer=rule, schedule=case.schedule, clip_norm=case.clip_norm,
                      clip_value=case.clip_value, accumulate=case.accumulate, only=None if case.only == ["*"]
                      else case.only, lowered=lowered)


@pytest.fixture(scope="module")
def book():
    return dict(np.load(compare.DATA / "small.npz"))


@pytest.mark.parametrize("lowered", [False, True], ids=["gradient", "lowered"])
@pytest.mark.parametrize("name", CASES)
def test_small(name, lowered, files, book):
    case, want = CASES[name], {k.rpartition("/")[2]: v for k, v in book.items() if k.rpartition("/")[0] == name}
    train = prepared(case, files, lowered)
    onnx.checker.check_model(onnx.load_from_string(train.proto()))
    t = ot.Trainer(ot.load(train.proto()), threads=1)  # as it stands in the file
    losses = []
    for step in range(STEPS):
        x, label = feeds(case, step)
        losses.append(t.step({"x": x, "label": label}).loss)
    scale = np.maximum(np.maximum.accumulate(want["loss_noise"]), compare.EPS * abs(want["losses"]))
    assert (abs(np.array(losses) - want["losses"]) <= compare.LIMIT * scale).all(), (losses, want["losses"])
    first, slices, at = weights(), {}, 0
    for n, w in first.items():
        slices[n], at = slice(at, at + w.size), at + w.size
    got = np.concatenate([np.asarray(t.state[n] if n in t.state else w, np.float64).reshape(-1)
                          for n, w in first.items()])
    worst, where = compare.tensor_ratios(got, want["state"], slices, list(first), want["state_noise"])
    assert worst <= compare.LIMIT, f"{where}: {worst:.2f} times torch's float32"
