#!/usr/bin/env bash
# Everything that reads the sources without running them: ruff, clang-format, who includes whom, the shape of the code, clang-tidy.
# Usage: tools/lint.sh              clang-tidy over every C++ source
#        tools/lint.sh --changed    clang-tidy over those that differ from what tools/tidy-clean.txt records as clean
#                                   (--most N: at most N of them)
#        tools/lint.sh --record     with either: writes what is clean into that file
# All five run; exit 1 when one of them found something.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=()
step() {
  local name=$1
  shift
  "$@" || failed+=("$name")
}
step ruff .venv/bin/ruff check --quiet .
step format tools/format.sh --check
step layers .venv/bin/python tools/check_layers.py
step code .venv/bin/python tools/check_code.py
log=$(cmake --preset lint 2>&1) || { echo "$log"; exit 1; }
step clang-tidy .venv/bin/python tools/tidy.py "$@"
if ((${#failed[@]})); then
  echo "lint: failed: ${failed[*]}"
  exit 1
fi
echo "lint: ruff, format, layers, code and clang-tidy found nothing"
