#!/usr/bin/env bash
# The tests of a converter with other versions of its framework: make test-versions. Outside `make test`.
# Usage: tools/versions.sh [FRAMEWORK]        all unless told
# A version more: a line below. `beside`: the package alone is installed into the machine's cache and comes first on
# the path of .venv or .venv-tf; `alone`: an environment of its own, with everything that the packages ask for.
set -uo pipefail
cd "$(dirname "$0")/.."

# framework | beside WHAT, or alone | requirements | tests
table='
sklearn | beside .venv    | scikit-learn==1.7.2 | python/tests/scikit
sklearn | beside .venv    | scikit-learn==1.8.0 | python/tests/scikit
keras   | beside .venv-tf | keras==3.10.0 | python/tests/keras3
keras   | beside .venv-tf | keras==3.11.3 | python/tests/keras3
keras   | beside .venv-tf | keras==3.12.4 | python/tests/keras3
keras   | beside .venv-tf | keras==3.13.2 | python/tests/keras3
keras   | beside .venv-tf | keras==3.14.1 | python/tests/keras3
tf      | alone           | tensorflow-cpu==2.18.1 keras==3.10.0 | python/tests/keras3 python/tests/tf
torch   | alone           | torch==2.9.1 onnx==1.23.2 onnxruntime==1.31.1 onnxscript==0.7.2 | python/tests/pytorch
torch   | alone           | torch==2.15.0 onnx==1.23.2 onnxruntime==1.31.1 onnxscript==0.7.2 | python/tests/pytorch
'
cache=${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}
failed=0

install() { # folder, python, arguments of pip
  [[ -e $1/.complete ]] && return
  "$2" -m pip install -q --disable-pip-version-check --no-compile "${@:3}" && touch "$1/.complete"
}

while IFS='|' read -r framework where requirements tests; do
  framework=${framework// /}
  [[ -n $framework && (-z ${1:-} || $1 == "$framework") ]] || continue
  read -ra where <<<"$where"
  read -ra requirements <<<"$requirements"
  read -ra tests <<<"$tests"
  folder=$cache/version-$(IFS=+; echo "${requirements[*]}")
  [[ -e $folder/.complete ]] || rm -rf "$folder"
  if [[ ${where[0]} == beside ]]; then
    python=${where[1]}/bin/python path=$folder
    install "$folder" .venv/bin/python --no-deps --target "$folder" "${requirements[@]}"
  else
    python=$folder/bin/python path=python
    [[ -e $folder/.complete ]] || .venv/bin/python -m venv "$folder"
    install "$folder" "$python" "${requirements[@]}" pytest==9.2.0 pytest-xdist==3.8.0
  fi || { echo "versions: ${requirements[*]} cannot be installed"; failed=1; continue; }
  echo "== ${requirements[*]}: ${tests[*]}"
  PYTHONPATH=$path "$python" -m pytest -q -n "${WORKERS:-2}" -p no:cacheprovider "${tests[@]}" </dev/null || failed=1
done <<<"$table"
exit $failed
