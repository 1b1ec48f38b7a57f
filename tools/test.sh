#!/usr/bin/env bash
# Every suite, one after the other; at the end a line for each. Exit 1 when one failed.
# Usage: tools/test.sh [SUITE...]      lint, cpp, python, tensorflow, flower; all of them unless told
# Arguments for pytest: PYTEST_ARGS. What this machine cannot have (tools/setup.sh says why) counts as skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
suites=("$@")
((${#suites[@]})) || suites=(lint cpp python tensorflow flower)
summary=() failures=0

# what SUITE COMMAND...: runs it, remembers result, time and its own last summary line
run() {
  local suite=$1 start=$SECONDS log result=ok
  shift
  log=$(mktemp)
  printf '\n== %s\n' "$suite"
  "$@" 2>&1 | tee "$log"
  if ((PIPESTATUS[0])); then
    result=FAILED
    ((++failures))
  fi
  summary+=("$(printf '%-11s %-8s %5d s  %s' "$suite" "$result" $((SECONDS - start)) \
    "$(grep -E '^(lint: |100% tests passed|[0-9]+% tests passed|.*[0-9]+ (passed|failed|skipped|error)[^/]* in [0-9.]+s)' "$log" |
      tail -1 | sed -E 's/^=+ | =+$//g')")")
  rm -f "$log"
}
skip() { summary+=("$(printf '%-11s %-8s %7s  %s' "$1" skipped "" "$2")"); }

for suite in "${suites[@]}"; do
  case $suite in
    lint)
      if tools/setup.sh build lint; then run lint tools/lint.sh --changed --most 96; else skip lint "its tools cannot be installed here"; fi
      ;;
    cpp) run cpp ctest --test-dir build/release --output-on-failure -j 2 ;;
    python)
      # shellcheck disable=SC2086
      run python .venv/bin/python -m pytest -n 2 ${PYTEST_ARGS:-}
      [[ -e .venv/.missing-torch ]] && skip pytorch "$(tail -1 .venv/.missing-torch)"
      ;;
    tensorflow)
      if [[ -e .venv/.missing-tensorflow ]]; then
        skip tensorflow "$(tail -1 .venv/.missing-tensorflow)"
      else
        # shellcheck disable=SC2086
        run tensorflow .venv-tf/bin/python -m pytest -n 2 ${PYTEST_ARGS:-} python/tests/keras3 python/tests/tf
      fi
      ;;
    flower)
      if folder=$(tools/environment.sh flower 2> >(tee build/.missing-flower >&2)); then
        # shellcheck disable=SC2086
        run flower env PYTHONPATH="$PWD/python" "$folder/bin/python" -m pytest -n 2 ${PYTEST_ARGS:-} python/tests/flower
      else
        skip flower "$(tail -1 build/.missing-flower)"
      fi
      ;;
    *) echo "test: there is no suite '$suite' (lint cpp python tensorflow flower)" >&2; exit 2 ;;
  esac
done

printf '\n'
for line in "${summary[@]}"; do echo "test: $line"; done
if ((failures)); then
  echo "test: $failures of ${#summary[@]} suites FAILED, $SECONDS s"
  exit 1
fi
echo "test: no suite failed, $SECONDS s"
