"""Several targets of which one is text: an output for each, from the table to predictions with names."""

import csv
import json
import sys

import numpy as np
import onnxruntime
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli  # noqa: E402


@pytest.fixture
def work(tmp_path):
    r = np.random.default_rng(0)
    size, city = r.normal(100, 30, 300), r.choice(["Bern", "Rome"], 300)
    price = 1000 * size + 20000 * (city == "Rome")
    kind = np.where(size > 120, "large", np.where(size > 80, "middle", "small"))
    with open(tmp_path / "t.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["size", "city", "price", "kind"])
        w.writerows(zip(size.round(2), city, price.round(1), kind))
    return tmp_path


def test_a_number_and_a_class(work):
    for order, first in (("price,kind", "price"), ("kind,price", "kind")):
        r = cli("new", "mlp", "--data", "t.csv", "--target", order, "-o", "m.onnx", cwd=work)
        assert r.returncode == 0 and "'kind' 3 classes" in r.stderr and "'price' a number" in r.stderr, r.stderr
        r = cli("train", "m.onnx", "--data", "t.csv", "--epochs", "60", "--lr", "0.01", "--out", first, cwd=work)
        assert r.returncode == 0, r.stderr
        r = cli("eval", first, "--data", "t.csv", "--json", cwd=work)
        assert r.returncode == 0, r.stderr
        got = json.loads(r.stdout)
        both = got["outputs"]
        assert set(both) == {"price", "kind"}
        assert {k: v for k, v in got.items() if k in both[first]} == both[first]
        assert both["kind"]["accuracy"] > 0.9 and both["kind"]["classes"] == ["large", "middle", "small"]
        assert both["price"]["r2"] > 0.9
        (work / "new.csv").write_text("city,size\nRome,150\nBern,60\n")
        r = cli("predict", first, "--data", "new.csv", "--json", cwd=work)
        assert r.returncode == 0, r.stderr
        said = json.loads(r.stdout)
        assert said["prediction" if first == "kind" else "kind_prediction"] == ["large", "small"]
        session = onnxruntime.InferenceSession(str(work / first / "model.onnx"))
        feeds = {"size": np.float32([[150], [60]]), "city": np.array([["Rome"], ["Bern"]], dtype=object)}
        for name, value in zip(["price", "kind"], session.run(["price", "kind"], feeds)):
            np.testing.assert_allclose(value, said["outputs"][name], rtol=1e-4)
    r = cli("train", "--resume", "kind", "--epochs", "61", cwd=work)
    assert r.returncode == 0, r.stderr
    (work / "other.csv").write_text("size,city,price,kind\n90,Rome,3,huge\n")
    r = cli("eval", "price", "--data", "other.csv", cwd=work)
    assert r.returncode == 4 and "OT2114" in r.stderr and "huge" in r.stderr


def test_in_python(work):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(work / "t.csv")
    model = ot.new("mlp", table, target="price,kind", verbose=False)
    assert model.learnt == {"price": None, "kind": ["large", "middle", "small"]}
    model.compile(optimizer=ot.AdamW(lr=0.01)).fit(table, ["price", "kind"], epochs=40, verbose=0)
    found = model.predict(table)
    assert set(found) == {"price", "kind"} and found["kind"].shape == (300, 3)
    r2 = 1 - np.mean((found["price"][:, 0] - table["price"]) ** 2) / np.var(table["price"])
    assert r2 > 0.9
    named = model.predict(table, labels=True)
    np.testing.assert_array_equal(named["price"], found["price"])
    right = np.mean(named["kind"] == table["kind"])
    chances = model.predict(table, proba=True)["kind"]
    np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(table, output="kind", labels=True), named["kind"])
    scores = model.evaluate(table, ["price", "kind"])
    assert scores["rows"] == 300 and set(scores["outputs"]) == {"price", "kind"}
    assert scores["outputs"]["kind"]["accuracy"] == pytest.approx(right)
    assert scores["outputs"]["kind"]["classes"] == ["large", "middle", "small"]
    assert scores["outputs"]["price"]["r2"] == pytest.approx(r2, abs=1e-4) == scores["r2"]
    with pytest.raises(ot.DataError, match="learns 'price', 'kind'"):
        model.fit(table, ["price", "city"], epochs=1)
    with pytest.raises(ot.DataError, match="the table has no column 'nope'"):
        ot.new("mlp", table, target="nope")


