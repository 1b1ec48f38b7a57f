#!/usr/bin/env bash
# Speed beside other engines, interleaved in one run; what is not installed is left out with a line.
# 1. float32 inference beside onnxruntime (bench/inference.py)
# 2. whole training steps of nine workloads beside PyTorch, JAX, TensorFlow and ONNX Runtime (bench/run.py; bench/setup.sh
#    installs them). Arguments go there, e.g.  tools/bench.sh --peers torch,onnxtrain --workloads W1,W4
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/python bench/inference.py
.venv/bin/python bench/run.py "$@"
