"""Which operators of src/convert/portable/runtimes.cpp each runtime lacks, by ONNX's own node tests in float32.

    python tests/engines/operators.py [RUNTIME ...]       in the environment of tools/environment.sh engines

Prints per runtime the operators of which no test gives the right numbers."""

import multiprocessing
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")
sys.path.insert(0, str(Path(__file__).parent))
COMMON = """Acos Acosh ArgMin Asin Asinh Atan Atanh Compress Cosh CumSum Det Einsum GatherElements GatherND GridSample
IsInf IsNaN LRN Mod NonZero Range ReduceProd Resize ReverseSequence Round ScatterElements ScatterND Sinh Size Tan TopK
Xor LpNormalization Hardmax MaxUnpool ConstantOfShape""".split()
RUNTIMES = ["openvino", "iree", "tinygrad", "tract", "emx", "opencv"]
TRIES = 3


def cases():
    from onnx import numpy_helper
    from onnx.backend.test.loader import load_model_tests

    found = {}
    for case in load_model_tests(kind="node"):
        nodes = case.model.graph.node if case.model else ()
        if len(nodes) != 1 or nodes[0].op_type not in COMMON or "float16" in case.name or not case.data_sets:
            continue
        given, wanted = case.data_sets[0]
        arrays = [numpy_helper.to_array(v) if hasattr(v, "raw_data") else v for v in (*given, *wanted)]
        if any(not isinstance(a, np.ndarray) or a.dtype not in (np.float32, np.int64, np.bool_) for a in arrays):
            continue
        found.setdefault(nodes[0].op_type, []).append((case.model, arrays[:len(given)], arrays[len(given):]))
    return {op: sorted(list_, key=lambda c: c[0].opset_import[0].version)[:TRIES] for op, list_ in found.items()}


def attempt(runtime, model, given, wanted, answer):
    import worker
    from onnxtrain import engines

    model.ir_version = min(model.ir_version, 10)
    names = [v.name for v in model.graph.input]
    outs = [v.name for v in model.graph.output]

    def entry(name, role, a):
        return {"name": name, "role": role, "type": a.dtype.name, "shape": list(a.shape)}

    section = {"inputs": [entry(n, "data", a) for n, a in zip(names, given)],
               "outputs": [entry(n, "output", a) for n, a in zip(outs, wanted)], "feedback": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        if runtime in worker.PLAIN:
            got = worker.PLAIN[runtime](path, section)(dict(zip(names, given)))
        else:
            engine, device = engines.open_engine(runtime)
            got = engine.compile(engines.Step(path.read_bytes(), section), device).step(dict(zip(names, given)))
    answer.value = all(np.allclose(np.asarray(got[n]).reshape(w.shape), w, 1e-3, 1e-5, equal_nan=True)
                       for n, w in zip(outs, wanted))


def main(runtimes):
    all_cases = cases()
    print("not tried:", " ".join(sorted(set(COMMON) - set(all_cases))))
    for runtime in runtimes or RUNTIMES:
        lacks = []
        for op, list_ in sorted(all_cases.items()):
            right = False
            for case in list_:
                answer = multiprocessing.Value("b", False)
                p = multiprocessing.Process(target=attempt, args=(runtime, *case, answer))
                p.start()
                p.join(120)
                if p.is_alive():
                    p.kill()
                right |= bool(answer.value)
                if right:
                    break
            if not right:
                lacks.append(op)
        print(f"{runtime}: {' '.join(lacks)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
