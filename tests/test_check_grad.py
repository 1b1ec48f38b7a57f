"""`check --grad` on models with kinks and in half precision."""

import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import ROOT, cli, mlp, save  # noqa: E402


@pytest.mark.parametrize("seed", range(3))
def test_check_grad_is_not_misled_by_kinks(seed):
    r = cli("check", ROOT / "examples/mnist/cnn.train.onnx", "--grad", "--seed", seed)  # ReLU and MaxPool
    assert r.returncode == 0, r.stdout + r.stderr


def test_check_grad_of_values_on_a_kink_and_of_half_precision(tmp_path):
    m = mlp()
    for t in m.graph.initializer:  # every unit sits at 0 exactly
        if t.name == "fc1.weight":
            t.CopyFrom(numpy_helper.from_array(np.zeros_like(numpy_helper.to_array(t)), t.name))
    assert cli("check", save(m, tmp_path / "kink.onnx"), "--grad").returncode == 0
    m = mlp()
    for t in list(m.graph.initializer):
        t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float16), t.name))
    for v in [*m.graph.input, *m.graph.output]:
        v.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    r = cli("check", save(m, tmp_path / "half.onnx"), "--grad")
    assert r.returncode == 0 and "4 of 4" in r.stdout, r.stdout + r.stderr
