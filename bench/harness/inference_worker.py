"""One engine of bench/inference.py:  inference_worker.py ENGINE MODEL FEEDS.npz THREADS RESULT.npy

Writes its result, then answers every line (seconds of a round) with seconds per run.
"""

import json
import sys
import time

import numpy as np


def runner(engine, model, feeds, threads):
    """-> a function that runs the model once and gives its first output"""
    if engine == "onnxtrain":
        import onnxtrain as ot

        session = ot.Session(model, threads=threads)
        return lambda: next(iter(session.run(feeds).values()))
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)[0]


def main(engine, model, feeds, threads, result):
    run = runner(engine, model, dict(np.load(feeds)), int(threads))
    np.save(result, run())
    for line in sys.stdin:
        seconds, spent, n, start = float(line), 0.0, 0, time.perf_counter()
        while spent <= seconds:
            run()
            n += 1
            spent = time.perf_counter() - start
        print(json.dumps(spent / n), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
