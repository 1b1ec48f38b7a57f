"""Files of a workload for engines that read ONNX: model.onnx, x.npy, label.npy, batch.npz (both together).

Kept under build/bench/models until a definition changes; needs onnx and numpy, no framework.
"""

import hashlib
import os
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FOLDER = Path(os.environ.get("ONNXTRAIN_BENCH_MODELS", HERE.parent.parent / "build/bench/models"))


def fingerprint():
    """Of everything that decides what is written."""
    sources = [*sorted(HERE.glob("*.py")), HERE.parent / "harness/graph.py"]
    return hashlib.sha256(b"".join(p.read_bytes() for p in sources)).hexdigest()


def folder_of(workload):
    variant = "" if workload.dropout else "-plain"
    return FOLDER / f"{workload.id}{variant}"


def write(workload):
    """-> the folder, with its files written unless they are up to date."""
    folder = folder_of(workload)
    stamp, now = folder / "fingerprint", fingerprint()
    if stamp.exists() and stamp.read_text() == now:
        return folder
    import onnx

    from workloads.onnx_layers import onnx_model

    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    model = onnx_model(workload)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / "model.onnx")
    x, label = workload.data()
    np.save(folder / "x.npy", x)
    np.save(folder / "label.npy", label)
    np.savez(folder / "batch.npz", x=x, label=label)
    stamp.write_text(now)
    return folder
