#!/usr/bin/env bash
# Both tables of docs/sklearn.md, one after the other.
set -uo pipefail
python=.venv/bin/python
failed=0
$python tests/scikit/pipelines.py || failed=1
$python tests/scikit/trajectories.py "$@" || failed=1
exit $failed
