"""Plays what make.py recorded, looks at the results, and compares them with the recorded ones.

Numbers are those of an instruction set: every process runs with ONNXTRAIN_ISA, on one thread. On a machine that has the
instruction set, results must be the recorded ones bit-exact; on another, digests are left out and numbers may differ
by 1e-5. That the bits depend on nothing else of a CPU was tried with recipes.json in QEMU: sse4 on a Nehalem, which has
neither AVX nor FMA, and avx2 on a Haswell. QEMU has no AVX-512: there, convolutions, which come from oneDNN, are held
to their bits only on the CPU that recorded them.
"""

import functools
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BINARY = ROOT / "build" / "release" / "onnxtrain"
INSTRUCTION_SETS = ("sse4", "avx2", "avx512")
LABELS = {"sse4": "SSE4", "avx2": "AVX2", "avx512": "AVX-512"}  # as `onnxtrain doctor` names them
TIMES = {"seconds", "wait_seconds", "samples_per_second"}  # of a log: never the same twice
PLACE = "@HERE@"  # in recorded text: the folder that the case runs in


def environment(isa, more=()):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ONNXTRAIN_")}
    return {**kept, "ONNXTRAIN_ISA": isa, "ONNXTRAIN_THREADS": "1", **dict(more)}


def cli(arguments, folder, isa="sse4", more=()):
    return subprocess.run([str(BINARY), *map(str, arguments)], cwd=folder, env=environment(isa, more),
                          capture_output=True, text=True, timeout=600)


def python(arguments, folder, isa="sse4", given=None):
    """A Python process; `given` goes to its standard input as JSON."""
    text = None if given is None else json.dumps(given)
    return subprocess.run([sys.executable, *map(str, arguments)], cwd=folder, env=environment(isa), input=text,
                          capture_output=True, text=True, timeout=600)


@functools.cache
def label(isa):
    """The instruction set that is really used when `isa` is asked for."""
    said = next(line for line in cli(["doctor"], HERE, isa).stdout.splitlines() if line.startswith("simd"))
    return next((name for name in ("AVX-512", "AVX2", "SSE4") if name in said), "")


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return ""


def is_exact(isa, convolution, recorded_cpu):
    return label(isa) == LABELS[isa] and (isa != "avx512" or not convolution or cpu() == recorded_cpu)


# ---- a folder to play in

def copy_to(folder):
    """The fixtures in `folder`, with its own path in texts that name it."""
    for entry in HERE.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            shutil.copytree(entry, folder / entry.name)
        elif entry.suffix in (".npz", ".csv", ".pickle"):
            shutil.copy(entry, folder / entry.name)
    for path in texts(folder):
        text = path.read_text()
        if PLACE in text:
            path.write_text(text.replace(PLACE, str(folder)))
    return folder


def texts(folder):
    endings = {".toml", ".txt", ".json", ".jsonl", ".html", ".csv"}
    return [p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix in endings]


# ---- looking

def digest(data):
    return hashlib.sha256(data).hexdigest()


# Metadata that files did not have at the earlier commit (docs/decisions 0056-training-copies, 0080-data-of-a-run).
ADDED_SINCE = {b"onnxtrain.inference_form", b"onnxtrain.target", b"onnxtrain.map", b"onnxtrain.drop",
               b"onnxtrain.standard", b"onnxtrain.losses", b"onnxtrain.loss_targets", b"onnxtrain.values",
               b"onnxtrain.valid_data"}


def file_digest(data):
    """Of a model file without the metadata that was added since: every other byte counts."""
    from onnxtrain.converters.onnx_file import wire_fields

    kept = bytearray()
    for number, _, start, body, end in wire_fields(data):
        key = data[body + 2 : body + 2 + data[body + 1]] if number == 14 else b""  # metadata_props
        if bytes(key) not in ADDED_SINCE:
            kept += data[start:end]
    return digest(bytes(kept))


def tensor(array):
    """Type, shape and bytes of an array in one digest, and its mean size for other machines."""
    import numpy as np

    head = f"{array.dtype} {array.shape} ".encode()
    size = float(np.abs(array.astype(np.float64)).mean()) if array.size and array.dtype.kind in "biufV" else 0.0
    return {"sha256": digest(head + np.ascontiguousarray(array).tobytes()), "mean": size}


def tensors(path):
    """Every initializer of an ONNX file and of its training sections."""
    import onnx
    from onnx import numpy_helper

    m = onnx.load(path)
    graphs = [("", m.graph), *((f"section {k} ", t.algorithm) for k, t in enumerate(m.training_info))]
    return {where + t.name: tensor(numpy_helper.to_array(t)) for where, g in graphs for t in g.initializer}


def metadata(path):
    """What a checkpoint says of itself, checksums aside."""
    import onnx

    props = {p.key: p.value for p in onnx.load(path).metadata_props}
    return {k: v for k, v in sorted(props.items()) if "checksum" not in k}


def metrics(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in TIMES} for line in lines]