def test_every_epoch_has_the_metrics_of_every_target(work):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(work / "t.csv")
    model = ot.new("mlp", table, target="price,kind", verbose=False).compile(optimizer=ot.AdamW(lr=0.01))
    valid = table.iloc[:60]
    history = model.fit(table.iloc[60:], ["price", "kind"], valid=(valid, ["price", "kind"]), epochs=12, verbose=0,
                        metric="kind_f1")
    assert history["valid_price_rmse"] == history["valid_rmse"]
    assert history.best_epoch == 1 + int(np.argmax(history["valid_kind_f1"]))
    last = model.trainer().evaluate(valid, ["price", "kind"])["outputs"]
    assert history["valid_kind_accuracy"][-1] == pytest.approx(last["kind"]["accuracy"])
    assert history["valid_kind_f1"][-1] == pytest.approx(last["kind"]["f1"])
    assert history["valid_price_mae"][-1] == pytest.approx(last["price"]["mae"])
    with pytest.raises(ot.UsageError, match="OT0037|no metric 'kind_size'"):
        model.fit(table, ["price", "kind"], valid=0.1, epochs=13, metric="kind_size")
    r = cli("new", "mlp", "--data", "t.csv", "--target", "price,kind", "-o", "m.onnx", cwd=work)
    r = cli("train", "m.onnx", "--data", "t.csv", "--epochs", "4", "--valid", "0.2", "--metric", "kind_accuracy",
            "--out", "run", cwd=work)
    assert r.returncode == 0 and "kind_accuracy" in r.stderr, r.stderr
    lines = [json.loads(line) for line in (work / "run/metrics.jsonl").read_text().splitlines()]
    assert all(line["valid_price_rmse"] > 0 and 0 <= line["valid_kind_accuracy"] <= 1 for line in lines)
    assert "valid_kind_accuracy" in (work / "run/metrics.csv").read_text().splitlines()[0]
    best = max(lines, key=lambda line: line["valid_kind_accuracy"])
    assert any(line.get("best") and line["valid_kind_accuracy"] == best["valid_kind_accuracy"] for line in lines)


THREE = """
<ir_version: 9, opset_import: ["": 17]>
g (float[N, 4] x) => (float[N, 1] size, float[N, 3] kind, float[N, 1] sick)
<float[4, 1] a = {1, 0, 0, 0}, float[4, 3] b = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, float[4, 1] c = {0, 0, 0, 1}> {
  size = MatMul(x, a)
  kind = MatMul(x, b)
  sick = MatMul(x, c)
}
"""


def test_losses_of_ones_own_model():
    """Metrics of every output that has a loss, against its own target, whatever their order and names."""
    x = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    values = {"kind": x[:, :3].argmax(1), "size": x[:, :1] + 0.5, "sick": (x[:, 3:] > 0).astype(np.float32)}
    of = ot.losses
    for terms in ([of.CrossEntropy(output="kind"), of.MSE(output="size"), of.BCELogits(output="sick", label="ill")],
                  [0.5 * of.MSE(output="size", label="metres"), of.BCELogits(output="sick", label="ill"),
                   of.CrossEntropy(output="kind")]):
        ready = ot.prepare(ot.parse(THREE), loss=terms, optimizer=ot.SGD(lr=1e-3))
        targets = json.loads(ready.info["metadata"]["onnxtrain.loss_targets"])
        trainer = ot.Trainer(ready)
        assert set(trainer.targets) == set(targets.values())
        scores = trainer.evaluate({"x": x}, {targets[name]: v for name, v in values.items()})["outputs"]
        assert set(scores) == {"kind", "size", "sick"}
        assert scores["kind"]["accuracy"] == 1 and scores["size"]["mae"] == pytest.approx(0.5, abs=1e-6)
        assert scores["sick"]["accuracy"] == 1 and scores["sick"]["auc"] == 1


