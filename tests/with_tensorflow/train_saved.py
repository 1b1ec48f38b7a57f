"""Trains SavedModels that `ot.to_tf` wrote, in a process that has no onnxtrain. Prints the losses as JSON.

    python -S train_saved.py FOLDER_OF_THE_PACKAGE_TENSORFLOW FOLDER ...
"""

import json
import os
import re
import sys

sys.path.insert(0, sys.argv[1])
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def main():
    result = {}
    for folder in sys.argv[2:]:
        loaded = tf.saved_model.load(folder)
        stored = np.load(os.path.join(folder, "feeds.npz"))
        steps = sorted(n for n in dir(loaded) if re.fullmatch(r"train_step_\d+", n)) or ["train_step"]
        losses = []
        for k in range(1 + max(int(n.split("/")[0]) for n in stored)):
            given = {re.sub(r"\W", "_", n.split("/", 1)[1]): stored[n] for n in stored if n.startswith(f"{k}/")}
            for name in steps:
                step = getattr(loaded, name)
                takes = [s.name for s in tf.nest.flatten(step.concrete_functions[0].structured_input_signature)]
                losses.append(float(step(**{n: tf.constant(v) for n, v in given.items() if n in takes})["loss"]))
        result[folder] = losses
    print(json.dumps(result))


if __name__ == "__main__":
    try:
        import onnxtrain  # noqa: F401
    except ImportError:
        main()
    else:
        sys.exit("onnxtrain is on the path")
