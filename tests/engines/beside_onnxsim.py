"""A step beside the training step of onnxsim 0.8.1, both in ONNX Runtime.

    pip install --no-deps onnxsim==0.8.1      # into an environment of your own
    python tests/engines/beside_onnxsim.py

An MLP and a CNN with static shapes, mean squared error, SGD with momentum; losses of four steps, number of nodes,
processor time of a step on one thread (median of 15 interleaved rounds of 10 steps)."""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnxsim import compile_training

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import onnxtrain as ot  # noqa: E402
from worker import safetensors  # noqa: E402

ROWS = 32
NETS = {
    "mlp": ([ROWS, 64], {"w1": (64, 128), "b1": (128,), "w2": (128, 10), "b2": (10,)},
            "a = MatMul (x, w1) b = Add (a, b1) c = Relu (b) d = MatMul (c, w2) y = Add (d, b2)"),
    "cnn": ([ROWS, 1, 28, 28], {"k1": (8, 1, 3, 3), "c1": (8,), "k2": (16, 8, 3, 3), "c2": (16,), "w": (3136, 10)},
            "a = Conv <pads = [1,1,1,1], kernel_shape = [3,3], strides = [2,2]> (x, k1, c1) b = Relu (a) "
            "c = Conv <pads = [1,1,1,1], kernel_shape = [3,3]> (b, k2, c2) d = Relu (c) e = Reshape (d, shape) "
            "y = MatMul (e, w)"),
}


def models(name):
    """The network alone, and with its loss."""
    shape, sizes, nodes = NETS[name]
    rng = np.random.RandomState(0)
    weights = {k: (rng.randn(*s) * 0.5 / np.sqrt(np.prod(s[1:]) if len(s) > 2 else s[0])).astype(np.float32)
               for k, s in sizes.items()}
    made = []
    for loss in (False, True):
        more = "e0 = Sub (y, t) e1 = Mul (e0, e0) loss = ReduceMean <keepdims = 0> (e1)" if loss else ""
        head = f"net (float{shape} x{f', float[{ROWS},10] t' if loss else ''}) => " \
               f"({'float loss' if loss else f'float[{ROWS},10] y'}) {{ {nodes} {more} }}"
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {head}')
        model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in weights.items())
        if "shape" in nodes:
            model.graph.initializer.append(numpy_helper.from_array(np.array([ROWS, 3136]), "shape"))
        made.append(model)
    return *made, weights


def bound(model, value):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model, options)
    binding = session.io_binding()
    for i in session.get_inputs():
        binding.bind_ortvalue_input(i.name, onnxruntime.OrtValue.ortvalue_from_numpy(value(i)))
    for o in session.get_outputs():
        binding.bind_output(o.name)
    return lambda: session.run_with_iobinding(binding)


def theirs(model, weights, x, t):
    loop = compile_training.compile_training_loop(model, "loss", list(weights), optimizer="sgd_momentum")
    losses = [loop({"x": x, "t": t}, 0.05) for _ in range(4)]
    graph = next(v for v in vars(loop.step_graph).values() if isinstance(v, onnx.ModelProto))
    given = weights | {"x": x, "t": t}

    def value(i):
        if i.name in given:
            return given[i.name]
        return np.full([d if isinstance(d, int) else 1 for d in i.shape], 0.05 if "lr" in i.name else 0, np.float32)
    return losses, len(graph.graph.node), bound(graph.SerializeToString(), value)


def ours(model, x, t):
    train = ot.prepare(ot.load(model.SerializeToString()), loss="mse", optimizer=ot.SGD(lr=0.05, momentum=0.9))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.onnx"
        ot.export_step(train, path, runtime="onnxruntime")
        section = json.loads(path.with_suffix(".manifest.json").read_text())["sections"][0]
        label = next(i["name"] for i in section["inputs"] if i["role"] == "target")
        given = safetensors(path.with_suffix(".state.safetensors")) | {"x": x, label: t}
        trainer = ot.Trainer(train)
        losses = [trainer.step({"x": x, label: t}).loss for _ in range(4)]
        return losses, len(onnx.load(path).graph.node), bound(str(path), lambda i: given[i.name])


def main():
    rng = np.random.RandomState(1)
    for name in NETS:
        alone, with_loss, weights = models(name)
        x = rng.randn(*NETS[name][0]).astype(np.float32)
        t = rng.randn(ROWS, 10).astype(np.float32)
        both = {"onnxtrain": ours(alone, x, t), "onnxsim": theirs(with_loss, weights, x, t)}
        times = {k: [] for k in both}
        for k in range(16):
            for who, (_, _, step) in both.items():
                start = time.thread_time()
                for _ in range(10):
                    step()
                if k:
                    times[who].append(100 * (time.thread_time() - start))
        for who, (losses, nodes, _) in both.items():
            ms = np.median(times[who])
            print(f"{name:4s} {who:10s} nodes {nodes:3d}  {ms:7.3f} ms  losses {np.round(losses, 5)}")
        print(f"{name:4s} ratio {np.median(np.array(times['onnxtrain']) / np.array(times['onnxsim'])):.2f}")


if __name__ == "__main__":
    main()
