"""Other forms of a case: its gradient as a model (for second derivatives), shapes that nobody knows before
the run, other shapes, other opsets."""

import copy

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot
from retype import is_float

TRAINING = "ai.onnx.preview.training"


def _copy(model):
    """A copy that may use the standard domain."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    if all(o.domain not in ("", "ai.onnx") for o in out.opset_import):
        out.opset_import.append(helper.make_opsetid("", 21))
    return out


def as_gradient(model, feeds, wrt, seed=0):
    """A model whose outputs are the gradients of `wrt` of the given one's floating-point tensor outputs, with
    random cotangents, by a Gradient node. None when there is nothing to differentiate."""
    rng = np.random.default_rng(seed)
    out = _copy(model)
    g = out.graph
    values = ot.Session(ot.load(model.SerializeToString()), threads=1).run(feeds)
    total = None
    # the sum in double: outputs may have different types
    for o in model.graph.output:
        y = values[o.name]
        if not is_float(y):
            continue
        c = np.where(np.isfinite(y.astype(np.float64)), rng.standard_normal(y.shape), 0)
        name = f"{o.name}__c"
        g.initializer.append(numpy_helper.from_array(c.astype(np.float64), name))
        g.node.append(helper.make_node("Cast", [o.name], [f"{o.name}__d"], to=TensorProto.DOUBLE))
        g.node.append(helper.make_node("Mul", [f"{o.name}__d", name], [f"{o.name}__w"]))
        g.node.append(helper.make_node("ReduceSum", [f"{o.name}__w"], [f"{o.name}__s"], keepdims=0))
        if total is None:
            total = f"{o.name}__s"
        else:
            g.node.append(helper.make_node("Add", [total, f"{o.name}__s"], [f"{o.name}__t"]))
            total = f"{o.name}__t"
    if total is None or not wrt:
        return None
    others = [i.name for i in g.input if i.name not in wrt]
    outs = [f"{n}__grad{seed}" for n in wrt]
    more = {"zs": others} if others else {}
    g.node.append(helper.make_node("Gradient", list(wrt) + others, outs, domain=TRAINING, xs=list(wrt), y=total,
                                   **more))
    del g.output[:]
    types = {i.name: i.type for i in g.input}
    for n, o in zip(wrt, outs):
        g.output.append(helper.make_value_info(o, types[n]))
    if all(o.domain != TRAINING for o in out.opset_import):
        out.opset_import.append(helper.make_opsetid(TRAINING, 1))
    out.ir_version = max(out.ir_version, 7)
    return out


def hidden(model, feeds):
    """Tensor inputs pass through a sequence: neither their shape nor their rank is known before the run."""
    out = _copy(model)
    g = out.graph
    front, used = [], []
    g.initializer.append(numpy_helper.from_array(np.array(0, np.int64), "hide__zero"))
    for i in g.input:
        if i.type.WhichOneof("value") != "tensor_type" or i.name not in feeds:
            continue
        used.append(i.name)
        front.append(helper.make_node("SequenceConstruct", [i.name], [f"{i.name}__seq"]))
        front.append(helper.make_node("SequenceAt", [f"{i.name}__seq", "hide__zero"], [f"{i.name}__hidden"]))
    body = [copy.deepcopy(n) for n in g.node]
    for n in body:
        _rename(n, {u: f"{u}__hidden" for u in used})
    del g.node[:]
    g.node.extend(front + body)
    for o in g.output:
        if o.type.WhichOneof("value") == "tensor_type":
            o.type.tensor_type.ClearField("shape")
    del g.value_info[:]
    return out


def _rename(node, names):
    for k, name in enumerate(node.input):
        node.input[k] = names.get(name, name)
    for a in node.attribute:
        if a.HasField("g"):
            for n in a.g.node:
                _rename(n, names)
            for o in a.g.output:
                o.name = names.get(o.name, o.name)


def open_shapes(model):
    """Inputs and outputs without dimensions."""
    out = _copy(model)
    for i in list(out.graph.input) + list(out.graph.output):
        if i.type.WhichOneof("value") == "tensor_type":
            i.type.tensor_type.ClearField("shape")
    del out.graph.value_info[:]
    return out


def other_shapes(feeds, rng, most=8):
    """Feeds with other shapes: one dimension cut to 1 or 0, a leading dimension dropped, dimensions of one size
    doubled everywhere. Whoever uses them keeps those that the model accepts."""
    arrays = {n: v for n, v in feeds.items() if isinstance(v, np.ndarray)}
    found = []
    for n, v in arrays.items():
        for d in range(v.ndim):
            if v.shape[d] > 1:
                found.append((f"{n} dimension {d} is 1", {**feeds, n: np.take(v, [0], d)}))
        if v.ndim > 1 and is_float(v):
            found.append((f"{n} lacks its first dimension", {**feeds, n: v[0]}))
    ints = any(v.dtype.kind in "iu" and v.size for v in arrays.values())
    for size in sorted({d for v in arrays.values() for d in v.shape if d > 0}):
        for to in (0, 2 * size, 1):
            if to == size or (to == 2 * size and ints):  # indices would name an element twice
                continue
            changed = {}
            for n, v in arrays.items():
                for d, old in enumerate(v.shape):
                    if old == size:
                        v = np.concatenate([v, v], d) if to == 2 * size else np.take(v, range(to), d)
                if to == 2 * size and is_float(v):
                    v = (v.astype(np.float64) * (1 + 0.02 * rng.uniform(-1, 1, v.shape))).astype(v.dtype)
                changed[n] = v
            found.append((f"dimensions of {size} are {to}", {**feeds, **changed}))
    order = rng.permutation(len(found))[:most]
    return [found[k] for k in sorted(order)]
