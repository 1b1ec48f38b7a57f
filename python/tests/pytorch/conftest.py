"""Everything here needs PyTorch. Where it cannot be installed, every file counts as one skipped test that says so."""

import importlib.util

import pytest

MISSING = [n for n in ("torch", "onnx") if importlib.util.find_spec(n) is None]
REASON = f"the PyTorch road needs {', '.join(MISSING)}: pip install onnxtrain[torch]"


class SkippedFile(pytest.Module):
    def collect(self):
        pytest.skip(REASON, allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    return SkippedFile.from_parent(parent, path=module_path) if MISSING else None
