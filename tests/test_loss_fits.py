"""Targets and outputs are checked against the loss: what cannot work is refused with a fix that works when typed,
and `auto` looks at the target."""

import re
import shlex
import sys

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli  # noqa: E402

RNG = np.random.default_rng(2)
X = RNG.normal(size=(120, 3)).astype("f")
BITS = (X[:, 0] > 0).astype(int)
KINDS = RNG.integers(0, 3, 120)


def model(path, end, outputs=1):
    """z = x w + b, then the operators of `end`, which make y."""
    w = ", ".join(f"{v:.3f}" for v in np.random.default_rng(0).normal(size=3 * outputs))
    b = ", ".join(["0.1"] * outputs)
    ot.parse(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,3] x) => (float[N,{outputs}] y)
        <float[3,{outputs}] w = {{{w}}}, float[{outputs}] b = {{{b}}}> {{ h = MatMul(x, w)  z = Add(h, b) {end} }}
        """).save(path)


def csv(path, target, name="t", rows=X):
    lines = [",".join([*(f"{v:.5f}" for v in row), f'"{t}"' if isinstance(t, str) else str(t)])
             for row, t in zip(rows, target)]
    path.write_text("\n".join([f"a,b,c,{name}", *lines]) + "\n")


def train(work, *more, model="m.onnx", data="d.csv", epochs=1):
    return cli("train", model, "--data", data, "--target", "t", "--epochs", epochs, "--out", "run", *more, cwd=work)


def refused(work, code, exit_code, *more, **what):
    r = train(work, *more, **what)
    assert r.returncode == exit_code and f"error[{code}]" in r.stderr, r.stderr
    return r.stderr


def flags_of(text):
    """The flags of the printed fix, to be typed again."""
    return shlex.split(re.search(r"help: .*?(--\w[^\n(]*)", text[text.index("error["):]).group(1))


IDENTITY = "y = Identity(z)"
SIGMOID = "y = Sigmoid(z)"


@pytest.mark.parametrize("values, words", [
    (["1,234.5", "2,000.0", "999"], ["'1,234.5' at row 0, '2,000.0' at row 1", "1234.5 instead of '1,234.5'"]),
    (["5 %", "7 %", "3"], ["'5 %' at row 0", "5 instead of '5 %'"]),
    (["1", "2", "n.a."], ["'n.a.' at row 2"]),
    (["low", "high", "mid"], ["'low' at row 0, 'high' at row 1", "3 classes"])])
@pytest.mark.parametrize("loss", ["auto", "mse", "l1", "huber"])
def test_text_for_a_regression(tmp_path, values, words, loss):
    model(tmp_path / "m.onnx", IDENTITY)
    csv(tmp_path / "d.csv", [values[k % 3] for k in range(120)])
    text = refused(tmp_path, "OT2162", 4, "--loss", loss)
    assert "target 't' holds text" in text and all(w in text for w in words), text


@pytest.mark.parametrize("loss, end, outputs, target", [
    ("nll", IDENTITY, 3, KINDS), ("nll", "s = Exp(z)  y = Identity(s)", 3, KINDS),
    ("bce", IDENTITY, 1, BITS), ("bce", "s = Mul(z, z)  y = Identity(s)", 1, BITS),
    ("cross_entropy", "e = Exp(z)  ax = Constant<value_ints = [1]>()  s = ReduceSum(e, ax)  y = Div(e, s)", 3, KINDS),
    ("cross_entropy", SIGMOID, 3, KINDS), ("bce_logits", "zero = Constant<value_float = 0.0>() "
                                           "one = Constant<value_float = 1.0>()  y = Clip(z, zero, one)", 1, BITS)])
def test_a_loss_that_does_not_fit_the_output(tmp_path, loss, end, outputs, target):
    model(tmp_path / "m.onnx", end, outputs)
    csv(tmp_path / "d.csv", target)
    text = refused(tmp_path, "OT1290", 3, "--loss", loss)
    assert f"loss {loss} on output 'y'" in text
    if "help" in text and "--loss" in text.split("help")[1]:
        fix = flags_of(text)
        again = train(tmp_path, *(fix if "--loss" in fix else ["--loss", loss, *fix]))
        assert again.returncode == 0, (fix, again.stderr)


def test_probabilities_of_a_softmax_are_no_second_softmax(tmp_path):
    csv(tmp_path / "d.csv", KINDS)
    for end, loss in (("y = Softmax<axis = 1>(z)", "cross_entropy"), ("y = Softmax<axis = 1>(z)", "nll"),
                      ("y = LogSoftmax<axis = 1>(z)", "nll"), ("s = Softmax<axis = 1>(z)  y = Log(s)", "nll")):
        model(tmp_path / "m.onnx", end, 3)
        r = train(tmp_path, "--loss", loss)
        assert r.returncode == 0, r.stderr


@pytest.mark.parametrize("loss, end, target, code", [
    ("bce", SIGMOID, KINDS, "OT2163"), ("bce_logits", IDENTITY, KINDS, "OT2163"), ("auto", SIGMOID, KINDS, "OT2163"),
    ("hinge", IDENTITY, BITS, "OT2163"), ("hinge", IDENTITY, KINDS, "OT2163"),
    ("bce_logits", IDENTITY, BITS * 2 - 1, "OT2163")])
def test_values_that_a_loss_does_not_take(tmp_path, loss, end, target, code):
    model(tmp_path / "m.onnx", end)
    csv(tmp_path / "d.csv", target)
    text = refused(tmp_path, code, 4, "--loss", loss)
    assert f"'t' has values from {target.min()} to {target.max()}" in text
    again = train(tmp_path, *flags_of(text))
    assert again.returncode == 0, (text, again.stderr)


def test_hinge_and_soft_targets_that_fit(tmp_path):
    model(tmp_path / "m.onnx", IDENTITY)
    csv(tmp_path / "d.csv", BITS * 2 - 1)
    assert train(tmp_path, "--loss", "hinge").returncode == 0
    csv(tmp_path / "d.csv", RNG.random(120))
    assert train(tmp_path, "--loss", "bce_logits").returncode == 0


def test_a_target_that_the_output_never_reaches(tmp_path):
    model(tmp_path / "m.onnx", SIGMOID)
    csv(tmp_path / "d.csv", RNG.random(120) * 400 + 100)
    text = refused(tmp_path, "OT2166", 4, "--loss", "mse")
    assert "output 'y' lies between 0 and 1, the target 't' between 1" in text
    assert train(tmp_path, *flags_of(text)).returncode == 0
    model(tmp_path / "m.onnx", "y = Relu(z)")
    csv(tmp_path / "d.csv", RNG.normal(size=120))
    r = train(tmp_path, "--loss", "mse")
    assert r.returncode == 0 and "warning[OT3110]" in r.stderr


@pytest.mark.parametrize("end, more, loss", [
    (IDENTITY, [], "bce_logits"), (SIGMOID, [], "bce_logits"), (SIGMOID, ["--loss-input", "z"], "bce_logits")])
@pytest.mark.parametrize("words", [None, ["no", "yes"]])
def test_auto_sees_that_a_target_has_two_values(tmp_path, end, more, loss, words):
    model(tmp_path / "m.onnx", end)
    csv(tmp_path / "d.csv", BITS if words is None else [words[k] for k in BITS])
    r = train(tmp_path, *more, "--lr", "0.1", epochs=30)
    assert r.returncode == 0 and f"loss      {loss}, because" in r.stderr, r.stderr
    assert "valid accuracy" in r.stderr
    csv(tmp_path / "e.csv", BITS if words is None else [words[k] for k in BITS])
    assert cli("eval", "run", "--data", "e.csv", cwd=tmp_path).returncode == 0


def test_auto_keeps_numbers(tmp_path):
    model(tmp_path / "m.onnx", IDENTITY)
    csv(tmp_path / "d.csv", RNG.normal(size=120))
    assert "loss      mse" in train(tmp_path).stderr
    csv(tmp_path / "d.csv", BITS)
    r = train(tmp_path, "--loss", "mse")  # the user's word
    assert r.returncode == 0 and "bce" not in r.stderr


def test_a_regression_target_for_a_classifier(tmp_path):
    model(tmp_path / "m.onnx", IDENTITY, 4)
    csv(tmp_path / "d.csv", RNG.normal(size=120))
    text = refused(tmp_path, "OT2111", 4)
    assert "4 scores per row, for classes 0..3" in text and "--loss mse" not in text
    csv(tmp_path / "d.csv", RNG.integers(100, 500, 120))
    refused(tmp_path, "OT2104", 4)
    text = refused(tmp_path, "OT2110", 4, "--loss", "mse")
    assert "name as many columns:  --target A,B" in text and "cross_entropy" not in text


def test_in_python(tmp_path):
    model(tmp_path / "m.onnx", IDENTITY, 3)
    for loss, y in (("nll", KINDS), ("kl", np.full((120, 3), 1 / 3, "f"))):
        with pytest.raises(ot.ModelError) as e:
            ot.Trainer(ot.prepare(tmp_path / "m.onnx", loss=loss)).fit(X, y, epochs=1)
        assert e.value.code == "OT1290"
    model(tmp_path / "m.onnx", IDENTITY)
    with pytest.raises(ot.DataError) as e:
        ot.Trainer(ot.prepare(tmp_path / "m.onnx", loss="hinge")).fit(X, BITS.astype("f")[:, None], epochs=1)
    assert e.value.code == "OT2163"
    m = ot.load(tmp_path / "m.onnx").compile()
    assert "valid_accuracy" in m.fit(X, BITS, valid=0.3, epochs=1)
    m = ot.load(tmp_path / "m.onnx").compile(loss="mse")
    assert "valid_rmse" in m.fit(X, BITS, valid=0.3, epochs=1)
    # batches: the first one is looked at, too
    model(tmp_path / "e.onnx", "e = Exp(z)  y = Identity(e)", 3)
    t = ot.Trainer(ot.prepare(tmp_path / "e.onnx", loss="nll"))
    with pytest.raises(ot.ModelError) as e:
        t.fit([(X[:60], KINDS[:60]), (X[60:], KINDS[60:])], epochs=1)
    assert e.value.code == "OT1290" and t.step_count == 0
