"""Runs a step that `onnxtrain export --step` wrote, in one runtime, and writes what came out.

    python worker.py RUNTIME FOLDER RESULT.npz

FOLDER holds step.manifest.json with its files and feeds.npz ("0/x", "0/label", "1/x", ...: the feeds of each step).
RESULT gets the loss of every step and section and the final state. Runs in the environment of the runtimes
(tools/environment.sh engines), in a process of its own: a runtime may crash."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "python"), str(Path(__file__).parent)]
TYPES = {"F32": "f4", "F64": "f8", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "U8": "u1",
         "BOOL": "?"}


def safetensors(path):
    data = Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    head, body = json.loads(data[8:8 + size]), data[8 + size:]
    return {k: np.frombuffer(body[v["data_offsets"][0]:v["data_offsets"][1]], TYPES[v["dtype"]]).reshape(v["shape"])
            for k, v in head.items()}


class Simple:
    """Arrays in, arrays out: for runtimes without an engine of ours."""

    def __init__(self, run, section, state):
        self.run, self.section, self.now = run, section, dict(state)

    def set_state(self, values):
        self.now |= values

    def state(self):
        return self.now

    def step(self, feeds):
        named = {i["name"]: i for i in self.section["inputs"]}
        given = {k: np.asarray(v, named[k]["type"]) for k, v in (self.now | feeds).items() if k in named}
        got = self.run(given)
        self.now |= {f["input"]: got[f["output"]] for f in self.section["feedback"]}
        return got


def names(section, what):
    return [v["name"] for v in section[what]]


def reference(path, section):
    from onnx.reference import ReferenceEvaluator

    session = ReferenceEvaluator(str(path))
    return lambda given: dict(zip(names(section, "outputs"), session.run(None, given)))


def ort(level):
    def make(path, section):
        import onnxruntime as o

        options = o.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = getattr(o.GraphOptimizationLevel, level)
        session = o.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return lambda given: dict(zip(names(section, "outputs"), session.run(names(section, "outputs"), given)))
    return make


def tract(path, section):
    import tract as t

    model = t.onnx().load(str(path)).into_model().into_runnable()

    def run(given):
        got = model.run([np.array(given[k], order="C") for k in names(section, "inputs")])
        return {k: np.array(v.to_numpy()) for k, v in zip(names(section, "outputs"), got)}
    return run


def opencv(path, section):
    import cv2

    net = cv2.dnn.readNetFromONNX(str(path))

    def run(given):
        for k in names(section, "inputs"):
            net.setInput(given[k], k)
        return dict(zip(names(section, "outputs"), net.forward(names(section, "outputs"))))
    return run


def emx(path, section):
    """Plain C by emx-onnx-cgen, compiled by gcc and called through ctypes."""
    import ctypes
    import subprocess

    import onnx

    folder = Path(tempfile.mkdtemp())
    c, lib = folder / "step.c", folder / "step.so"
    # sizes that the file leaves open are given to the compiler: C has arrays of one size
    first = np.load(path.parent / "feeds.npz")
    sizes = {d: n for i in section["inputs"] if f"0/{i['name']}" in first.files
             for d, n in zip(i["shape"], first[f"0/{i['name']}"].shape) if isinstance(d, str)}
    done = subprocess.run([str(Path(sys.executable).parent / "emx-onnx-cgen"), "compile", str(path), str(c),
                           "--model-name", "step", *(f"--input-dim={d}={n}" for d, n in sizes.items())],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip().splitlines()[-1])
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", str(c), "-o", str(lib), "-lm"], check=True, capture_output=True)
    call = ctypes.CDLL(str(lib)).step
    graph = onnx.load(str(path)).graph
    order, outs = [v.name for v in graph.input], list(graph.output)

    def run(given):
        arrays = [np.array(given[k], order="C") for k in order]
        got = [np.zeros([d.dim_value or sizes[d.dim_param] for d in v.type.tensor_type.shape.dim],
                        onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type)) for v in outs]
        call(*[ctypes.c_void_p(a.ctypes.data) for a in arrays + got])
        return {v.name: a for v, a in zip(outs, got)}
    return run


def mnn(path, section):
    """MNN has its own format and 32-bit integers (pip install MNN)."""
    import onnx

    import whole

    run, types = whole.mnn(path, onnx.load(str(path)).graph), {o["name"]: o["type"] for o in section["outputs"]}
    shapes = {i["name"]: i["shape"] for i in section["inputs"]}
    fed = {f["output"]: f["input"] for f in section["feedback"]}

    def call(given):
        got = {k: np.asarray(v, types[k]) for k, v in run(given).items()}
        return {k: v.reshape(shapes[fed[k]]) if k in fed and v.size == np.prod(shapes[fed[k]]) else v
                for k, v in got.items()}
    return call


def tvm(path, section):
    """TVM's Relax (pip install apache-tvm)."""
    import onnx
    import tvm as t
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(onnx.load(str(path)), keep_params_in_input=False)
    machine = relax.VirtualMachine(t.compile(module, target="llvm"), t.cpu())

    def run(given):
        got = machine["main"](*[t.runtime.tensor(np.array(given[k], order="C")) for k in names(section, "inputs")])
        got = got if isinstance(got, (list, tuple)) or hasattr(got, "__len__") and not hasattr(got, "numpy") else [got]
        return {k: v.numpy() for k, v in zip(names(section, "outputs"), got)}
    return run


PLAIN = {"reference": reference, "ort_off": ort("ORT_DISABLE_ALL"), "ort_basic": ort("ORT_ENABLE_BASIC"),
         "tract": tract, "opencv": opencv, "emx": emx, "mnn": mnn, "tvm": tvm}


def runner(runtime, folder, section, state):
    mine = {i["name"] for i in section["inputs"]}
    state = {k: v for k, v in state.items() if k in mine}
    path = folder / section["model"]
    if runtime in PLAIN:
        return Simple(PLAIN[runtime](path, section), section, state)
    from onnxtrain import engines

    engine, device = engines.open_engine(runtime)
    return engine.compile(engines.Step(path.read_bytes(), section, state), device)


def main(runtime, folder, result):
    folder = Path(folder)
    manifest = json.loads((folder / "step.manifest.json").read_text())
    state = safetensors(folder / manifest["state"]["file"])
    runners = [(s, runner(runtime, folder, s, state)) for s in manifest["sections"]]
    feeds = np.load(folder / "feeds.npz")
    steps = 1 + max(int(k.split("/")[0]) for k in feeds.files)
    losses = []
    for k in range(steps):
        all_feeds = {n.split("/", 1)[1]: feeds[n] for n in feeds.files if n.startswith(f"{k}/")}
        for section, r in runners:
            types = {i["name"]: i["type"] for i in section["inputs"]}
            got = r.step({n: v.astype(types[n]) for n, v in all_feeds.items() if n in types})
            losses.append(float(np.asarray(got[section["loss"]["output"]]).reshape(-1)[0]))
            if len(runners) > 1:
                fresh = r.state()
                fresh = {f["input"]: fresh[f["input"]] for f in section["feedback"] if f["input"] in fresh}
                for other, q in runners:
                    if q is not r:
                        mine = {i["name"] for i in other["inputs"]}
                        q.set_state({n: v for n, v in fresh.items() if n in mine})
    for _, r in runners:
        state |= {n: np.asarray(v) for n, v in r.state().items()}
    np.savez(result, losses=np.array(losses), **{f"state/{n}": v for n, v in state.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
