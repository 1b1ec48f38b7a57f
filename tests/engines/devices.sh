#!/usr/bin/env bash
# make figures-devices: examples/microcontroller on every processor whose compiler and emulator are installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
EMX_ONNX_CGEN=$(tools/environment.sh engines)/bin/emx-onnx-cgen .venv/bin/python examples/microcontroller/run.py "$@"
