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
    assert lines[0] == ",".join(["prediction", *map(str, labels)])
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
