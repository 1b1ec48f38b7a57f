#!/usr/bin/env bash
# A virtual environment with the packages of tools/requirements-NAME.txt, made once per machine and shared by
# all checkouts: PyTorch and TensorFlow are large, and a fresh clone starts warm.
# Usage: tools/environment.sh NAME      prints its folder as the only line on stdout; exit 1 and one line on stderr
#                                       when it cannot be made (no network, no wheel for this machine)
# The paragraphs of the requirements file are installed one after the other, held to the versions of
# requirements-build.txt and requirements-test.txt where the file says `# with: build test`.
#
# Cache: ${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}/env-NAME-KEY
# KEY covers the requirements and the interpreter. Two at once: the second waits. See docs/decisions/0069.
set -euo pipefail
name=${1:?name of a requirements file}
here=$(cd "$(dirname "$0")" && pwd)
file=$here/requirements-$name.txt
python=$here/../.venv/bin/python
say() { printf 'environment: %s\n' "$*" >&2; }

held=()
for other in $(sed -n 's/^# with: //p' "$file"); do held+=("$here/requirements-$other.txt"); done
key=$({ cat "$file" "${held[@]}" | grep -v '^#'; "$python" -c 'import sys; print(sys.version, sys.base_prefix)'; } | sha256sum | cut -c1-12)
cache=${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}
folder=$cache/env-$name-$key

install() {
  say "$name is not on this machine; installing tools/requirements-$name.txt into $folder (minutes, once)"
  local start=$SECONDS part
  rm -rf "$folder"
  "$python" -m venv "$folder" >"$log" 2>&1 || fail
  awk -v folder="$parts" 'BEGIN { RS = ""; } { print > sprintf("%s/%02d.txt", folder, NR) }' "$file"
  for part in "$parts"/*.txt; do
    PIP_CONSTRAINT=$(IFS=' '; echo "${held[*]}") "$folder/bin/python" -m pip install --disable-pip-version-check -q \
      --progress-bar off --no-compile -r "$part" >>"$log" 2>&1 </dev/null || fail
  done
  touch "$folder/.complete"
  say "$name is there, $((SECONDS - start)) s"
}
fail() {
  rm -rf "$folder"
  say "$name cannot be installed: $(grep -m1 -iE '^ERROR' "$log" || tail -1 "$log") (all of it: $log)"
  exit 1
}

if [[ ! -e $folder/.complete ]]; then
  log=$cache/env-$name-$key.log
  parts=$(mktemp -d)
  trap 'rm -rf "$parts"' EXIT
  mkdir -p "$cache"
  exec 9>"$cache/.env-$name-$key.lock"
  flock -n 9 || { say "another build is making $name; waiting"; flock 9; }
  [[ -e $folder/.complete ]] || install
fi
echo "$folder"
