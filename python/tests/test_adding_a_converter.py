"""docs/adding-a-converter.md says what is so: its files exist, its code runs, the shared parts import no framework, and
the small converter works where its files are added to a copy of the package."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import onnxtrain as ot
from onnxtrain import _native, graph

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding-a-converter.md").read_text()
FILE = re.compile(r"^`python/onnxtrain/([\w/]+\.py)`:\n\n```python\n(.*?)^```", re.M | re.S)  # to be added
PACKAGE = ROOT / "python" / "onnxtrain"
FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "sklearn")


def test_files_exist():
    named = set(re.findall(r"`((?:python|converters|include)/[\w/]+(?:\.\w+|/))`", FILE.sub("", PAGE)))
    assert len(named) > 15
    for name in named:
        path = PACKAGE / name if name.startswith("converters/") else ROOT / name
        assert path.exists(), name
    halves = FILE.sub("", PAGE).split("## From a framework to a file")[1].split("## From a file to a framework")
    for text, folder in zip(halves, ("from_torch", "to_torch"), strict=True):
        for name in re.findall(r"(?<![\w/])`(\w+(?:\.py|/))`", text):
            assert (PACKAGE / "torch" / folder / name).exists(), f"{folder}/{name}"


def test_every_shared_part_is_named():
    for path in (PACKAGE / "converters").glob("[!_]*.py"):
        assert f"converters/{path.name}" in PAGE, path.name


def test_code_runs():
    found = re.findall(r"^```python\n(.*?)^```", FILE.sub("", PAGE), re.M | re.S)
    assert found
    for text in found:
        exec(compile(text, "docs/adding-a-converter.md", "exec"), {})


def test_the_small_converter(tmp_path):
    """The page's files in a copy of the package; nothing else is changed."""
    package = tmp_path / "onnxtrain"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for library in PACKAGE.rglob("*.so"):
        (package / library.relative_to(PACKAGE)).symlink_to(library)
    files = FILE.findall(PAGE)
    assert len(files) == 3  # as the page says
    for name, text in files:
        (package / name).parent.mkdir(exist_ok=True)
        assert not (package / name).exists()
        (package / name).write_text(text)
    script = re.search(r"^```python script\n(.*?)^```", PAGE, re.M | re.S)[1]
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(tmp_path)}, cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "there is no form for the layer 'tanh'" in done.stdout and "layers[1]" in done.stdout


@pytest.mark.parametrize("path", [PACKAGE / "graph.py", *sorted((PACKAGE / "converters").glob("*.py"))],
                         ids=lambda p: p.stem)
def test_shared_parts_import_no_framework(path):
    names = re.findall(r"^\s*(?:from|import) ([\w.]+)", path.read_text(), re.M)
    assert not [n for n in names if n.split(".")[0] in FRAMEWORKS or n.startswith("..torch")], path.name


def test_nothing_of_a_framework_is_imported_early():
    code = ("import sys, onnxtrain, onnxtrain.graph, onnxtrain.torch; "
            f"assert not [m for m in {FRAMEWORKS!r} if m in sys.modules]")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_form_of_the_json():
    """Every key of the C API's JSON stands in the page."""
    text = """
    <ir_version: 10, opset_import: ["" : 22]>
    g (float[n, 3] x, bool b) => (float[n, 3] y)
    <float[3] w = {1, 2, 3}>
    {
      h = If (b) <then_branch = yes () => (float[n, 3] a) { a = Mul (x, w) },
                  else_branch = no () => (float[n, 3] c) { c = LeakyRelu <alpha = 0.5> (x) }>
      y = Transpose <perm = [0, 1]> (h)
    }
    """
    j = json.loads(_native.graphs(ot.prepare(ot.parse(text), loss="mse")._m, None).json())
    keys = set()

    def visit(x, data=False):
        for k, v in x.items() if isinstance(x, dict) else []:
            if not data:
                keys.add(k)
            visit(v, k in ("types", "attributes", "metadata", "opsets"))
        for v in x if isinstance(x, list) else []:
            visit(v)

    visit(j)
    assert {"captures", "update_binding", "types"} <= keys
    missing = [k for k in keys if f'"{k}"' not in PAGE and f"`{k}`" not in PAGE]
    assert not missing


def test_graphs_of_a_training():
    text = "<ir_version: 10, opset_import: [\"\" : 22]>\ng (float[n, 3] x) => (float[n, 2] y)\n" \
           "<float[3, 2] w = {1, 2, 3, 4, 5, 6}>\n{\n  y = MatMul (x, w)\n}\n"
    model = ot.prepare(ot.parse(text), loss="mse", optimizer=ot.Adam())
    whole = graph.read_graphs(model)
    section = whole.sections[0]
    assert "w" in section.update and "T" in section.update
    adam = next(n for n in section.algorithm.nodes if n.op == "Adam")
    assert adam.domain == graph.OWN and whole.signatures[adam.kind][0] == "R"
    bodies = graph.read_graphs(model, kept=[(graph.TRAINING, "Gradient")]).sections[0].algorithm
    assert {n.domain for n in bodies.nodes} == {"", graph.TRAINING}
    assert bodies.constants[section.update and "T"] == 0
    value = section.update["w"]
    assert any(value in n.outputs for n in bodies.nodes)
    model.parameters["w"] = model.parameters["w"] * 2
    assert (graph.read_graphs(model).main.constants["w"] == [[2, 4], [6, 8], [10, 12]]).all()
