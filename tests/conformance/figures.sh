#!/usr/bin/env bash
# make figures-conformance: the ONNX backend suite, then the suite for ONNX Training on every engine.
set -euo pipefail
cd "$(dirname "$0")/../.."
.venv/bin/python tests/conformance/suite.py
.venv/bin/python tests/conformance/training_figures.py "$@"
