"""Files of scikit-learn's exporter write class labels themselves: data and predictions use these."""

import sys
from pathlib import Path

import numpy as np
import pytest

import onnxtrain as ot

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/support"))
from cli_models import cli  # noqa: E402

RNG = np.random.default_rng(4)
Y = RNG.integers(0, 3, 150)
X = (RNG.normal(size=(150, 2)) + np.stack([Y, -Y], 1) * 3).astype("f")


def classifier(labels, label_first=True):
    """A linear classifier whose graph writes the labels, as scikit-learn's exporter does it."""
    kind = "string" if isinstance(labels[0], str) else "int64"
    outputs = [f"{kind}[N] label", "float[N,3] scores"]
    outputs = ", ".join(outputs if label_first else outputs[::-1])
    names = ", ".join(f'"{v}"' if kind == "string" else str(v) for v in labels)
    return f"""<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
        g (float[N,2] x) => ({outputs})
        <float[2,3] w = {{0.1,0.2,0.3,0.1,0.2,0.1}}, float[3] b = {{0.0,0.0,0.0}}, {kind}[3] classes = {{{names}}},
         int64[1] flat = {{-1}}>
        {{ z = MatMul(x, w)  scores = Add(z, b)  i = ArgMax<axis = 1, keepdims = 0>(scores)
           l = ai.onnx.ml.ArrayFeatureExtractor(classes, i)  label = Reshape(l, flat) }}"""


