"""What is a weight and what a constant: the rule of docs/recipe.md on files of exporters, and what is said about
weights that do not train."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import onnxtrain as ot

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'


def roles(model, **options):
    model = ot.load(model) if isinstance(model, (str, bytes)) else model
    return {w["name"]: w["role"] for w in model.weights(**options)}


def trained(model, **options):
    return sorted(n for n, role in roles(model, **options).items() if role == "trained")


ROUNDED = HEAD + """g (float[N,4] x) => (float[N,3] y) <float[4,4] w1 = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7},
float[4,3] w2 = {1,2,3,4,5,6,7,8,9,1,2,3}> { h = MatMul(x, w1)  r = Round(h)  y = MatMul(r, w2) }"""


def test_what_stops_is_said_and_strict_refuses():
    model = ot.parse(ROUNDED)
    assert roles(model) == {"w1": "no gradient", "w2": "trained"}
    entry = next(w for w in model.info["weights"] if w["name"] == "w1")
    assert "Round" in entry["node"]
    with pytest.warns(UserWarning, match="'w1' does not train.*Round"):
        ot.prepare(model, loss="mse")
    with pytest.raises(ot.ModelError, match="'w1'") as e:
        ot.prepare(model, loss="mse", strict=True)
    assert e.value.code == "OT1285"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ot.prepare(model, loss="mse", freeze="w1")
        ot.prepare(model, loss="mse", only="w2", strict=True)


def test_a_weight_without_gradient_does_not_decay():
    with pytest.warns(UserWarning):
        t = ot.Trainer(ot.prepare(ot.parse(ROUNDED), loss="mse", optimizer=ot.SGD(lr=0.1, weight_decay=0.5)))
    before = ot.parse(ROUNDED).parameters["w1"]
    t.step({"x": np.ones((2, 4), np.float32), "label": np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(t.model().parameters["w1"], before)


def test_the_command_line_says_the_same(tmp_path):
    path = tmp_path / "rounded.onnx"
    ot.parse(ROUNDED).save(str(path))
    command = str(Path(sys.executable).parent / "onnxtrain")

    def run(*words):
        return subprocess.run([command, *words], capture_output=True, text=True)

    info = run("info", str(path)).stdout
    assert "no gradient" in info and "Round" in info and "trained" in info
    made = run("prepare", str(path), "-o", str(tmp_path / "t.onnx"), "--loss", "mse")
    assert made.returncode == 0 and "warning[OT1285]" in made.stderr and "'w1'" in made.stderr
    hint = made.stderr.split("to leave them as they are:")[1].split("\n")[0].split()
    quiet = run("prepare", str(path), "-o", str(tmp_path / "t.onnx"), "--loss", "mse", *hint)
    assert quiet.returncode == 0 and "OT1285" not in quiet.stderr
    strict = run("prepare", str(path), "-o", str(tmp_path / "s.onnx"), "--loss", "mse", "--strict")
    assert strict.returncode != 0 and "error[OT1285]" in strict.stderr and not (tmp_path / "s.onnx").exists()


# ---- scikit-learn's exporter
def estimators():
    from sklearn import decomposition, linear_model, neural_network, pipeline, preprocessing

    def mlp():
        return neural_network.MLPClassifier((8,), max_iter=5)

    pipe = pipeline.make_pipeline
    layers = ["coefficient", "coefficient1", "intercepts", "intercepts1"]
    return {
        "binary": (mlp(), 2, layers), "classes": (mlp(), 3, layers),
        "minmax": (pipe(preprocessing.MinMaxScaler(), mlp()), 3, layers),
        "maxabs": (pipe(preprocessing.MaxAbsScaler(), mlp()), 3, layers),
        "standard": (pipe(preprocessing.StandardScaler(), mlp()), 3, layers),
        "pca": (pipe(decomposition.PCA(3), mlp()), 3, layers),
        "whitened": (pipe(decomposition.PCA(3, whiten=True), mlp()), 3, layers),
        "svd": (pipe(decomposition.TruncatedSVD(3), mlp()), 3, layers),
        "quantiles": (pipe(preprocessing.QuantileTransformer(n_quantiles=10), mlp()), 3, layers),
        "power": (pipe(preprocessing.PowerTransformer(), mlp()), 3, layers),
        "sgd": (linear_model.SGDClassifier(loss="log_loss"), 3, ["coef", "intercept"]),
        "hinge": (linear_model.SGDClassifier(), 2, ["coef", "intercept"]),
        "perceptron": (linear_model.Perceptron(), 3, ["coef", "intercept"]),
        "poisson": (linear_model.PoissonRegressor(), 0, ["Ad_Addcst", "Ma_MatMulcst"]),
    }


@pytest.mark.parametrize("name", ["binary", "classes", "minmax", "maxabs", "standard", "pca", "whitened", "svd",
                                  "quantiles", "power", "sgd", "hinge", "perceptron", "poisson"])
@pytest.mark.filterwarnings("ignore")
def test_files_of_scikit_learns_exporter(name):
    skl2onnx = pytest.importorskip("skl2onnx")
    estimator, classes, want = estimators()[name]
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 5)).astype(np.float32)
    y = random.integers(0, classes, 80) if classes else np.abs(x[:, 0])
    estimator.fit(x, y)
    options = {"zipmap": False} if classes and hasattr(estimator, "predict_proba") else None
    proto = skl2onnx.to_onnx(estimator, x[:1], options=options)
    found = trained(proto.SerializeToString(), loss="mse" if classes == 0 else "cross_entropy")
    assert [n for n in found if "cst" not in n or name == "poisson"] == want and len(found) == len(want), found


@pytest.mark.filterwarnings("ignore")
def test_probabilities_of_a_trained_binary_classifier_add_up():
    skl2onnx = pytest.importorskip("skl2onnx")
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 5)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    from sklearn.neural_network import MLPClassifier

    proto = skl2onnx.to_onnx(MLPClassifier((8,), max_iter=5).fit(x, y), x[:1], options={"zipmap": False})
    model = ot.load(proto.SerializeToString())
    t = ot.Trainer(ot.prepare(model, loss=ot.losses.MSE(output="probabilities"), optimizer=ot.Adam(lr=0.01)))
    (target,) = [v["name"] for v in t.model().info["training"][0]["inputs"]]
    for _ in range(50):
        t.step({"X": x, target: np.eye(2, dtype=np.float32)[y]})
    p = ot.Session(t.model()).run({"X": x})["probabilities"]
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-5)


# ---- PyTorch's exporters
def torch_module():
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.tensor([0.5, 0.4, 0.3]).view(1, 3, 1, 1))
            self.register_buffer("std", torch.tensor([0.2, 0.3, 0.4]).view(1, 3, 1, 1))
            self.conv = nn.Conv2d(3, 4, 3)
            self.norm = nn.LayerNorm(4)
            self.act = nn.PReLU()
            self.layer_scale = nn.Parameter(torch.full((4,), 1e-2))
            self.position = nn.Parameter(torch.zeros(1, 36, 4))
            self.temperature = nn.Parameter(torch.tensor(2.0))
            self.gate = nn.Parameter(torch.tensor([0.0]))
            self.head = nn.Linear(4, 3)

        def forward(self, x):
            h = self.act(self.conv((x - self.mean) / self.std)).flatten(2).transpose(1, 2)
            h = h + self.position
            h = h + self.layer_scale * nn.functional.gelu(self.norm(h))
            h = h + self.gate * h
            return self.head(h.mean(1)) / self.temperature

    return Net().eval(), torch.randn(2, 3, 8, 8)


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_files_of_torch_keep_every_parameter(dynamo, tmp_path):
    torch = pytest.importorskip("torch")
    module, x = torch_module()
    path = str(tmp_path / "net.onnx")
    torch.onnx.export(module, (x,), path, dynamo=dynamo, input_names=["x"], external_data=False, verbose=False)
    found = roles(path)
    sizes = sorted(w["elements"] for w in ot.load(path).weights() if w["role"] == "trained")
    want = sorted(p.numel() for p in module.parameters())
    assert sizes == want, found
    assert {found.get("mean"), found.get("std")} <= {"constant", None}
