"""Forms of gradients in ONNX Runtime, one by one: what src/convert/portable/fast_conv.cpp, pools.cpp and rules_norm.cpp
choose between (docs/decisions/0200-forms-for-onnxruntime.md).

    python tests/engines/forms.py

One thread; processor time of the thread in us, the median of 7 interleaved rounds. All forms give the same numbers."""

import time

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

ROUNDS, SECONDS = 7, 0.2


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def session(nodes, feeds, outputs, constants):
    inputs = [helper.make_tensor_value_info(k, 1, v.shape) for k, v in feeds.items()]
    outs = [helper.make_tensor_value_info(k, 1, None) for k in outputs.split()]
    weights = [numpy_helper.from_array(np.asarray(v, None if np.asarray(v).dtype == np.float32 else np.int64), k)
               for k, v in constants.items()]
    model = helper.make_model(helper.make_graph(nodes, "form", inputs, outs, weights), ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    made = onnxruntime.InferenceSession(model.SerializeToString(), options)
    binding = made.io_binding()
    for k, v in feeds.items():
        binding.bind_ortvalue_input(k, onnxruntime.OrtValue.ortvalue_from_numpy(v))
    for o in made.get_outputs():
        binding.bind_output(o.name)
    return lambda: made.run_with_iobinding(binding), binding.copy_outputs_to_cpu


def measured(forms):
    """{form: us}; an error if they do not agree."""
    first = None
    for run, results in forms.values():
        run()
        got = results()
        first = first or got
        for a, b in zip(first, got):
            assert np.allclose(a, b, atol=2e-4 * max(1, np.abs(a).max()))
    start = time.thread_time()
    next(iter(forms.values()))[0]()
    repeat = max(3, int(SECONDS / ROUNDS / len(forms) / max(1e-6, time.thread_time() - start)))
    times = {k: [] for k in forms}
    for _ in range(ROUNDS):
        for k, (run, _) in forms.items():
            start = time.thread_time()
            for _ in range(repeat):
                run()
            times[k].append(1e6 * (time.thread_time() - start) / repeat)
    return {k: float(np.median(v)) for k, v in times.items()}


def places(size, out, kernel, stride, pad):
    """[taps, pixels, places]: 1 where a tap takes a pixel to a place of the result."""
    m = np.zeros((kernel * kernel, size * size, out * out), np.float32)
    for t in range(kernel * kernel):
        for p in range(out * out):
            i, j = p // out * stride + t // kernel - pad, p % out * stride + t % kernel - pad
            if 0 <= i < size and 0 <= j < size:
                m[t, i * size + j, p] = 1
    return m


def weight_gradient(n, c, k, size, kernel, stride, pad):
    out, taps = (size + 2 * pad - kernel) // stride + 1, kernel * kernel
    rng = np.random.RandomState(0)
    feeds = {"x": rng.randn(n, c, size, size).astype("f"), "dy": rng.randn(n, k, out, out).astype("f")}
    picks = np.zeros((c * taps, 1, kernel, kernel), np.float32)
    for t in range(c * taps):
        picks[t, 0, t % taps // kernel, t % kernel] = 1
    by_matrix = places(size, out, kernel, stride, pad).transpose(1, 0, 2).reshape(size * size, -1)
    shapes = {"rows": [n, c * taps, out * out], "dys": [n, k, out * out], "dws": [k, c, kernel, kernel], "none": [0],
              "flat": [-1, size * size], "one": [k, -1], "all": [-1, c * taps], "zero": [0, 0], "axes": [2, 3],
              "size": [kernel, kernel]}
    seen = {"conv": [node("Conv", "x picks", "w", group=c, strides=[stride] * 2, pads=[pad] * 4)],
            "matrix": [node("Reshape", "x flat", "xf"), node("MatMul", "xf m", "w")]}
    head = [node("Reshape", "w rows", "a"), node("Transpose", "a", "at", perm=[0, 2, 1]),
            node("Reshape", "dy dys", "d")]
    images = [node("MatMul", "d at", "e"), node("ReduceSum", "e none", "s", keepdims=0), node("Reshape", "s dws", "dw")]
    at_once = [node("Transpose", "d", "dt", perm=[1, 0, 2]), node("Reshape", "dt one", "d1"),
               node("Reshape", "at all", "a1"), node("MatMul", "d1 a1", "s"), node("Reshape", "s dws", "dw")]
    turned = [node("Transpose", "x", "xt", perm=[1, 0, 2, 3]), node("Transpose", "dy", "dt", perm=[1, 0, 2, 3]),
              node("Conv", "xt dt", "r", pads=[pad] * 4, dilations=[stride] * 2),
              node("Slice", "r zero size axes", "q"), node("Transpose", "q", "dw", perm=[1, 0, 2, 3])]
    forms = {"Conv over the batch": session(turned, feeds, "dw", shapes)}
    for name, nodes in seen.items():
        given = shapes | ({"picks": picks} if name == "conv" else {"m": by_matrix})
        forms[f"windows by {name}, image by image"] = session(nodes + head + images, feeds, "dw", given)
        forms[f"windows by {name}, at once"] = session(nodes + head + at_once, feeds, "dw", given)
    return measured(forms)


def depthwise(n, c, size, kernel, stride, pad):
    """The convolution and both gradients."""
    out, taps, rng = (size + 2 * pad - kernel) // stride + 1, kernel * kernel, np.random.RandomState(0)
    feeds = {"x": rng.randn(n, c, size, size).astype("f"), "w": rng.randn(c, 1, kernel, kernel).astype("f"),
             "dy": rng.randn(n, c, out, out).astype("f")}
    window = {"group": c, "pads": [pad] * 4, "strides": [stride] * 2}
    extra = [size - ((out - 1) * stride + kernel - 2 * pad)] * 2
    pixels, results = size * size, out * out
    shapes = {"five": [n, c, 1, size, size], "folded": [1, c * n, size, size], "zero": [0, 0], "axes": [2, 3],
              "kernel": [kernel, kernel], "ws": [c, taps], "ts": [c, pixels, results], "xs": [n, c, pixels],
              "ds": [n, c, results], "ys": [n, c, out, out], "dxs": [n, c, size, size], "ms": [c, pixels * results],
              "dws": [c, 1, kernel, kernel], "m": places(size, out, kernel, stride, pad).reshape(taps, -1)}
    conv = [node("Conv", "x w", "y", **window), node("ConvTranspose", "dy w", "dx", output_padding=extra, **window),
            node("Reshape", "x five", "a"), node("Transpose", "a", "b", perm=[2, 1, 0, 3, 4]),
            node("Reshape", "b folded", "xx"), node("Transpose", "dy", "dt", perm=[1, 0, 2, 3]),
            node("Conv", "xx dt", "r", group=c, pads=[pad] * 4, dilations=[stride] * 2),
            node("Slice", "r zero kernel axes", "q"), node("Transpose", "q", "dw", perm=[1, 0, 2, 3])]
    matrix = [node("Reshape", "w ws", "w2"), node("MatMul", "w2 m", "t0"), node("Reshape", "t0 ts", "t"),
              node("Reshape", "x xs", "x2"), node("Transpose", "x2", "x3", perm=[1, 0, 2]),
              node("MatMul", "x3 t", "y3"), node("Transpose", "y3", "y2", perm=[1, 0, 2]),
              node("Reshape", "y2 ys", "y"),
              node("Reshape", "dy ds", "d2"), node("Transpose", "d2", "d3", perm=[1, 0, 2]),
              node("Transpose", "t", "tt", perm=[0, 2, 1]), node("MatMul", "d3 tt", "g3"),
              node("Transpose", "g3", "g2", perm=[1, 0, 2]), node("Reshape", "g2 dxs", "dx"),
              node("Transpose", "x3", "x4", perm=[0, 2, 1]), node("MatMul", "x4 d3", "p"),
              node("Reshape", "p ms", "p2"), node("Gemm", "p2 m", "s", transB=1), node("Reshape", "s dws", "dw")]
    return measured({k: session(v, feeds, "y dx dw", shapes) for k, v in (("Conv", conv), ("matrices", matrix))})


def halving_pool(n, c, size, *_):
    rng, window = np.random.RandomState(0), {"kernel_shape": [2, 2], "strides": [2, 2]}
    feeds = {"x": np.maximum(rng.randn(n, c, size, size), 0).astype("f"),
             "dy": rng.randn(n, c, size // 2, size // 2).astype("f")}
    twice = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    order = np.array([[4 - i % 2 * 2 - j % 2 for j in range(size)] for i in range(size)], np.float32)
    given = {"all": [-1], "zero": np.zeros(1, "f"), "count": [n * c * size * size], "xs": [n, c, size, size],
             "scales": np.array([1, 1, 2, 2], "f"), "order": order}
    indices = [node("MaxPool", "x", "y i", **window), node("Reshape", "i all", "at"), node("Reshape", "dy all", "d"),
               node("Expand", "zero count", "none"), node("ScatterElements", "none at d", "g", reduction="add"),
               node("Reshape", "g xs", "dx")]

    def doubled(name, to):
        return helper.make_node("Resize", [name, "", "scales"], [to], **twice)

    resize = [node("MaxPool", "x", "y", **window), doubled("y", "yy"), node("Equal", "x yy", "q"),
              node("Cast", "q", "qf", to=1), node("Mul", "qf order", "o"), node("MaxPool", "o", "om", **window),
              doubled("om", "oo"), node("Equal", "o oo", "f"), node("Cast", "f", "ff", to=1), doubled("dy", "dd"),
              node("Mul", "ff dd", "dx")]
    return measured({"Indices": session(indices, feeds, "y dx", given),
                     "Resize": session(resize, feeds, "y dx", given)})


def main():
    tables = [("weight gradient: rows, channels, kernels, image, kernel size, stride, padding", weight_gradient,
               [(8, 8, 8, 3, 3, 1, 1), (8, 12, 12, 6, 3, 1, 1), (8, 8, 8, 8, 3, 1, 1), (32, 32, 32, 8, 3, 1, 1),
                (32, 64, 64, 4, 3, 1, 1), (16, 64, 64, 7, 3, 1, 1), (32, 16, 32, 14, 3, 1, 1), (6, 4, 8, 8, 5, 1, 0),
                (8, 6, 16, 14, 5, 1, 0)]),
              ("convolution of each channel and its gradients: rows, channels, image, kernel size, stride, padding",
               depthwise, [(2, 12, 6, 3, 1, 1), (8, 12, 6, 3, 2, 1), (8, 12, 6, 3, 1, 1), (8, 8, 6, 5, 1, 2),
                           (32, 128, 4, 3, 1, 1), (16, 96, 7, 3, 1, 1), (32, 64, 8, 3, 1, 1)]),
              ("maximum over 2x2 and its gradient: rows, channels, image", halving_pool,
               [(6, 4, 16), (64, 8, 28), (32, 64, 14), (32, 64, 28)])]
    for title, function, problems in tables:
        for k, p in enumerate(problems):
            got = function(*p)
            if k == 0:
                print(f"\n| {title} | " + " | ".join(got) + " |\n|---" + "|---" * len(got) + "|")
            print(f"| {', '.join(map(str, p))} | " + " | ".join(f"{v:.0f}" for v in got.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
