"""Writes data/: for every architecture the files of torch's exporters and the trajectory of torch.

    python tests/trajectories/dump.py [NAME ...]        (torch 2.13, onnx, onnxscript; never needed to train)

data/NAME.EXPORT.onnx   the network as exported (metadata of the exporter removed, they are long)
data/NAME.KIND.onnx     a loss of its own, exported
data/NAME.npz           start values, float64 gradients and state, losses; torch's float32 noise
data/index.json         what there is and what an exporter could not do"""

import copy
import json
import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

import oracle
from trajectory_cases import CASES, feeds

DATA = Path(__file__).parent / "data"
OPSET = 18
KIND = "pkg.torch.export.graph_signature.InputSpec.kind"  # parameter or buffer: this stays


def strip(path):
    """Only what says how the network was traced goes."""
    m = onnx.load(path)
    del m.metadata_props[:]

    def clean(graph):
        graph.doc_string = ""
        for x in (
            list(graph.node) + list(graph.value_info) + list(graph.input) + list(graph.output) + list(graph.initializer)
        ):
            kind = [p.value for p in x.metadata_props if p.key == KIND]
            del x.metadata_props[:]
            if kind:
                x.metadata_props.add(key=KIND, value=kind[0])
            x.doc_string = ""
        del graph.metadata_props[:]
        for n in graph.node:
            for a in n.attribute:
                if a.HasField("g"):
                    clean(a.g)

    clean(m.graph)
    for f in m.functions:
        del f.metadata_props[:]
        for n in f.node:
            del n.metadata_props[:]
            n.doc_string = ""
    onnx.save(m, path)


def restore(path, net):
    """The legacy exporter runs the network in training mode and so moves its running statistics."""
    m, own = onnx.load(path), oracle.state(net)
    for t in m.graph.initializer:
        if t.name in own:
            t.CopyFrom(onnx.numpy_helper.from_array(own[t.name].detach().numpy(), t.name))
    onnx.save(m, path)


def lost(path, net):
    """Parameters that are not in the file any more, by value: the exporter folded them away."""
    m = onnx.load(path)
    tensors = list(m.graph.initializer) + [a.t for n in m.graph.node if n.op_type == "Constant" for a in n.attribute]
    there = [onnx.numpy_helper.to_array(t).reshape(-1) for t in tensors if t.data_type == onnx.TensorProto.FLOAT]
    there = np.unique(np.concatenate(there))
    return [n for n, p in oracle.state(net).items() if not np.isin(p.detach().numpy(), there).all()]


def arguments(case):
    data = feeds(case, 0, targets=False)
    return tuple(torch.from_numpy(np.ascontiguousarray(a)) for a in data.values())


def export(case, path, how):
    net = oracle.build(case).eval()
    args, names = arguments(case), list(case.inputs)
    axes = {n: {case.batch_axis.get(n, 0): "batch"} for n in names if case.batch_axis.get(n, 0) is not None}
    common = dict(input_names=names, output_names=list(case.outputs), opset_version=OPSET)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if how.startswith("legacy"):
            if has_norm(net):  # otherwise it is folded into the convolution before it
                common |= dict(training=torch.onnx.TrainingMode.PRESERVE)
            if how == "legacy_train":
                net.train()
                common |= dict(training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
            torch.onnx.export(net, args, path, dynamo=False, dynamic_axes=axes if case.open_batch else None, **common)
        else:
            dim = torch.export.Dim("batch", min=2)
            shapes = tuple({a: dim for a in axes[n]} if n in axes else None for n in names) if case.open_batch else None
            torch.onnx.export(net, args, path, dynamo=True, optimize=how == "dynamo_opt", dynamic_shapes=shapes,
                              external_data=False, verbose=False, **common)
    strip(path)
    if how == "legacy_train":
        restore(path, oracle.build(case))
    check(path, case, train=how == "legacy_train")
    gone = lost(path, oracle.build(case))
    if gone:
        raise ValueError(f"the exporter folded {len(gone)} parameters away ({gone[0]}, ...): another network to train")


def check(path, case, train):
    """The file must compute what the network computes."""
    o = onnxruntime.SessionOptions()
    o.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), o)
    data = feeds(case, 5, targets=False)
    theirs = session.run(list(case.outputs), data)
    net = oracle.build(case).train(train)
    with torch.no_grad():
        ours = oracle.forward(case, net, oracle.given(case, 5, torch.float32))
    far = max(float(abs(a - ours[n].numpy()).max()) for a, n in zip(theirs, case.outputs))
    if not far < 1e-4:
        raise ValueError(f"the exporter's file computes something else (largest difference {far:.2g})")


