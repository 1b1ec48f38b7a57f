"""The workloads behind the speed table and their runner (bench/run.py): definitions, losses, output. No test depends on
how long anything takes."""

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))
from harness import contest, pairs, report  # noqa: E402
from peers import PEERS  # noqa: E402
from workloads import WORKLOADS  # noqa: E402
from workloads.onnx_layers import onnx_model  # noqa: E402

# Parameters and floating point operations of a step. Tables of different commits are comparable while these stay.
SIZES = {"W1": (535818, 154075136), "W2": (131, 8704), "W3": (1663370, 4632608768), "W4": (11173962, 106527916032),
         "W5": (3504872, 5340057600), "W6": (11072258, 20941135872), "W7": (2792448, 18421383168),
         "W8": (332298, 3758587904), "W9": (25557032, 97196310528)}
UNTIMED = ["--rounds", "1", "--seconds", "0.001", "--warm", "0", "--quiet", "99"]


def run(folder, *arguments, **env):
    """-> what bench/run.py wrote"""
    out = folder / "speed"
    done = subprocess.run([sys.executable, ROOT / "bench/run.py", "--out", out, *arguments], capture_output=True,
                          text=True, env=dict(os.environ, ONNXTRAIN_BENCH_MODELS=str(folder / "models"), **env))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.with_suffix(".json").read_text()), out.with_suffix(".md").read_text(), done.stdout


@pytest.mark.parametrize("wid", WORKLOADS)
def test_every_workload_is_what_it_was_and_has_an_onnx_file(wid):
    w = WORKLOADS[wid]
    cost = w.cost()
    assert (cost["parameters"], cost["step_flops"]) == SIZES[wid]
    model = onnx_model(w.for_check())
    onnx.checker.check_model(model)
    shapes = {i.name: math.prod(i.dims) for i in model.graph.initializer}
    running = sum(math.prod(p.shape) for p in w.shapes.running)
    assert sum(shapes.values()) == cost["parameters"] + running
    assert not any(n.op_type == "Dropout" for n in model.graph.node)
    if w.dropout:
        assert any(n.op_type == "Dropout" for n in onnx_model(w).graph.node)


def test_two_steps_through_the_runner(tmp_path):
    found, _, _ = run(tmp_path, "--check", "--steps", "2", "--peers", "onnxtrain,onnxtrain_cli", "--workloads", "W2")
    python, cli = (found["workloads"]["W2"][name] for name in ("onnxtrain", "onnxtrain_cli"))
    assert len(python["losses"]) == 2 and python["losses"][1] < python["losses"][0]
    assert cli["losses"] == pytest.approx(python["losses"], rel=1e-6)


@pytest.mark.skipif(not (importlib.util.find_spec("torch") or Path(contest.interpreter_for(PEERS["torch"])) !=
                         Path(sys.executable)), reason="needs PyTorch (bench/setup.sh torch)")
def test_pytorch_has_the_same_losses(tmp_path):
    found, text, _ = run(tmp_path, "--check", "--steps", "3", "--threads", "1", "--peers", "onnxtrain,torch",
                         "--workloads", "W8")
    for results in found["workloads"].values():
        assert len(results["torch"]["losses"]) == 3 and "failed" not in results["onnxtrain"]
        assert results["onnxtrain"]["loss_difference"] < 1e-6
    assert "beside torch" in text


def test_a_timed_run_says_where_it_comes_from(tmp_path):
    found, text, _ = run(tmp_path, "--no-check", "--peers", "onnxtrain", "--workloads", "W2", *UNTIMED)
    r = found["workloads"]["W2"]["onnxtrain"]
    assert r["ms"] > 0 and r["peak_bytes"] > 1e6 and math.isfinite(r["loss"]) and r["version"]
    commit = found["machine"]["commit"]
    assert f"Commit {commit}" in text and found["machine"]["cpu"] in text and "| W2 tiny" in text


def test_two_builds_in_one_run(tmp_path):
    found, text, _ = run(tmp_path, "--before", str(ROOT), "--workloads", "W2", "--launches", "1", *UNTIMED)
    r = found["workloads"]["W2"]
    assert r["same_losses"] and r["pairs"] == 1 and r["ratio"] > 0
    assert "time after / before" in text and "same bits" in text


@pytest.mark.skipif(importlib.util.find_spec("jax") is not None, reason="JAX is in this interpreter")
def test_a_peer_that_is_not_installed_is_left_out_with_a_line(tmp_path):
    _, text, printed = run(tmp_path, "--check", "--steps", "1", "--peers", "jax,onnxtrain", "--workloads", "W2",
                           ONNXTRAIN_BENCH_VENV=str(tmp_path))
    assert "peer jax: left out, jax is not installed (bench/setup.sh jax)" in printed
    assert "jax: left out" in text


def test_a_change_above_three_percent_is_named():
    rows = {"W1": {"ratio": 1.02, "low": 1.01, "high": 1.03}, "W2": {"ratio": 1.05, "low": 0.99, "high": 1.1},
            "W3": {"ratio": 0.9, "low": 0.88, "high": 0.95}}
    assert report.verdict({"W1": rows["W1"]}) == "All within 3 %.\n"
    assert report.verdict(rows) == "Not within 3 %:\n- W2: +5.0 %, but 1 is in its interval\n- W3: -10.0 %\n"


def test_differences_of_losses_and_intervals_of_ratios():
    assert contest.difference([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)
    assert contest.difference([1.0, math.nan], [1.0, 2.0]) == math.inf
    values = [1 + k / 100 for k in range(20)]
    low, high = pairs.median_interval(values)
    assert (low, high) == (values[5], values[14])  # ranks 6 and 15 of 20 at 95 %
    assert pairs.median_interval([1.0]) == (1.0, 1.0)
