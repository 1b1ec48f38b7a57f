#!/usr/bin/env bash
# clang-tidy over the sources of src/ and python/src, two at a time; warnings are errors.
# Usage: tools/lint.sh [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
files=("$@")
if ((${#files[@]} == 0)); then
  mapfile -t files < <(find src python/src -name '*.cpp' | sort)
fi
# GCC's own flags that clang does not know are dropped from the compile commands.
mkdir -p build/lint
sed -E 's/ -Wno-(restrict|stringop-over[a-z]+|maybe-uninitialized)//g; s/ -fopenmp//g' \
  build/release/compile_commands.json >build/lint/compile_commands.json
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-14 --quiet -p build/lint --extra-arg=-Wno-unknown-pragmas 2> >(grep -v 'warnings\? generated' >&2)
echo "lint: ${#files[@]} files"