def has_norm(net):
    return any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in net.modules())


def export_losses(name, case):
    for section in case.sections:
        for term in section.loss:
            if not term["kind"][0].isupper():
                continue
            data, dtype = oracle.given(case, 0, torch.float32), torch.float32
            values = data | oracle.forward(case, oracle.build(case).to(dtype), data)
            args = tuple(values[n].detach() for n in term["inputs"])
            path = DATA / f"{name}.{term['kind']}.onnx"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(oracle.find(term["kind"])(), args, path, dynamo=False, input_names=term["inputs"],
                                  output_names=["loss"], opset_version=OPSET,
                                  dynamic_axes={n: {0: "batch"} for n in term["inputs"]})
            strip(path)


def noise_runs(case, net):
    """torch in float32: as it is, without oneDNN, and with the batch in other orders."""
    runs = [oracle.trajectory(case, copy.deepcopy(net), torch.float32)]
    with torch.backends.mkldnn.flags(enabled=False):
        runs.append(oracle.trajectory(case, copy.deepcopy(net), torch.float32, seed=1))
    runs += [oracle.trajectory(case, copy.deepcopy(net), torch.float32, seed=s) for s in (2, 3)]
    return runs


def dump(name, case):
    net = oracle.build(case)
    start = {n: p.detach().numpy().copy() for n, p in oracle.state(net).items()}
    losses, grads, final = oracle.trajectory(case, copy.deepcopy(net))
    runs = noise_runs(case, net)
    flat = lambda d: np.concatenate([np.asarray(d[n]).reshape(-1) for n in d])  # noqa: E731
    far = lambda k, d: np.array([max(np.linalg.norm(r[k][n] - d[n]) for r in runs) for n in d])  # noqa: E731
    np.savez_compressed(
        DATA / f"{name}.npz", names=list(start), sizes=[a.size for a in start.values()], start=flat(start),
        grad_names=list(grads), grads=flat({n: grads[n] for n in grads}), state=flat({n: final[n] for n in start}),
        losses=losses, loss_noise=np.max([abs(r[0] - losses) for r in runs], 0), grad_noise=far(1, grads),
        state_noise=far(2, {n: final[n] for n in start}))


def exports_of(case):
    return ["legacy"] + ["legacy_train"] * has_norm(oracle.build(case)) + ["dynamo", "dynamo_opt"]


def main(names):
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    logging.disable(logging.WARNING)
    DATA.mkdir(exist_ok=True)
    index_path = DATA / "index.json"
    index = json.loads(index_path.read_text()) if index_path.exists() else {}
    for name in names or CASES:
        case, done = CASES[name], {}
        dump(name, case)
        export_losses(name, case)
        for how in exports_of(case):
            path = DATA / f"{name}.{how}.onnx"
            try:
                export(case, path, how)
                done[how] = "ok"
            except Exception as e:  # noqa: BLE001
                path.unlink(missing_ok=True)
                done[how] = f"{type(e).__name__}: {str(e).strip().splitlines()[0][:160]}"
        index[name] = done
        index_path.write_text(json.dumps(index, indent=1, sort_keys=True) + "\n")
        print(name, done, sum(f.stat().st_size for f in DATA.glob(f"{name}.*")) // 1024, "KB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
