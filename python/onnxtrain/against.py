"""Measures one model in several runtimes, in interleaved rounds. `onnxtrain bench --against` starts it:

    python -m onnxtrain.against spec.json result.json

The specification names peers, threads, seconds and parts (inference, training: a model, its feeds, and for training the
step as an ordinary inference model). The result has, per part and runtime, the median, least and most milliseconds per
step, and how many times faster onnxtrain is; or why a runtime was left out.
"""

import importlib.util
import json
import statistics
import sys
import time

import numpy as np

ROUNDS = 7


def _ours(part, feeds, threads, training):
    from . import Session, Trainer

    if training:
        trainer = Trainer(part["model"], threads=threads)
        return lambda: trainer.step(feeds)
    session = Session(part["model"], threads=threads)
    return lambda: session.run(feeds)


def _torch(part, feeds, threads, training):
    import torch

    from . import to_torch

    torch.set_num_threads(threads)
    made = to_torch(part["model"])
    tensors = {name: torch.from_numpy(v) for name, v in feeds.items()}
    if training:
        made.module.train()
        return lambda: made.step(tensors)
    made.module.eval()

    def run():
        with torch.inference_mode():
            made.module(**tensors)

    return run


def _ort_session(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _ort(part, feeds, threads, training):
    if not training:
        session = _ort_session(part["model"], threads)
        return lambda: session.run(None, feeds)
    return _ort_step(part, feeds, threads)


def _ort_step(part, feeds, threads):
    """The lowered step; results are bound to the inputs of the next step, so that no state is copied."""
    import onnxruntime

    from . import Trainer

    flat = part["flat"]
    if "left_out" in flat:
        raise RuntimeError(flat["left_out"])
    session = _ort_session(flat["model"], threads)
    trainer = Trainer(part["model"], threads=threads)
    binding = session.io_binding()
    for i in session.get_inputs():
        if i.name not in feeds and i.name not in trainer.state:
            raise RuntimeError(f"its input '{i.name}' is neither data nor state")
        value = feeds[i.name] if i.name in feeds else np.asarray(trainer.state[i.name])
        binding.bind_ortvalue_input(i.name, onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value)))
    inputs = {i.name for i in session.get_inputs()}
    outputs = [o.name for o in session.get_outputs()]
    carried = {output: state for state, output in flat["bindings"] if state in inputs}

    def step():
        for name in outputs:
            binding.bind_output(name)
        session.run_with_iobinding(binding)
        for name, value in zip(outputs, binding.get_outputs()):
            if name in carried:
                binding.bind_ortvalue_input(carried[name], value)

    return step


_PEERS = {"torch": (_torch, "torch", "torch"), "ort": (_ort, "onnxruntime", "onnxruntime")}


def _runners(part, peers, threads, training):
    with np.load(part["feeds"]) as file:
        feeds = {name: file[name] for name in file.files}
    ready, left_out = {"onnxtrain": _ours(part, feeds, threads, training)}, {}
    for name in peers:
        build, package, pip = _PEERS[name]
        if importlib.util.find_spec(package) is None:
            left_out[name] = (
                f"not installed in {sys.executable} (pip install {pip}; ONNXTRAIN_PYTHON names another interpreter)"
            )
            continue
        try:
            run = build(part, feeds, threads, training)
            run()
            ready[name] = run
        except Exception as e:  # a peer that cannot run this model is a line in the table, not the end
            left_out[name] = " ".join(str(e).split())[:300]
    return ready, left_out


def _round(run, seconds):
    steps, begun = 0, time.perf_counter()
    while True:
        run()
        steps += 1
        spent = time.perf_counter() - begun
        if spent >= seconds:
            return spent / steps * 1e3


def measure(part, peers, threads, seconds, training):
    ready, left_out = _runners(part, peers, threads, training)
    for run in ready.values():
        _round(run, seconds / ROUNDS)  # warm-up
    times = {name: [] for name in ready}
    for k in range(ROUNDS):
        order = list(ready) if k % 2 == 0 else list(ready)[::-1]
        for name in order:
            times[name].append(_round(ready[name], seconds / ROUNDS))
    found = {name: {"ms": statistics.median(t), "ms_least": min(t), "ms_most": max(t)} for name, t in times.items()}
    for name, row in found.items():
        if name != "onnxtrain":
            row["ratio"] = row["ms"] / found["onnxtrain"]["ms"]
    return {**found, **{name: {"left_out": why} for name, why in left_out.items()}}


def main(argv):
    with open(argv[0]) as file:
        spec = json.load(file)
    found = {name: measure(part, spec["peers"], spec["threads"], spec["seconds"], name == "training")
             for name, part in spec["parts"].items()}
    with open(argv[1], "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1:])
