#!/usr/bin/env bash
# The tests of a converter with other versions of its framework: make test-versions. Outside `make test`.
# Usage: tools/versions.sh [FRAMEWORK]        all unless told
# A version more: a line below. The package alone is installed into the machine's cache and comes first on the path.
set -uo pipefail
cd "$(dirname "$0")/.."

# framework | requirement | tests
table='
sklearn | scikit-learn==1.7.2 | python/tests/scikit
sklearn | scikit-learn==1.8.0 | python/tests/scikit
'
cache=${ONNXTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/onnxtrain}
failed=0
while IFS='|' read -r framework requirement tests; do
  framework=${framework// /} requirement=${requirement// /} tests=${tests// /}
  [[ -n $framework && ( -z ${1:-} || $1 == "$framework" ) ]] || continue
  folder=$cache/version-$requirement
  if [[ ! -e $folder/.complete ]]; then
    rm -rf "$folder"
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --target "$folder" "$requirement" &&
      touch "$folder/.complete" || { echo "versions: $requirement cannot be installed"; failed=1; continue; }
  fi
  echo "== $requirement: $tests"
  PYTHONPATH=$folder .venv/bin/python -m pytest -q -n 2 -p no:cacheprovider "$tests" </dev/null || failed=1
done <<<"$table"
exit $failed
