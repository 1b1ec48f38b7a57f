"""With `semantics` fixed, the same file from every backend of Keras: digests of graph and tensors, one row per model.

    .venv-tf/bin/python tests/with_keras/backend_table.py [MODEL...]
"""

import os
import subprocess
import sys

import backends

MODELS = ["mlp", "regularized", "constrained", "cnn_same", "cnn_batchnorm", "residual", "bag_of_words", "lstm", "gru",
          "lstm_masked_left", "transformer", "two_in_two_out", "own_layers"]
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "same_file.py")


def digests(backend, models):
    python = sys.executable if backend == "tensorflow" else backends.interpreter()
    done = subprocess.run([python, SCRIPT, "dense", *models], env=backends.environment(backend), text=True,
                          capture_output=True)
    lines = [line.split(" ", 1) for line in done.stdout.splitlines() if " " in line]
    found = dict(lines)
    return {m: found.get(m, "failed: " + done.stderr.strip()[-200:]) for m in models}


def table(models, names=("numpy", "jax", "torch", "tensorflow")):
    by = {b: digests(b, models) for b in names}
    same = 0
    for m in models:
        values = [by[b][m] for b in names]
        real = {v for v in values if not v.startswith(("refused", "failed"))}
        same += len(real) == 1 and len([v for v in values if v in real]) == len(names)
        print(f"{m:20s}" + "  ".join(f"{b} {by[b][m][:60]}" for b in names), flush=True)
    print(f"the same file from {', '.join(names)}: {same} of {len(models)}")
    return same


if __name__ == "__main__":
    sys.exit(table(sys.argv[1:] or MODELS) < len(sys.argv[1:] or MODELS))
