#!/usr/bin/env bash
# Speed beside other engines, interleaved in one run; what is not installed is left out with a line.
# 1. float32 inference beside onnxruntime (bench/inference.py)
# 2. whole training steps beside PyTorch, JAX, TensorFlow and ONNX Runtime Training: the runner of nine workloads in
#    ONNXTRAIN_WORKLOADS (default ../shared/bench), its peers in virtual environments that its setup.sh makes.
# Arguments go to that runner, e.g.  tools/bench.sh --peers torch,ours --workloads W1,W4
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
.venv/bin/python bench/inference.py

workloads=${ONNXTRAIN_WORKLOADS:-../shared/bench}
venvs=${PERF_VENVS:-$HOME/.cache/onnxtrain-perf}
if [[ ! -f $workloads/run.py ]]; then
  echo "training workloads: left out, there is no runner in $workloads (ONNXTRAIN_WORKLOADS=FOLDER)"
  exit 0
fi
peers=ours
for peer in torch jax tf ort; do
  if [[ -x $venvs/v_$peer/bin/python ]]; then peers=$peer,$peers; else echo "peer $peer: left out, no $venvs/v_$peer (bash $workloads/setup.sh makes it)"; fi
done
runner=$venvs/v_torch/bin/python
[[ -x $runner ]] || { echo "training workloads: left out, the runner needs PyTorch in $venvs/v_torch"; exit 0; }
[[ -d $venvs/onnx ]] || (cd "$workloads" && "$runner" export_onnx.py)
cd "$workloads"
ONNXTRAIN_PY=$root/.venv/bin/python "$runner" run.py --peers "$peers" --threads 2 --out "$root/build/bench" "$@"
