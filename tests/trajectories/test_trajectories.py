"""Training exported files gives torch's numbers: losses of ten steps, gradients of the first, all
parameters after the last, within torch's own float32 noise (the rule is in compare.py)."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import compare  # noqa: E402
from trajectory_cases import CASES  # noqa: E402

EXPORTS = compare.exports()
# Lowered and run by ONNX Runtime in every test run; `lowered.py` does it for all of them.
LOWERED = ["mlp", "resnet", "unet", "vit", "gpt", "translator", "lstm", "gru", "birnn", "gan", "wavenet", "dlrm", "moe"]


@pytest.mark.parametrize(("name", "how"), EXPORTS, ids=[f"{n}-{h}" for n, h in EXPORTS])
def test_trajectory(name, how):
    worst = {what: f"{r:.2f} at {where}" for what, (r, where) in compare.run(name, how).items()
             if not r <= compare.LIMIT}
    assert not worst, f"farther from torch in float64 than {compare.LIMIT} times torch's float32: {worst}"


def test_what_is_covered():
    by = Counter(how for _, how in EXPORTS)
    assert len(CASES) >= 30 and by["legacy"] >= len(CASES) - 1 and by["dynamo"] == len(CASES)
    assert by["dynamo_opt"] >= 25 and by["legacy_train"] >= 5
    used = Counter()
    for case in CASES.values():
        for section in case.sections:
            name, args = section.optimizer
            if name == "SGD" and args.get("momentum"):
                name = "Nesterov" if args.get("nesterov") else "Momentum"
            used[name] += 1
    assert all(used[n] >= 2 for n in ("SGD", "Momentum", "Nesterov", "Adam", "AdamW", "Adagrad", "RMSprop", "Lion",
                                      "Lamb")), used


def test_the_rule_can_fail():
    """One part in a million of one tensor is noticed."""
    ref = compare.Reference("mlp")
    bad = ref.state.copy()
    bad[ref.slices["fc2.bias"]] *= 1 + 3e-6
    assert compare.tensor_ratios(ref.state, ref.state, ref.slices, ref.names, ref.state_noise)[0] == 0
    assert compare.tensor_ratios(bad, ref.state, ref.slices, ref.names, ref.state_noise)[0] > compare.LIMIT


@pytest.mark.parametrize("how", ["legacy", "dynamo"])
@pytest.mark.parametrize("name", LOWERED)
def test_lowered_in_onnxruntime(name, how):
    pytest.importorskip("onnxruntime")
    import lowered

    worst = {what: r for what, (r, _) in lowered.run(name, how).items() if not r <= compare.LIMIT}
    assert not worst, worst


@pytest.mark.parametrize("name", CASES)
def test_prepared_files_are_valid_and_infer_elsewhere(name):
    pytest.importorskip("onnxruntime")
    import lowered

    assert lowered.infer(name, "dynamo") < 1e-5
