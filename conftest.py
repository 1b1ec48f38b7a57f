"""Shared by all Python tests: every pass is checked for damage to the graph, in started programs too."""

import os

os.environ.setdefault("ONNXTRAIN_VERIFY_PASSES", "1")
