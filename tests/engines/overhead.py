"""What the training loop adds to an engine's steps, beside a loop written by hand with the same runtime.

    python tests/engines/overhead.py [onnxruntime] [openvino]

A CNN for 28x28 images, batches of 64, one thread. By hand: the exported step, two sets of state buffers that are
swapped. Ours: `Trainer.fit` with the engine in the same process. Epochs of both in turn; the median of the ratios over
7 rounds. Time is processor time of the whole process: other programs on the machine do not count."""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import onnxtrain as ot  # noqa: E402
from onnxtrain import engines  # noqa: E402
from worker import safetensors  # noqa: E402

ROWS, BATCH, ROUNDS = 3840, 64, 7


def network():
    rng = np.random.RandomState(0)

    def numbers(*shape, scale):
        return ", ".join(repr(float(v)) for v in (rng.randn(*shape) * scale).astype(np.float32).reshape(-1))

    text = """<ir_version: 8, opset_import: ["" : 17]>
    cnn (float[N,1,28,28] x) => (float[N,10] logits)
    <float[8,1,3,3] k1 = {%s}, float[16,8,3,3] k2 = {%s}, float[784,10] w = {%s}>
    { a = Conv <pads = [1,1,1,1]> (x, k1) b = Relu (a) c = MaxPool <kernel_shape = [2,2], strides = [2,2]> (b)
      d = Conv <pads = [1,1,1,1]> (c, k2) e = Relu (d) f = MaxPool <kernel_shape = [2,2], strides = [2,2]> (e)
      g = Flatten (f) logits = MatMul (g, w) }""" % (
        numbers(8, 1, 3, 3, scale=0.3), numbers(16, 8, 3, 3, scale=0.1), numbers(784, 10, scale=0.03))
    return ot.prepare(ot.parse(text), loss="cross_entropy", optimizer=ot.AdamW(lr=1e-3))


def by_hand(model, engine, x, y, folder):
    """An epoch over x and y, straight on the engine's runner: no loop, no driver, no metrics."""
    ot.export_step(model, folder / "step.onnx", runtime=engine)
    manifest = json.loads((folder / "step.manifest.json").read_text())
    step = engines.Step.of((folder / "step.onnx").read_bytes(), json.dumps(manifest),
                           safetensors(folder / "step.state.safetensors"))
    module, device = engines.open_engine(engine)
    runner = module.compile(step, device, threads=1)

    def epoch():
        for k in range(0, ROWS, BATCH):
            runner.step({"x": x[k:k + BATCH], "label": y[k:k + BATCH]})
    return epoch


def main(names):
    rng = np.random.RandomState(1)
    x, y = rng.randn(ROWS, 1, 28, 28).astype(np.float32), rng.randint(0, 10, ROWS)
    model = network()
    for name in names or ["onnxruntime"]:
        with tempfile.TemporaryDirectory() as folder:
            hand = by_hand(model, name, x, y, Path(folder))
        t = ot.Trainer(model, engine=name, threads=1)
        ratios, ms = [], []
        for k in range(ROUNDS + 1):
            start = time.process_time()
            hand()
            middle = time.process_time()
            t.fit(x, y, epochs=1, batch_size=BATCH, valid=None, shuffle=False)
            end = time.process_time()
            if k:
                ratios.append((end - middle) / (middle - start))
                ms.append(1e3 * (middle - start) / (ROWS // BATCH))
        print(f"{name}: a step by hand {np.median(ms):.2f} ms, the loop takes {np.median(ratios):.3f} times as long")


if __name__ == "__main__":
    main(sys.argv[1:])