def test_words_where_numbers_are_learnt(work):
    r = cli("new", "mlp", "--data", "t.csv", "--target", "size,price", "-o", "m.onnx", cwd=work)
    assert r.returncode == 0 and "'price' a number from" in r.stderr, r.stderr
    text = (work / "t.csv").read_text().splitlines()
    text[5] = "many,Rome,3.5,small"
    (work / "stray.csv").write_text("\n".join(text))
    r = cli("new", "mlp", "--data", "stray.csv", "--target", "size,price", "-o", "m.onnx", cwd=work)
    assert r.returncode == 4 and "OT2124" in r.stderr and "many" in r.stderr


def test_the_loss_of_all_targets_chooses_the_best_epoch(work):
    """Whatever target stands first; --metric names one of them."""
    for order in ("price,kind", "kind,price"):
        first, second = order.split(",")
        r = cli("new", "mlp", "--data", "t.csv", "--target", order, "-o", first + ".onnx", cwd=work)
        assert r.returncode == 0, r.stderr
        for name, flags in (("all", []), ("one", ["--metric", "kind_accuracy"])):
            out = f"{name}-{first}"
            r = cli("train", first + ".onnx", "--data", "t.csv", "--epochs", "25", "--lr", "0.03", *flags, "--out", out,
                    cwd=work)
            assert r.returncode == 0, r.stderr
            said = f"the validation loss, in which '{first}', '{second}' are added up" in r.stderr
            assert said == (name == "all"), r.stderr
            lines = [json.loads(line) for line in (work / out / "metrics.jsonl").read_text().splitlines()]
            key = "valid_loss" if name == "all" else "valid_kind_accuracy"
            assert all((line.get("watched") == "valid_loss") == (name == "all") for line in lines)
            values = [line[key] for line in lines]
            ties = [line for line in lines if line[key] == (min if name == "all" else max)(values)]
            best = min(ties, key=lambda line: line["valid_loss"])["epoch"]
            r = cli("runs", ".", "--json", cwd=work)
            run = next(j for j in json.loads(r.stdout) if j["run"].endswith(out))
            assert run["best_epoch"] == best and run["metric"] == key, (run, best)


def test_the_line_about_the_best_epoch_has_the_loss(work):
    r = cli("new", "mlp", "--data", "t.csv", "--target", "price,kind", "-o", "m.onnx", cwd=work)
    r = cli("train", "m.onnx", "--data", "t.csv", "--epochs", "3", "--out", "run", cwd=work)
    assert r.returncode == 0, r.stderr
    best = next(line for line in r.stderr.splitlines() if line.startswith("best"))
    assert ": valid loss " in best and "kind_accuracy" in best and "valid price_mae" in r.stderr, r.stderr
    r = cli("train", "--resume", "run", "--epochs", "5", cwd=work)
    assert r.returncode == 0 and "is watched now" not in r.stderr, r.stderr


def test_one_target_and_its_loss(work):
    r = cli("new", "mlp", "--data", "t.csv", "--target", "kind", "--drop", "price", "-o", "k.onnx", cwd=work)
    assert r.returncode == 0, r.stderr
    r = cli("train", "k.onnx", "--data", "t.csv", "--epochs", "8", "--metric", "loss", "--out", "k", cwd=work)
    assert r.returncode == 0 and "valid acc" in r.stderr, r.stderr
    lines = [json.loads(line) for line in (work / "k/metrics.jsonl").read_text().splitlines()]
    best = [line["epoch"] for line in lines if "best" in line][-1]
    assert lines[best - 1]["valid_loss"] == min(line["valid_loss"] for line in lines)
    assert all("valid_accuracy" in line and line["watched"] == "valid_loss" for line in lines)
