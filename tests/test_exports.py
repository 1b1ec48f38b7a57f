"""Our shared objects export their own names only, so no other library can clash with them."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in out.stdout.splitlines()}


def test_shared_library_exports_only_the_c_api():
    names = exported(ROOT / "build/release/libonnxtrain.so")
    assert names
    assert [n for n in names if not n.startswith("ot_")] == []


def test_python_module_exports_only_its_entry_point():
    [path] = (ROOT / "python/onnxtrain").glob("_native*.so")
    assert exported(path) == {"PyInit__native"}


@pytest.mark.parametrize("name", ["onnxtrain", "libonnxtrain.so"])
def test_no_second_protobuf_or_openmp(name):
    out = subprocess.run(["ldd", ROOT / "build/release" / name], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in out.stdout.splitlines()]
    assert not [n for n in names if "protobuf" in n or "onnx." in n]
    assert len([n for n in names if "omp" in n]) <= 1
    assert "not found" not in out.stdout
