"""`onnxtrain bench` and `train --profile`: where the time goes, for people and machines."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import onnx

from test_slice import mlp

CLI = os.path.join(os.path.dirname(sys.executable), "onnxtrain")


def run(*args):
    return subprocess.run([CLI, *args], capture_output=True, text=True, check=True)


def test_bench_gives_both_forms_and_every_phase(tmp_path):
    model = mlp()
    model.graph.node[0].name = "fc1"
    onnx.save(model, tmp_path / "m.onnx")
    out = run("bench", str(tmp_path / "m.onnx"), "--batch", "8", "--seconds", "0.02", "--json", "--trace",
              str(tmp_path / "t"))
    result = json.loads(out.stdout)
    assert result["batch"] == 8
    for part in ("inference", "training"):
        r = result[part]
        assert r["ms_per_step"] > 0 and r["samples_per_second"] > 0 and r["peak_rss_bytes"] > 1e6
        assert r["operators"] and r["roof"]["gflops"] > 0
        first = next(n for n in r["nodes"] if n["name"] == "fc1" and n["phase"] == "forward")
        assert first["flops"] == 2 * 8 * 4 * 16
        events = json.load(open(tmp_path / f"t.{part}.json"))["traceEvents"]
        assert events and all(e["dur"] >= 0 and e["ph"] == "X" for e in events)
    assert {n["phase"] for n in result["inference"]["nodes"]} == {"forward"}
    assert {n["phase"] for n in result["training"]["nodes"]} == {"forward", "backward", "update"}


def test_against_measures_the_same_model_elsewhere_or_says_why_not(tmp_path):
    onnx.save(mlp(), tmp_path / "m.onnx")
    out = run("bench", str(tmp_path / "m.onnx"), "--batch", "8", "--seconds", "0.02", "--json", "--against",
              "torch,ort")
    found = json.loads(out.stdout)["against"]
    for part in ("inference", "training"):
        assert found[part]["onnxtrain"]["ms"] > 0
        for peer, package in (("torch", "torch"), ("ort", "onnxruntime")):
            if importlib.util.find_spec(package):
                assert found[part][peer]["ms"] > 0 and found[part][peer]["ratio"] > 0
            else:
                assert "not installed" in found[part][peer]["left_out"]
    wrong = subprocess.run([CLI, "bench", str(tmp_path / "m.onnx"), "--against", "tvm"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "OT0010" in wrong.stderr


def test_every_product_of_a_convolutional_step_is_counted(tmp_path):
    """Forward, gradient of the input and of the weights do the same products; 3x3 of stride 1 by Winograd too."""
    shapes = {"w1": (16, 3, 3, 3), "w2": (16, 16, 3, 3), "w3": (16, 1, 3, 3), "w4": (32, 16, 1, 1)}
    rng = np.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in shapes.items()]
    nodes, x = [], "x"
    for k, (group, stride, pad) in enumerate([(1, 1, 1), (1, 1, 1), (16, 1, 1), (1, 2, 0)], 1):
        nodes.append(onnx.helper.make_node("Conv", [x, f"w{k}"], [f"c{k}"], name=f"conv{k}", group=group,
                                           strides=[stride] * 2, pads=[pad] * 4))
        x = f"c{k}"
    nodes.append(onnx.helper.make_node("GlobalAveragePool", [x], ["p"]))
    nodes.append(onnx.helper.make_node("Flatten", ["p"], ["y"]))
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "g", [info("x", 1, ["N", 3, 16, 16])], [info("y", 1, ["N", 32])], weights)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8),
              tmp_path / "m.onnx")
    out = run("bench", str(tmp_path / "m.onnx"), "--batch", "4", "--mode", "train", "--loss", "cross_entropy",
              "--seconds", "0.02", "--json")
    of = {op: sorted(n["flops"] for n in json.loads(out.stdout)["training"]["nodes"] if n["op"] == op)
          for op in ("Conv", "ConvGradX", "ConvGradW")}
    each = sorted(2 * 4 * pixels * m * c * k * k for pixels, (m, c, k, _) in zip((256, 256, 256, 64), shapes.values()))
    first = 2 * 4 * 256 * 16 * 3 * 9  # nobody wants the gradient of the images
    assert of["Conv"] == each and of["ConvGradW"] == each and of["ConvGradX"] == sorted(set(each) - {first})


def test_train_profile_writes_a_trace(tmp_path):
    onnx.save(mlp(), tmp_path / "m.onnx")
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=rng.standard_normal((64, 4)).astype(np.float32), y=rng.integers(0, 3, 64))
    out = run("train", str(tmp_path / "m.onnx"), "--data", str(tmp_path / "d.npz"), "--epochs", "1", "--batch", "16",
              "--valid", "0", "--out", str(tmp_path / "run"), "--profile", str(tmp_path / "p.json"))
    assert "backward" in out.stdout
    trace = json.load(open(tmp_path / "p.json"))["traceEvents"]
    assert {"specialise", "gradients", "cse", "plan"} <= {e["name"] for e in trace if e["cat"] == "prepare"}
    events = [e for e in trace if e["cat"] != "prepare"]
    assert len(events) % 4 == 0 and {e["cat"] for e in events} == {"forward", "backward", "update"}
