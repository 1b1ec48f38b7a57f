"""`--target` is obeyed, whatever else the columns are called."""

import sys

import numpy as np
import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
import onnxtrain as ot  # noqa: E402
from cli_models import cli  # noqa: E402

X = np.random.default_rng(0).normal(size=(200, 3)) - [0.8, 0, 0]
A = (X[:, 0] > 0).astype(int)  # what is to be learnt
LABEL = np.arange(200) % 2


def linear(path, features):
    ot.parse(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,{features}] x) => (float[N,2] y) <float[{features},2] w = {{{", ".join(["0"] * 2 * features)}}}>
        {{ y = MatMul(x, w) }}""").save(path)


@pytest.fixture
def folder(tmp_path):
    rows = [",".join(f"{v:.4f}" for v in x) + f",{b},{a}" for x, b, a in zip(X, LABEL, A)]
    (tmp_path / "t.csv").write_text("\n".join(["p,q,r,label,a", *rows]) + "\n")
    linear(tmp_path / "four.onnx", 4)
    return tmp_path


def test_a_column_called_label_is_not_the_target(folder):
    r = cli("train", "four.onnx", "--data", "t.csv", "--target", "a", "--epochs", "60", "--lr", "0.1", "--valid", "0",
            "--out", "run", cwd=folder)
    assert r.returncode == 0, r.stderr
    small = min(A.sum(), 200 - A.sum())
    assert f"({small}..{200 - small} each)" in r.stderr, r.stderr
    x = np.column_stack([X, LABEL]).astype("f")
    assert (ot.Session(folder / "run/model.onnx").run({"x": x})["y"].argmax(1) == A).mean() > 0.9
