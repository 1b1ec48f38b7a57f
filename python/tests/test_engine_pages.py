"""docs/engines.md, docs/training-conformance.md: their commands run, their engine trains, their backend is judged."""

import contextlib
import os
import pathlib
import sys

import numpy as np
import pytest

import onnxtrain as ot
from test_docs import ROOT, blocks, console, project  # noqa: F401  the fixture

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def code(page):
    return [text for kind, text in blocks(page) if kind == "python"]


@pytest.fixture
def installed(project, monkeypatch):  # noqa: F811
    """The page's engine as an installed package `mychip`, with its entry point; the page's backend as `my.backend`."""
    folder, _ = project
    site = folder / "site"
    for name, text in (("mychip/onnxtrain.py", code("docs/engines.md")[0]),
                       ("my/backend.py", "import onnxtrain as ot\nfrom onnxtrain.backend import *  # noqa: F403\n"
                        "def my_reader_of_training_files(model):\n"
                        "    return ot.Trainer(ot.load(model.SerializeToString()))\n"
                        + code("docs/training-conformance.md")[0])):
        (site / name).parent.mkdir(parents=True)
        (site / name).write_text(text)
        (site / name).with_name("__init__.py").write_text("")
    about = site / "mychip-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mychip\nVersion: 1.0\n")
    entry = (ROOT / "docs/training-conformance.md").read_text().split('"onnxtrain.engines"]\n')[1].split("\n")[0]
    (about / "entry_points.txt").write_text("[onnxtrain.engines]\n" + entry.replace('"', "") + "\n")
    monkeypatch.setenv("PYTHONPATH", f"{site}:{ROOT / 'python'}")
    monkeypatch.setenv("ONNXTRAIN_PYTHON", sys.executable)
    monkeypatch.syspath_prepend(str(site))
    return folder


def rows_for_one_file(folder):
    """What whole.onnx of the page takes."""
    data = np.load(folder / "data.npz")
    x = (data["x"] / np.float32(255))[:, None]
    order = np.stack([np.random.default_rng(k).permutation(len(x)) for k in range(3)])
    np.savez(folder / "whole.npz", image=x, label=data["y"], order=order)


def test_page_of_engines(installed):
    rows_for_one_file(installed)
    for kind, text in blocks("docs/engines.md"):
        if kind == "console":
            console(text, installed)
    assert {p.name for p in installed.glob("step*")} == {"step.onnx", "step.manifest.json", "step.state.safetensors"}
    trained = np.load(installed / "trained.npz")
    losses = next(trained[k] for k in trained.files if k.startswith("losses"))
    assert losses.shape[0] == 3 and losses[-1].mean() < losses[0].mean()


def test_page_of_conformance(installed):
    for kind, text in blocks("docs/training-conformance.md"):
        if kind == "console":
            console(text, installed)
    assert "adam" in (installed / "mychip.html").read_text()


def test_the_engine_of_the_page_trains(project):  # noqa: F811
    names = {}
    exec(compile(code("docs/engines.md")[0], "docs/engines.md", "exec"), names)
    folder, data = project
    train = ot.prepare(folder / "model.onnx", loss="cross_entropy", optimizer=ot.SGD(lr=0.1))
    native, other = ot.Trainer(train), ot.Trainer(train, engine=names["Engine"]())
    image = next(i["name"] for i in train.info["inputs"])
    with contextlib.chdir(folder):
        for k in range(2):
            feeds = {image: data["x"][4 * k:4 * k + 4], "label": data["y"][4 * k:4 * k + 4]}
            assert other.step(feeds).loss == pytest.approx(native.step(feeds).loss, abs=1e-4)
    assert os.path.exists(pathlib.Path(folder) / "model.onnx")
