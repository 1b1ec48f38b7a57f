"""Everything here needs PyTorch, which is not among the test requirements: without it these tests say so and skip."""

import importlib.util

MISSING = [n for n in ("torch", "onnx") if importlib.util.find_spec(n) is None]
REASON = f"the PyTorch road needs {', '.join(MISSING)}: pip install onnxtrain[torch]"

if MISSING:
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header(config):
    return REASON if MISSING else None
