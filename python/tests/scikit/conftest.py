"""Everything here needs scikit-learn. Where something is missing, every file is one skipped test that says so."""

import importlib.util

import pytest

MISSING = [n for n in ("sklearn", "pandas", "skl2onnx", "onnx", "onnxruntime") if importlib.util.find_spec(n) is None]


class SkippedFile(pytest.Module):
    def collect(self):
        pytest.skip(f"the scikit-learn road needs {', '.join(MISSING)}", allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    return SkippedFile.from_parent(parent, path=module_path) if MISSING else None
