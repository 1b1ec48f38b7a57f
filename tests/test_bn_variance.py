"""Which variance BatchNormalization keeps: PyTorch's (unbiased) by default, ONNX's (population) when asked for; a file
that carries its training keeps what its operators say."""

import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli  # noqa: E402

MOMENTUM = 0.8
COMMON = ["--epochs", "1", "--batch", "8", "--valid", "0"]
X = np.random.default_rng(0).normal(1, 2, (8, 3)).astype(np.float32)
Y = np.arange(8) % 2
TEXT = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,2] y)
<float[3] scale = {1, 1, 1}, float[3] bias = {0, 0, 0}, float[3] mean = {0, 0, 0}, float[3] var = {1, 1, 1},
 float[2,3] w = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6}>
{ h = BatchNormalization <momentum = 0.8> (x, scale, bias, mean, var)  y = Gemm <transB = 1> (h, w) }"""
EXPECTED = {"torch": MOMENTUM + (1 - MOMENTUM) * X.var(axis=0, ddof=1),
            "onnx": MOMENTUM + (1 - MOMENTUM) * X.var(axis=0, ddof=0)}


@pytest.fixture
def folder(tmp_path):
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "net.onnx")
    np.savez(tmp_path / "d.npz", x=X, y=Y)
    return tmp_path


def variance_of(path):
    model = onnx.load(path)
    return next(numpy_helper.to_array(t) for t in model.graph.initializer if t.name == "var")


def one_step(model):
    t = ot.Trainer(model)
    t.step({"x": X, "label": Y})
    return t.state["var"]


@pytest.mark.parametrize("given, rule", [
    ({}, "torch"), ({"bn_variance": "torch"}, "torch"), ({"bn_variance": "onnx"}, "onnx")])
@pytest.mark.parametrize("lowered", [False, True])
def test_prepare_and_compile(given, rule, lowered):
    prepared = ot.prepare(ot.parse(TEXT), loss="cross_entropy", lowered=lowered, **given)
    np.testing.assert_allclose(one_step(prepared), EXPECTED[rule], rtol=1e-6)
    compiled = ot.parse(TEXT).compile(loss="cross_entropy", lowered=lowered, **given)
    compiled.fit({"x": X}, Y, epochs=1, batch_size=8)
    np.testing.assert_allclose(compiled.parameters["var"], EXPECTED[rule], rtol=1e-6)


@pytest.mark.parametrize("rule", ["torch", "onnx"])
def test_estimators(rule):
    c = ot.OnnxClassifier(ot.parse(TEXT), epochs=1, batch_size=8, bn_variance=rule).fit(X, Y)
    np.testing.assert_allclose(c.model_.parameters["var"], EXPECTED[rule], rtol=1e-6)


@pytest.mark.parametrize("flags, rule", [
    ([], "torch"), (["--bn-variance", "torch"], "torch"), (["--bn-variance", "onnx"], "onnx")])
def test_command_line(folder, flags, rule):
    r = cli("train", "net.onnx", "--data", "d.npz", "--out", "run", *COMMON, *flags, cwd=folder)
    assert r.returncode == 0, r.stderr
    np.testing.assert_allclose(variance_of(folder / "run/model.onnx"), EXPECTED[rule], rtol=1e-6)
    assert f'bn-variance = "{rule}"' in (folder / "run/config.toml").read_text()
    r = cli("prepare", "net.onnx", "-o", "net.train.onnx", *flags, cwd=folder)
    assert r.returncode == 0, r.stderr
    np.testing.assert_allclose(one_step(ot.load(folder / "net.train.onnx")), EXPECTED[rule], rtol=1e-6)


def test_a_run_keeps_its_rule(folder):
    onnx_rule = ["--bn-variance", "onnx"]
    r = cli("train", "net.onnx", "--data", "d.npz", "--out", "run", *onnx_rule, *COMMON, cwd=folder)
    assert r.returncode == 0, r.stderr
    r = cli("train", "--resume", "run", "--epochs", "2", "--bn-variance", "torch", cwd=folder)
    assert r.returncode == 2 and "OT0004" in r.stderr and "--bn-variance" in r.stderr
    r = cli("train", "--resume", "run", "--epochs", "2", "--bn-variance", "onnx", cwd=folder)
    assert r.returncode == 0, r.stderr
    expected = MOMENTUM * EXPECTED["onnx"] + (1 - MOMENTUM) * X.var(axis=0)
    np.testing.assert_allclose(variance_of(folder / "run/model.onnx"), expected, rtol=1e-6)


def test_a_file_with_training_keeps_what_its_operators_say(folder):
    ot.prepare(ot.parse(TEXT), loss="cross_entropy", bn_variance="onnx").save(folder / "net.train.onnx")
    np.testing.assert_allclose(one_step(ot.load(folder / "net.train.onnx")), EXPECTED["onnx"], rtol=1e-6)
    r = cli("train", "net.train.onnx", "--data", "d.npz", "--bn-variance", "torch", cwd=folder)
    assert r.returncode == 2 and "OT0004" in r.stderr
    with pytest.raises(ot.UsageError) as e:
        ot.load(folder / "net.train.onnx").compile(bn_variance="torch")
    assert e.value.code == "OT0004"


def test_wrong_names_are_refused(folder):
    with pytest.raises(ot.UsageError) as e:
        ot.prepare(ot.parse(TEXT), bn_variance="tensorflow")
    assert e.value.code == "OT1232" and "bn_variance" in str(e.value)
    r = cli("prepare", "net.onnx", "-o", "net.train.onnx", "--bn-variance", "keras", cwd=folder)
    assert r.returncode == 2 and "--bn-variance" in r.stderr


def recipe(text):
    return ot.Model(ot.parse(TEXT)._m.prepare(text))


@pytest.mark.parametrize("text, rule", [
    ('{"unbiased_batch_variance": true}', "torch"), ('{"unbiased_batch_variance": false}', "onnx"),
    ('{"unbiased_batch_variance": false, "bn_variance": "onnx"}', "onnx"),
    ('{"unbiased_batch_variance": false, "bn_variance": null}', "onnx")])
def test_the_older_key_is_still_read(text, rule):
    np.testing.assert_allclose(one_step(recipe(text)), EXPECTED[rule], rtol=1e-6)


def test_two_keys_that_differ_are_refused():
    with pytest.raises(ot.UsageError) as e:
        recipe('{"unbiased_batch_variance": true, "bn_variance": "onnx"}')
    assert e.value.code == "OT1231"
