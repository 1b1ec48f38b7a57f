#!/usr/bin/env bash
# Installs the frameworks that bench/run.py compares with, outside the checkout: one virtual environment each, because
# their versions of numpy and protobuf clash. Usage:
#   bench/setup.sh                # all of them, about 3.5 GB
#   bench/setup.sh torch jax      # some
# ONNXTRAIN_BENCH_VENV names another folder (default ${XDG_CACHE_HOME:-~/.cache}/onnxtrain/bench-venv). What is there
# already stays as it is; remove an environment's folder to have it made again.
set -uo pipefail
root=${ONNXTRAIN_BENCH_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain/bench-venv}
python=${PYTHON:-python3}

# Packages of each environment; every line of them is one call of pip, in this order.
packages_of() {
  case $1 in
    torch) echo "torch==2.13.0"; echo "numpy" ;;  # torch alone and first
    jax) echo "jax==0.10.2 jaxlib==0.10.2" ;;
    tf) echo "tensorflow-cpu==2.21.*" ;;
    ort) echo "onnxruntime-training-cpu==1.19.2"; echo "numpy<2 onnx==1.16.2" ;;
    *) return 1 ;;
  esac
}

install() {
  local folder=$root/$1 log=$root/$1.log line
  [[ -e $folder/.installed ]] && { echo "$1: already in $folder"; return 0; }
  mkdir -p "$root"
  rm -rf "$folder"
  "$python" -m venv "$folder" >"$log" 2>&1 || { echo "$1: no virtual environment, see $log"; return 1; }
  while read -r line; do
    # shellcheck disable=SC2086  # a line names several packages
    "$folder/bin/pip" install -q --disable-pip-version-check --progress-bar off $line >>"$log" 2>&1 ||
      { echo "$1: pip install $line failed, see $log"; return 1; }
  done < <(packages_of "$1")
  touch "$folder/.installed"
  echo "$1: installed in $folder ($(du -sm "$folder" | cut -f1) MB)"
}

names=("$@")
((${#names[@]})) || names=(torch jax tf ort)
failed=0
for name in "${names[@]}"; do
  packages_of "$name" >/dev/null || { echo "unknown environment '$name' (known: torch jax tf ort)"; exit 2; }
done
for name in "${names[@]}"; do install "$name" || failed=1; done
exit $failed
