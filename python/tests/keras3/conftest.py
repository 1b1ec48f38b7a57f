"""Runs in .venv-tf, where Keras is (tools/test.sh tensorflow); not collected in .venv. The models are those of the
figures (tests/with_keras)."""

import importlib.util
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "tests", "with_keras"))
if importlib.util.find_spec("tensorflow") is None:
    collect_ignore_glob = ["test_*.py"]
