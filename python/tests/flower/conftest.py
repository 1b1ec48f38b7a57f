"""Tests with Flower, in the environment of tools/requirements-flower.txt (tools/test.sh flower)."""

import importlib.util

if importlib.util.find_spec("flwr") is None:
    collect_ignore_glob = ["test_*.py"]
