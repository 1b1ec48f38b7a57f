"""Shared by all Python tests: every pass is checked for damage to the graph, here and in the programs that tests start."""

import os

os.environ.setdefault("ONNXTRAIN_VERIFY_PASSES", "1")