@pytest.mark.parametrize("labels", [[1, 2, 3], [30, 10, 20], ["ant", "bee", "cat"]])
def test_labels_of_the_graph_are_those_of_the_data(labels, tmp_path):
    ot.parse(classifier(labels)).save(tmp_path / "m.onnx")
    given = np.array(labels)[Y]
    rows = [f"{a},{b},{c}" for (a, b), c in zip(X, given)]
    (tmp_path / "d.csv").write_text("\n".join(["p,q,kind", *rows]) + "\n")
    # rows of the last class only in the second half: labels are judged by the list, not by what happens to be there
    r = cli("train", "m.onnx", "--data", "d.csv", "--target", "kind", "--epochs", "30", "--lr", "0.05", "--out", "run",
            cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    some = [row for row, y in zip(rows, Y) if y != 0]
    (tmp_path / "some.csv").write_text("\n".join(["p,q,kind", *some]) + "\n")
    for data in ("d.csv", "some.csv"):
        r = cli("eval", "run", "--data", data, "--json", cwd=tmp_path)
        assert r.returncode == 0 and ot_accuracy(r.stdout) > 0.9, r.stdout + r.stderr
    lines = cli("predict", "run", "--data", "d.csv", cwd=tmp_path).stdout.splitlines()
    assert lines[0] == ",".join(["prediction", "label", *map(str, labels)])
    predicted = [line.split(",")[0] for line in lines[1:]]
    assert np.mean([p == str(g) for p, g in zip(predicted, given)]) > 0.9
    (tmp_path / "bad.csv").write_text("p,q,kind\n1,2,7\n")
    r = cli("eval", "run", "--data", "bad.csv", cwd=tmp_path)
    assert r.returncode == 4 and "OT2114" in r.stderr and "'7'" in r.stderr


def ot_accuracy(text):
    import json

    return json.loads(text)["accuracy"]


def test_in_python():
    m = ot.parse(classifier([1, 2, 3])).compile(loss="cross_entropy", optimizer=ot.Adam(lr=0.05))
    assert m.info["classes"] == ["1", "2", "3"]
    m.fit(X, Y + 1, epochs=30)
    few = Y < 2  # a batch that lacks the 3
    assert m.evaluate(X[few], Y[few] + 1)["accuracy"] > 0.9
    with pytest.raises(ot.DataError) as e:
        m.evaluate(X, Y)
    assert e.value.code == "OT2114" and "class '0'" in str(e.value)
    c = ot.OnnxClassifier(ot.parse(classifier([1, 2, 3], label_first=False)), epochs=30, optimizer=ot.Adam(lr=0.05))
    assert c.fit(X, Y + 1).score(X, Y + 1) > 0.9 and set(c.predict(X)) == {1, 2, 3}
    assert c.fit(X[few], Y[few] + 1).score(X[few], Y[few] + 1) > 0.9
    assert c.fit(X, Y * 7).score(X, Y * 7) > 0.9


def linear(labels):
    """The same by one operator, whose weights and labels are attributes."""
    text = isinstance(labels[0], str)
    names = ", ".join(f'"{v}"' if text else str(v) for v in labels)
    return f"""<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
        g (float[N,2] x) => ({'string' if text else 'int64'}[N] label, float[N,3] scores)
        {{ label, scores = ai.onnx.ml.LinearClassifier<coefficients = [0.1,0.2,0.3,0.1,0.2,0.1],
           intercepts = [0.0,0.0,0.0], {'classlabels_strings' if text else 'classlabels_ints'} = [{names}],
           post_transform = "SOFTMAX">(x) }}"""


@pytest.mark.parametrize("labels", [[1, 2, 3], [30, 10, 20], ["ant", "bee", "cat"]])
def test_of_an_operator_with_labels_in_attributes(labels, tmp_path):
    ot.parse(linear(labels)).save(tmp_path / "m.onnx")
    given = np.array(labels)[Y]
    for name, rows in {"all": Y >= 0, "lacks the last": Y < 2, "lacks the first": Y > 0}.items():
        lines = [f"{a},{b},{c}" for (a, b), c in zip(X[rows], given[rows])]
        (tmp_path / "d.csv").write_text("\n".join(["p,q,kind", *lines]) + "\n")
        r = cli("train", "m.onnx", "--data", "d.csv", "--target", "kind", "--epochs", "60", "--lr", "0.1", "--valid",
                "0", "--out", "run", cwd=tmp_path)
        assert r.returncode == 0, r.stderr
        trained = ot.Session(str(tmp_path / "run" / "model.onnx")).run({"x": X[rows]})["label"]
        assert np.mean([str(a) == str(b) for a, b in zip(trained, given[rows])]) > 0.9, name


def test_single_steps_take_the_labels_of_the_file():
    def loss(labels, y):
        m = ot.prepare(ot.parse(linear(labels)), loss="cross_entropy", optimizer=ot.SGD(lr=0.1))
        return ot.Trainer(m).step({"x": X[Y < 2], "target": y[Y < 2]}).loss

    by_number = loss([0, 1, 2], Y)
    assert loss([1, 2, 3], Y + 1) == by_number  # no row has a 3: 1 and 2 are no class numbers all the same
    assert loss([30, 10, 20], np.array([30, 10, 20])[Y]) == by_number
    with pytest.raises(ot.DataError, match="class '0'.*'1', '2', '3'") as e:
        loss([1, 2, 3], Y)
    assert "give y + 1" in str(e.value)


def test_labels_that_count_from_another_number(tmp_path):
    ot.parse(linear([1, 2, 3])).save(tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", x=X, y=Y)
    line = ["train", "m.onnx", "--data", "d.npz", "--epochs", "1", "--out", "run"]
    r = cli(*line, cwd=tmp_path)
    assert r.returncode == 4 and "--label-offset 1" in r.stderr
    assert cli(*line, "--label-offset", "1", cwd=tmp_path).returncode == 0


def test_one_score_for_two_named_classes(tmp_path):
    ot.parse("""<ir_version: 8, opset_import: ["" : 17]> g (float[N,2] x) => (float[N,1] y)
        <float[2,1] w = {0.1, 0.1}> { y = MatMul(x, w) }""").save(tmp_path / "m.onnx")
    lines = [f"{a},{b},{'no' if y == 0 else 'yes'}" for (a, b), y in zip(X, Y)]
    (tmp_path / "d.csv").write_text("\n".join(["p,q,kind", *lines]) + "\n")
    r = cli("train", "m.onnx", "--data", "d.csv", "--target", "kind", "--epochs", "40", "--lr", "0.1", "--out", "run",
            cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    rows = cli("predict", "run", "--data", "d.csv", cwd=tmp_path).stdout.splitlines()
    assert rows[0] == "prediction,y"
    right = [row.split(",")[0] == line.split(",")[2] for row, line in zip(rows[1:], lines)]
    assert len(right) == 150 and np.mean(right) > 0.6
    assert all((row.split(",")[0] == "yes") == (float(row.split(",")[1]) > 0) for row in rows[1:])
