#!/usr/bin/env bash
# clang-format over every C++ and C file that git knows or would know. --check: only look.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[[ ${1:-} == --check ]] && mode=(--dry-run -Werror)
mapfile -d '' files < <(git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.hpp' '*.h' '*.c')
kept=()
for f in "${files[@]}"; do [[ -f $f ]] && kept+=("$f"); done
((${#kept[@]} == 0)) || clang-format-14 "${mode[@]}" --style=file "${kept[@]}"
echo "format: ${#kept[@]} files"
