"""What the stages of try_file.py share: ONNX Runtime as the reference, how far two results are apart, answers."""

import numpy as np
import onnx
import onnxruntime


def reference(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def operators(graph):
    """All nodes, those of bodies included."""
    for node in graph.node:
        yield node
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from operators(a.g)


def lift_constants(graph):
    """Constant nodes as initializers: some writers keep all weights there."""
    kept = []
    for node in graph.node:
        value = node.attribute[0] if node.op_type == "Constant" and node.attribute else None
        if value is not None and value.name == "value":
            value.t.name = node.output[0]
            graph.initializer.append(value.t)
        else:
            kept.append(onnx.NodeProto.FromString(node.SerializeToString()))
    del graph.node[:]
    graph.node.extend(kept)


def tolerance(arrays):
    return 2e-2 if any(a.dtype == np.float16 for a in arrays) else 2e-3


def gap(got, want):
    """Largest difference beside the largest number; None where they are the same. What is not finite must be so in
    both."""
    if isinstance(want, dict) or isinstance(got, dict):
        if not isinstance(got, dict) or not isinstance(want, dict) or list(got) != list(want):
            return np.inf
        return gap(np.array(list(got.values())), np.array(list(want.values())))
    if isinstance(want, list) or isinstance(got, list):
        if not isinstance(got, list) or not isinstance(want, list) or len(got) != len(want):
            return np.inf
        return max((g for g in map(gap, got, want) if g is not None), default=None)
    if want is None or got is None:
        return None if want is got else np.inf
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return np.inf
    if want.dtype.kind not in "fc":
        same = np.mean(got == want) if want.size else 1.0
        return None if same == 1 else 1 - same  # a few classes or bits may flip on a tie
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(np.isfinite(got), finite):
        return np.inf
    if not finite.any():
        return None
    return float(np.max(np.abs(got[finite] - want[finite])) / max(1e-3, np.max(np.abs(want[finite]))))


def refused(e):
    return ["refused", " / ".join(line.strip() for line in str(e).splitlines())[:500]]


def is_float(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size > 0
