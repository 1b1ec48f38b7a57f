"""Text columns by a tokenizer, and parquet tables, through the command line and in Python."""

import csv
import json
import os
import sys

import numpy as np
import onnxruntime
import pytest

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import ROOT  # noqa: E402
from cli_models import cli as plain_cli  # noqa: E402

PATHS = [str(ROOT / "python"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]


def cli(*args, first=(), **more):
    """The tool with this interpreter, which has the packages; `first`: folders that come before them."""
    env = {"ONNXTRAIN_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(p for p in [*first, *PATHS] if p)}
    return plain_cli(*args, env=env, **more)


GOOD, BAD = "great lovely fine superb happy".split(), "awful poor bad dreadful sad".split()
OTHER = "the film was a story about dogs and cats in town".split()


def review(r, kind):
    words = [*r.choice(OTHER, r.integers(3, 9)), *r.choice(GOOD if kind else BAD, 2)]
    return " ".join(r.permutation(words))


@pytest.fixture
def work(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    t = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="[UNK]"))
    t.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"])
    t.train_from_iterator([" ".join(GOOD + BAD + OTHER)], trainer)
    t.save(str(tmp_path / "tokenizer.json"))
    r = np.random.default_rng(0)
    kinds = r.integers(0, 2, 300)
    with open(tmp_path / "reviews.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["id", "review", "mood"])
        w.writerows((k, review(r, kind), ("down", "up")[kind]) for k, kind in enumerate(kinds))
    return tmp_path


def new(work, kind, *more):
    r = cli("new", kind, "--data", "reviews.csv", "--target", "mood", "--text", "review", "--tokenizer",
            "tokenizer.json", "-o", "m.onnx", *more, cwd=work)
    assert r.returncode == 0, r.stderr
    return r


@pytest.mark.parametrize("kind", ["transformer", "lstm", "gru"])
def test_from_texts_to_predictions(work, kind):
    r = new(work, kind)
    assert "'review' as at most" in r.stderr
    r = cli("train", "m.onnx", "--data", "reviews.csv", "--epochs", "15", "--lr", "0.01", "--out", "run", cwd=work)
    assert r.returncode == 0, r.stderr
    (work / "tokenizer.json").unlink()  # the model has it
    (work / "new.csv").write_text('review\n"a lovely, superb story"\n"the film was awful and sad"\nhappy dogs\n""\n')
    r = cli("predict", "run", "--data", "new.csv", "--json", cwd=work)
    assert r.returncode == 0, r.stderr
    got = json.loads(r.stdout)
    assert got["prediction"][:3] == ["up", "down", "up"] and got["classes"] == ["down", "up"]
    # ONNX Runtime, with tokens of our own
    session = onnxruntime.InferenceSession(str(work / "run/model.onnx"))
    model = ot.load(work / "run/model.onnx")
    feeds = model.text.inputs(["a lovely, superb story", "the film was awful and sad", "happy dogs", ""])
    assert feeds["attention_mask"].sum(1).tolist() == [5, 6, 2, 1]
    np.testing.assert_allclose(session.run(None, feeds)[0], got["outputs"]["logits"], rtol=1e-4, atol=1e-5)
    # padding counts nothing: the same text with other ids behind it
    other = {**feeds, "input_ids": np.where(feeds["attention_mask"] == 1, feeds["input_ids"], 3)}
    np.testing.assert_allclose(session.run(None, other)[0], got["outputs"]["logits"], rtol=1e-4, atol=1e-5)
    # Python reads texts and tables alike
    want = np.array(got["outputs"]["logits"])
    two = model.predict(["a lovely, superb story", "happy dogs"])
    np.testing.assert_allclose(two, want[[0, 2]], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.predict({"review": ["happy dogs"]}), want[2:3], rtol=1e-4, atol=1e-5)
    r = cli("train", "--resume", "run", "--epochs", "16", cwd=work)
    assert r.returncode == 0, r.stderr
    r = cli("eval", "run", "--data", "reviews.csv", "--json", cwd=work)
    assert r.returncode == 0 and json.loads(r.stdout)["accuracy"] > 0.95, r.stderr


def test_texts_are_cut_and_that_is_said(work):
    assert "longer texts cut" in new(work, "gru", "--max-length", "4").stderr
    r = cli("train", "m.onnx", "--data", "reviews.csv", "--epochs", "1", "--out", "run", cwd=work)
    assert r.returncode == 0, r.stderr


def test_a_tokenizer_with_more_words_than_the_embedding(work):
    tokenizers = pytest.importorskip("tokenizers")
    new(work, "gru")
    t = tokenizers.Tokenizer.from_file(str(work / "tokenizer.json"))
    t.add_tokens([f"word{k}" for k in range(50)] + ["story"])
    t.add_tokens(["zebra"])
    t.save(str(work / "larger.json"))
    text = (work / "reviews.csv").read_text()
    (work / "reviews.csv").write_text(text.replace("dogs", "zebra"))
    r = cli("train", "m.onnx", "--data", "reviews.csv", "--tokenizer", "larger.json", "--out", "run", cwd=work)
    assert r.returncode == 4 and "OT2221" in r.stderr and "larger.json" in r.stderr and "embedding" in r.stderr
    (work / "other.csv").write_text("text,mood\nhi,up\n")
    r = cli("train", "m.onnx", "--data", "other.csv", "--out", "run", cwd=work)
    assert r.returncode == 4 and "review" in r.stderr


@pytest.fixture
def shop(work):
    """Text and columns: the class follows from the text and a number together."""
    r = np.random.default_rng(1)
    with open(work / "shop.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["id", "title", "review", "stars", "shop", "day", "kept"])
        for k in range(400):
            kind, stars = r.integers(0, 2), r.integers(1, 6)
            w.writerow([k, r.choice(OTHER), review(r, kind), stars if r.random() > 0.1 else "",
                        r.choice(["Bern", "Rome"]), f"2020-{1 + k % 12:02d}-05",
                        ("no", "yes")[int(kind and stars > 2)]])
    return work


def test_text_beside_other_columns(shop):
    r = cli("new", "gru", "--data", "shop.csv", "--target", "kept", "--text", "title,review", "--tokenizer",
            "tokenizer.json", "-o", "m.onnx", cwd=shop)
    assert r.returncode == 0 and "'title', 'review' joined" in r.stderr and "one-hot: 'shop' (2)" in r.stderr, r.stderr
    assert "'id' (counts the rows)" in r.stderr
    r = cli("train", "m.onnx", "--data", "shop.csv", "--epochs", "15", "--lr", "0.01", "--out", "run", cwd=shop)
    assert r.returncode == 0 and "2 numbers and 1 text" in r.stderr, r.stderr
    r = cli("eval", "run", "--data", "shop.csv", "--json", cwd=shop)
    assert r.returncode == 0 and json.loads(r.stdout)["accuracy"] > 0.9, (r.stdout, r.stderr)
    new = {"shop": ["Rome", "Oslo"], "review": ["a lovely story", "awful"], "stars": [5, np.nan], "title": ["", "cats"],
           "day": ["2020-03-05", "2020-03-05"]}
    with open(shop / "new.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(new)
        w.writerows(["" if v != v else v for v in row] for row in zip(*new.values()))
    r = cli("predict", "run", "--data", "new.csv", "--json", cwd=shop)
    assert r.returncode == 0 and "Oslo" in r.stderr, r.stderr
    got = json.loads(r.stdout)
    assert got["prediction"] == ["yes", "no"]
    model = ot.load(shop / "run/model.onnx")
    feeds = {**model.text.inputs(["a lovely story", "cats awful"]), "stars": np.float32([[5], [np.nan]]),
             "shop": np.array([["Rome"], ["Oslo"]], dtype=object), "day": np.float32([[18326], [18326]])}
    want = onnxruntime.InferenceSession(str(shop / "run/model.onnx")).run(None, feeds)[0]
    np.testing.assert_allclose(want, got["outputs"]["logits"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.predict(new), want, rtol=1e-4, atol=1e-5)
    with pytest.raises(ot.DataError, match="beside the text"):
        model.predict(["a lovely story"])
    r = cli("new", "gru", "--data", "shop.csv", "--target", "kept", "--text", "reviews", "--tokenizer",
            "tokenizer.json", "-o", "m.onnx", cwd=shop)
    assert r.returncode == 4 and "--text review" in r.stderr, r.stderr


def test_a_new_model_for_texts_in_python(shop):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(shop / "shop.csv")
    model = ot.new("gru", table, target="kept", text="review", tokenizer=shop / "tokenizer.json", verbose=False)
    model.compile(optimizer=ot.AdamW(lr=0.01))
    model.fit(table, "kept", epochs=12, verbose=0)
    assert model.evaluate(table, "kept")["accuracy"] > 0.9
    made = ot.new("lstm", str(shop / "shop.csv"), target="kept", text=["title", "review"], max_length=6,
                  tokenizer=str(shop / "tokenizer.json"), verbose=False)
    assert made.text.columns == ["title", "review"] and made.text.length == 6
    (shop / "no.json").write_text("{}")
    with pytest.raises(ot.DataError, match="no.json"):
        ot.new("gru", table, target="kept", text="review", tokenizer=shop / "no.json")
    with pytest.raises(ot.UsageError, match="tokenizer"):
        ot.new("gru", table, target="kept", text="review", verbose=False)


def test_without_the_package(work, tmp_path):
    blocked = tmp_path / "blocked"
    (blocked / "tokenizers").mkdir(parents=True)
    (blocked / "tokenizers/__init__.py").write_text("raise ImportError('blocked')")
    r = cli("new", "gru", "--data", "reviews.csv", "--target", "mood", "--text", "review", "--tokenizer",
            "tokenizer.json", cwd=work, first=[str(blocked)])
    assert r.returncode != 0 and "OT2220" in r.stderr and "pip install onnxtrain[text]" in r.stderr


def test_parquet_on_the_command_line(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    r = np.random.default_rng(0)
    table = pandas.DataFrame({
        "size": r.normal(size=80), "city": r.choice(["Bern", "Rome", 'A "quoted", name'], 80),
        "day": pandas.Timestamp("2020-01-01") + pandas.to_timedelta(r.integers(0, 900, 80), "D"),
        "new": r.integers(0, 2, 80).astype(bool), "kind": r.choice(["a", "b"], 80)})
    table.loc[3, "size"] = np.nan
    table.loc[4, "city"] = None
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        out = name.replace(".", "-")
        x = cli("new", "mlp", "--data", name, "--target", "kind", "-o", f"{out}.onnx", cwd=tmp_path)
        assert x.returncode == 0, x.stderr
        x = cli("train", f"{out}.onnx", "--data", name, "--epochs", "2", "--out", out, cwd=tmp_path)
        assert x.returncode == 0 and name in x.stderr, x.stderr
    a, b = (cli("predict", run, "--data", data, cwd=tmp_path) for run, data in
            (("t-parquet", "t.parquet"), ("t-csv", "t.csv")))
    assert a.returncode == 0 and a.stdout == b.stdout
    (tmp_path / "broken.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:200])
    x = cli("predict", "t-csv", "--data", "broken.parquet", cwd=tmp_path)
    assert x.returncode == 4 and "OT2206" in x.stderr and "broken.parquet" in x.stderr
