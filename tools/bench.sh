#!/usr/bin/env bash
# Runs the C++ benchmarks (bench/**/*_bench.cpp) and then bench/run.py, those that exist.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -x build/release/onnxtrain_bench ]]; then build/release/onnxtrain_bench; fi
if [[ -f bench/run.py ]]; then .venv/bin/python bench/run.py "$@"; fi
