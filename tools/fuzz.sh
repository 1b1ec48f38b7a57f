#!/usr/bin/env bash
# Runs every fuzzer of build/fuzz for SECONDS each. Seeds: tests/fuzz/NAME/. What it finds goes
# to build/fuzz/corpus/NAME (grows over runs) and build/fuzz/crash-NAME-*.
# Usage: tools/fuzz.sh SECONDS [NAME...]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
shopt -s nullglob
fuzzers=("${@/#/build/fuzz/fuzzers/}")
((${#fuzzers[@]})) || fuzzers=(build/fuzz/fuzzers/*)
for fuzzer in "${fuzzers[@]}"; do
  name=$(basename "$fuzzer")
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  if [[ -d tests/fuzz/$name ]]; then seeds=("tests/fuzz/$name"); fi
  echo "fuzz: $name for $seconds s"
  "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/crash-$name-" "$corpus" "${seeds[@]}"
done
echo "fuzz: ${#fuzzers[@]} targets, no findings"
