"""The documents for newcomers say what is so: their commands run, their code runs, their flags exist."""

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.executable).parent
NOT_HERE = ("make demo", "make build", "export PATH", "make figures-")  # the build itself, long tables
ELSEWHERE = {"adding-a-converter": "python/tests/test_adding_a_converter.py",
             "adding-an-optimizer": "tests/test_adding.py", "c-and-cpp": "tests/test_c_and_cpp_page.py",
             "engines": "python/tests/test_engine_pages.py",
             "training-conformance": "python/tests/test_engine_pages.py",
             "distributed": "tests/test_distributed_page.py", "flower": "python/tests/flower/test_page.py"}


def blocks(path):
    """(kind, text) of every fenced block."""
    return re.findall(r"^```(console|python)\n(.*?)^```", (ROOT / path).read_text(), re.M | re.S)


def console(text, cwd):
    """Runs the lines that begin with $; what follows one, if anything, is what it prints (numbers apart)."""
    environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", NO_COLOR="1")
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        if command.startswith(NOT_HERE):
            continue
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=cwd, env=environment)
        printed = done.stdout + done.stderr
        fails = bool(shown) and shown[0].startswith("error[")
        assert (done.returncode != 0) == fails, f"{command}\n{printed}"
        form = lambda text: re.sub(r"[ \t]+", " ", re.sub(r"[\d.,]+", "#", text.strip()))
        for line in shown:
            assert form(line) in form(printed), f"{command}\n{printed}"


def python(text, cwd, names):
    with contextlib.chdir(cwd), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        exec(compile(text, "document", "exec"), names)


def play(path, cwd, names=None):
    names = names if names is not None else {}
    for kind, text in blocks(path):
        console(text, cwd) if kind == "console" else python(text, cwd, names)