def config(run):
    """{key: [value, source]} of config.toml. `model` of resumed runs is not recorded: it was empty, a fault."""
    rows = re.findall(r"^([\w-]+) = (.*?) +# (\w+)$", (run / "config.toml").read_text(), re.M)
    return {key: [value, source] for key, value, source in rows}


def keys(path):
    """Names in a JSON object, also of those inside it."""
    def of(value):
        return {k: of(v) for k, v in value.items()} if isinstance(value, dict) else "there"
    return of(json.loads(path.read_text()))


def rows(path):
    """How many rows of what part of the data; the words about it are for people."""
    return {k: v for k, v in json.loads(path.read_text()).items() if k not in ("data", "notes")}


def columns(path):
    lines = path.read_text().splitlines()
    return {"columns": {name: "there" for name in lines[0].split(",")}, "lines": len(lines)}


NEW_METRICS = ("precision", "recall", "f1", "auc", "r2", "per_class", "classes")


def without_new_metrics(text):
    """`eval --json` and what `evaluate` gave, without the metrics that were added since: every other byte counts."""
    if text.startswith('{"rows":'):
        scores = json.loads(text)
        return json.dumps({k: v for k, v in scores.items() if k not in NEW_METRICS}, separators=(",", ":")) + "\n"
    if '"per_class":' not in text:
        return text
    lines = [json.loads(line, object_hook=_earlier_scores) for line in text.splitlines()]
    return "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)


def _earlier_scores(scores):
    """`evaluate` in Python did not give the number of rows either."""
    return {k: v for k, v in scores.items() if k not in (*NEW_METRICS, "rows")}


def look(what, folder, outputs):
    kind, _, where = what.partition(" ")
    path = folder / where
    if kind == "output":
        return without_new_metrics(outputs[int(where)])
    if kind == "files":
        return {p.name: "there" for p in sorted(path.iterdir()) if "tfevents" not in p.name and ".tmp" not in p.name}
    if kind == "bytes":
        data = path.read_bytes()
        return {"sha256": file_digest(data) if path.suffix == ".onnx" else digest(data)}
    if kind == "text":
        return path.read_text().replace(str(folder), PLACE)
    seen = READERS[kind](path)
    return json.loads(json.dumps(seen).replace(str(folder), PLACE))


READERS = {"tensors": tensors, "metadata": metadata, "metrics": metrics, "config": config, "keys": keys, "rows": rows,
           "columns": columns}


def play(case, folder, isa):
    """Runs the steps of a case in `folder`; what is asked for in `look`, by name."""
    outputs = []
    for step in case["steps"]:
        if "python" in step:
            done = python([HERE / "worker.py", "code", "\n".join(step["python"])], folder, isa)
        else:
            done = cli(step["cli"], folder, isa, step.get("environment", {}).items())
        wanted = step.get("code", 0)
        if done.returncode != wanted:
            raise AssertionError(f"{step}: exit {done.returncode}, not {wanted}\n{done.stdout}{done.stderr}")
        for text in step.get("says", ()):
            if text not in done.stdout + done.stderr:
                raise AssertionError(f"{step}: says nothing of {text!r}\n{done.stdout}{done.stderr}")
        outputs.append(done.stdout.replace(str(folder), PLACE))
    return {what: look(what, folder, outputs) for what in case["look"]}


def compact(seen):
    """Digests of a file's tensors as one: only sse4 has each by its name."""
    return {k: summary(v) if k.startswith("tensors") else v for k, v in seen.items()}


def summary(tensors):
    text = "".join(f"{name} {t['sha256']}\n" for name, t in sorted(tensors.items()))
    return {"sha256": digest(text.encode()), "mean": sum(t["mean"] for t in tensors.values())}


# ---- comparing

NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


def near(a, b):
    return a == b or math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6)


def differences(want, got, exact, where=""):
    """What `got` lacks or has otherwise; more keys than recorded are fine."""
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return [f"{where}: {got!r}, recorded is an object"]
        found = [f"{where}/{k}: missing" for k in want if k not in got]
        for key in want.keys() & got.keys():
            if exact or key != "sha256":
                found += differences(want[key], got[key], exact, f"{where}/{key}")
        return found
    if isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            return [f"{where}: {len(got)} entries, recorded {len(want)}"]
        pairs = zip(want, got, strict=True)
        return [d for k, (a, b) in enumerate(pairs) for d in differences(a, b, exact, f"{where}/{k}")]
    if want == got and type(want) is type(got):
        return []
    if not exact and isinstance(want, float) and isinstance(got, (int, float)) and near(want, got):
        return []
    if not exact and isinstance(want, str) and isinstance(got, str) and NUMBER.sub("#", want) == NUMBER.sub("#", got):
        numbers = zip(NUMBER.findall(want), NUMBER.findall(got), strict=True)
        if all(near(float(a), float(b)) for a, b in numbers):
            return []
    return [f"{where}: {str(got)[:200]!r}, recorded {str(want)[:200]!r}"]
