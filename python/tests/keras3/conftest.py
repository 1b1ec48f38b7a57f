"""Runs in .venv-tf, where Keras is (tools/test.sh tensorflow); not collected in .venv."""

import importlib.util
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if importlib.util.find_spec("tensorflow") is None:
    collect_ignore_glob = ["test_*.py"]