@pytest.fixture
def project(tmp_path):
    """A folder that looks like the project's, with a model and data of one's own in it."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copy(ROOT / "examples/transfer/new_head.onnx", tmp_path / "model.onnx")
    data = np.load(ROOT / "examples/transfer/data.npz")
    x, y = data["x_train"], data["y_train"].astype(np.int64) - 7
    np.savez(tmp_path / "data.npz", x=x, y=y)
    return tmp_path, {"x": (x / np.float32(255))[:, None], "y": y}


def test_readme(project):
    folder, names = project
    play("README.md", folder, names)
    assert (folder / "trained.onnx").exists() and (folder / "runs/model-001/model.onnx").exists()


def test_houses(project):
    folder, _ = project
    play("examples/houses/README.md", folder)
    spec = importlib.util.spec_from_file_location("make_houses", ROOT / "examples/houses/make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    for name, table in zip(("houses.csv", "new.csv"), make.tables()):
        assert (ROOT / "examples/houses" / name).read_text() == make.text(table)


def test_tutorial(project):
    folder, _ = project
    play("docs/tutorial.md", folder)
    lines = (folder / "predictions.csv").read_text().splitlines()
    assert lines[0] == "prediction,0,1,2" and len(lines) == 1 + 600


def test_how_to_page(project):
    folder, _ = project
    play("docs/how-to.md", folder)
    assert (folder / "both.html").exists() and (folder / "trained.onnx").exists()


def write_images_and_texts(folder, tokenizers):
    rng = np.random.default_rng(1)
    for kind in range(2):
        (folder / f"images/{kind}").mkdir(parents=True)
        for k in range(12):
            pixels = rng.integers(0, 150, (24, 24, 3)).astype(np.uint8) + np.uint8(90 * kind)
            (folder / f"images/{kind}/{k}.ppm").write_bytes(b"P6\n24 24\n255\n" + pixels.tobytes())
    texts = [" ".join(rng.choice(["a", "film", "was", ("sad", "lovely")[k % 2]], 6)) for k in range(60)]
    rows = "".join(f"{text},{('down', 'up')[k % 2]}\n" for k, text in enumerate(texts))
    (folder / "reviews.csv").write_text("review,mood\n" + rows)
    (folder / "new-reviews.csv").write_text("review\na lovely film\n")
    t = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="[UNK]"))
    t.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    t.train_from_iterator(texts, tokenizers.trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"]))
    t.save(str(folder / "tokenizer.json"))


def test_page_of_tables(tmp_path):
    import onnxtrain as ot

    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 400
    table = pandas.DataFrame({"age": rng.uniform(1, 80, n).round(1), "sex": rng.choice(["male", "female"], n),
                              "fare": rng.exponential(30, n).round(2)})
    table["survived"] = ((table["sex"] == "female") ^ (rng.random(n) < 0.15)).astype(int)
    table.loc[::9, "age"] = np.nan
    for name, rows in (("titanic", table[:300]), ("test", table[300:]), ("new", table[300:].drop(columns="survived"))):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    write_images_and_texts(tmp_path, pytest.importorskip("tokenizers"))
    photos = sorted((tmp_path / "images").glob("*/*.ppm"))
    (tmp_path / "photos").mkdir()
    for name, rows in (("photos/labels", [f"../images/{p.parent.name}/{p.name},{p.parent.name}" for p in photos]),
                       ("photos", [f"images/{p.parent.name}/{p.name},{p.parent.name}" for p in photos])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["file,what", *rows]) + "\n")
    play("docs/tables.md", tmp_path, {"ot": ot, "table": table[:300]})
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 101
    assert (tmp_path / "trained.onnx").exists()


def test_python_page(project):
    import onnxtrain as ot

    folder, names = project
    play("docs/python.md", folder, names | {"ot": ot, "xb": names["x"][:8], "yb": names["y"][:8]})


def test_fit_page(project):
    import onnxtrain as ot

    folder, names = project
    play("docs/fit.md", folder, names | {"ot": ot})


@pytest.mark.parametrize("page", ["recipe", "standard", "safety"])
def test_page_that_needs_only_a_model(project, page):
    import onnxtrain as ot

    play(f"docs/{page}.md", project[0], {"ot": ot})


def test_errors_page(project):
    play("docs/errors.md", project[0])


def test_sklearn_page(tmp_path):
    pytest.importorskip("sklearn")
    play("docs/sklearn.md", tmp_path)


def test_every_block_is_run():
    """A page with code is played here or by the test that is named."""
    here = pathlib.Path(__file__).read_text()
    pages = {p.stem for p in (ROOT / "docs").glob("*.md") if any(
        not all(line.startswith(tuple(f"$ {n}" for n in NOT_HERE)) for line in text.splitlines())
        for _, text in blocks(f"docs/{p.name}"))}
    played = set(re.findall(r'play\("docs/([a-z-]+)\.md"', here)) | {"recipe", "standard", "safety"}
    assert pages - played - ELSEWHERE.keys() == set()
    for page, test in ELSEWHERE.items():
        assert f"{page}.md" in (ROOT / test).read_text()


def commands():
    """Every command and option, as the program describes itself."""
    done = subprocess.run([BIN / "onnxtrain", "reference", "json"], capture_output=True, text=True, check=True)
    return {c["command"]: c for c in json.loads(done.stdout)}


def test_command_page():
    """The reference part is what the program says; every flag that the rest names exists."""
    subprocess.run([sys.executable, ROOT / "tools/docs_cli.py", "--check"], check=True)
    known = {n for c in commands().values() for o in c["options"] for n in o["names"]}
    page = (ROOT / "docs/cli.md").read_text().split("<!-- reference")[0]
    for flag in set(re.findall(r"(--[a-z][a-z-]+)", page)):
        assert flag in known, flag


def test_reference_is_complete():
    shown = subprocess.run([BIN / "onnxtrain", "--help"], capture_output=True, text=True).stdout
    listed = re.findall(r"^  ([a-z]+) ", shown, re.M)
    assert set(commands()) >= {c for c in listed if c != "onnxtrain"} and len(commands()) >= 19
    for name, c in commands().items():
        assert c["help"] and c["examples"].strip(), name
        for o in c["options"]:
            assert o["help"], f"{name} {o['names']}: no help text"
        shown = subprocess.run([BIN / "onnxtrain", name, "--help-all"], capture_output=True, text=True).stdout
        assert all(n in shown for o in c["options"] for n in o["names"]), name
