"""Time of a step in ONNX Runtime by form, interleaved: compact, portable, portable --for onnxruntime.

    python tests/engines/speed.py [NAME ...]

One thread, fixed batch, state and outputs bound (IOBinding) as the engine does. Rounds of 10 steps of every form in
turn; the median of the ratios to compact over 15 rounds, and the median time of a step in ms. Time is the thread's
processor time: other programs on the machine do not count."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parent))
import figures  # noqa: E402
import worker  # noqa: E402

FORMS = {"compact": ("compact", None), "portable": ("portable", None), "for onnxruntime": ("portable", "onnxruntime")}
ROUNDS, STEPS = 15, 10


def bound(session, feeds):
    """A step on values that are there already, outputs where the runtime puts them."""
    binding = session.io_binding()
    for k, v in feeds.items():
        binding.bind_ortvalue_input(k, onnxruntime.OrtValue.ortvalue_from_numpy(v))
    for o in session.get_outputs():
        binding.bind_output(o.name)
    return lambda: session.run_with_iobinding(binding)


def steps(name, folder):
    """{form: a function that makes one step of every section}"""
    out = {}
    for form, (how, runtime) in FORMS.items():
        here = Path(folder) / form.replace(" ", "_")
        here.mkdir()
        figures.write(name, "dynamo", True, here, how, runtime)
        manifest = figures.json.loads((here / "step.manifest.json").read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        data = np.load(here / "feeds.npz")
        given = worker.safetensors(here / manifest["state"]["file"])
        given |= {k.split("/", 1)[1]: data[k] for k in data.files if k.startswith("0/")}
        parts = []
        for section in manifest["sections"]:
            session = onnxruntime.InferenceSession(str(here / section["model"]), options)
            feeds = {i["name"]: given[i["name"]].astype(i["type"]) for i in section["inputs"]}
            parts.append(bound(session, feeds))
        out[form] = lambda parts=parts: [p() for p in parts]
    return out


def measure(run):
    """{form: [ms of a step in each round]}"""
    times = {form: [] for form in run}
    for k in range(ROUNDS + 1):
        for form, step in run.items():
            start = time.thread_time()
            for _ in range(STEPS):
                step()
            if k:
                times[form].append(1e3 * (time.thread_time() - start) / STEPS)
    return times


def main(names):
    print("| architecture | " + " | ".join(FORMS) + " |\n|---|---|---|---|")
    for name in names or figures.CASES:
        with tempfile.TemporaryDirectory() as folder:
            times = measure(steps(name, folder))
        base = np.array(times["compact"])
        cells = [f"{np.median(t):.2f} ({np.median(np.array(t) / base):.2f})" for t in times.values()]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
