"""Time of a step in ONNX Runtime by form, interleaved: compact, portable, portable --for onnxruntime.

    python tests/engines/speed.py [NAME ...]

One thread, fixed batch; the fastest of 30 rounds, in ms, and the ratio to compact."""

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
ROUNDS = 30


def steps(name, folder):
    """{form: a function that makes one step}"""
    out = {}
    for form, (how, runtime) in FORMS.items():
        here = Path(folder) / form.replace(" ", "_")
        here.mkdir()
        figures.write(name, "dynamo", True, here, how, runtime)
        manifest = figures.json.loads((here / "step.manifest.json").read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        section = manifest["sections"][0]
        session = onnxruntime.InferenceSession(str(here / section["model"]), options)
        data = np.load(here / "feeds.npz")
        given = worker.safetensors(here / manifest["state"]["file"])
        given |= {k.split("/", 1)[1]: data[k] for k in data.files if k.startswith("0/")}
        feeds = {i["name"]: given[i["name"]].astype(i["type"]) for i in section["inputs"]}
        out[form] = lambda session=session, feeds=feeds: session.run(None, feeds)
    return out


def main(names):
    print("| architecture | " + " | ".join(FORMS) + " |\n|---|---|---|---|")
    for name in names or figures.CASES:
        with tempfile.TemporaryDirectory() as folder:
            run = steps(name, folder)
            times = {form: [] for form in run}
            for k in range(ROUNDS + 3):
                for form, step in run.items():
                    start = time.perf_counter()
                    step()
                    if k >= 3:
                        times[form].append(1e3 * (time.perf_counter() - start))
        base = min(times["compact"])
        print(f"| {name} | " + " | ".join(f"{min(t):.2f} ({min(t) / base:.2f})" for t in times.values())
              + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
