"""Memory: a limit computes values again with the same bits, refuses with the limit that works; nothing is kept
twice."""

import gc
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot
from models import feeds as mlp_feeds
from models import mlp, with_weights


def deep_mlp(layers=12, width=32):
    lines, shapes, x = [], {}, "x"
    for k in range(layers):
        wide = (width, 4 if k == 0 else width)
        shapes.update({f"w{k}": wide, f"b{k}": (width,)})
        lines += [f'h{k} = Gemm <transB = 1> ({x}, "w{k}", "b{k}")', f"a{k} = Tanh (h{k})"]
        x = f"a{k}"
    shapes.update({"w_out": (3, width), "b_out": (3,)})
    lines.append(f'logits = Gemm <transB = 1> ({x}, "w_out", "b_out")')
    return with_weights("mlp (float[N, 4] x) => (float[N, 3] logits) {\n" + "\n".join(lines) + "\n}", shapes, scale=0.3)


def cnn(blocks=4, channels=8):
    """Residual blocks with BatchNormalization and dropout."""
    lines, shapes = ['h = Conv <pads = [1,1,1,1]> (x, "w_in")'], {"w_in": (channels, 1, 3, 3)}
    x = "h"
    for k in range(blocks):
        shapes[f"w{k}"] = (channels, channels, 3, 3)
        shapes.update({f"{n}{k}": (channels,) for n in ("scale", "bias", "mean", "var")})
        lines += [f'c{k} = Conv <pads = [1,1,1,1]> ({x}, "w{k}")',
                  f'n{k} = BatchNormalization (c{k}, "scale{k}", "bias{k}", "mean{k}", "var{k}")',
                  f"s{k} = Add (n{k}, {x})", f"r{k} = Relu (s{k})", f"d{k} = Dropout (r{k}, ratio)"]
        x = f"d{k}"
    shapes["w_out"] = (3, channels)
    lines += [f"p = GlobalAveragePool ({x})", "f = Flatten (p)", 'logits = Gemm <transB = 1> (f, "w_out")']
    m = with_weights("cnn (float[N, 1, 12, 12] x) => (float[N, 3] logits) <float ratio = {0.25}> {\n"
                     + "\n".join(lines) + "\n}", shapes, scale=0.3)
    for t in m.graph.initializer:
        if t.name.startswith(("scale", "var")):
            t.CopyFrom(numpy_helper.from_array(np.ones(t.dims, np.float32), t.name))
    return m


def transformer(blocks=3, length=16, width=32, heads=4):
    """Pre-norm blocks: attention, then a hidden layer, dropout behind both."""
    each = width // heads
    lines, shapes, x = [], {}, "x"
    shape = {"split": [0, length, heads, each], "join": [0, length, width]}
    for k in range(blocks):
        for n in ("q", "k", "v", "o"):
            shapes[f"{n}{k}"] = (width, width)
        shapes.update({f"up{k}": (width, 4 * width), f"down{k}": (4 * width, width)})
        shapes.update({f"{n}{k}": (width,) for n in ("g", "b", "gg", "bb")})
        lines.append(f'n{k} = LayerNormalization <axis = -1> ({x}, "g{k}", "b{k}")')
        for n, perm in (("q", "0,2,1,3"), ("k", "0,2,3,1"), ("v", "0,2,1,3")):
            lines += [f'{n}m{k} = MatMul (n{k}, "{n}{k}")', f"{n}r{k} = Reshape ({n}m{k}, split)",
                      f"{n}t{k} = Transpose <perm = [{perm}]> ({n}r{k})"]
        lines += [f"z{k} = MatMul (qt{k}, kt{k})", f"p{k} = Softmax <axis = -1> (z{k})",
                  f"pd{k} = Dropout (p{k}, ratio)", f"y{k} = MatMul (pd{k}, vt{k})",
                  f"yt{k} = Transpose <perm = [0,2,1,3]> (y{k})", f"yr{k} = Reshape (yt{k}, join)",
                  f'yo{k} = MatMul (yr{k}, "o{k}")', f"x1{k} = Add ({x}, yo{k})",
                  f'm{k} = LayerNormalization <axis = -1> (x1{k}, "gg{k}", "bb{k}")', f'u{k} = MatMul (m{k}, "up{k}")',
                  f"e{k} = Tanh (u{k})", f"ue{k} = Mul (u{k}, e{k})", f'dn{k} = MatMul (ue{k}, "down{k}")',
                  f"dd{k} = Dropout (dn{k}, ratio)", f"x2{k} = Add (x1{k}, dd{k})"]
        x = f"x2{k}"
    shapes["w_out"] = (width, 3)
    lines += [f"pool = ReduceMean <axes = [1], keepdims = 0> ({x})", 'logits = MatMul (pool, "w_out")']
    consts = ", ".join(f"int64[{len(v)}] {n} = {{{', '.join(map(str, v))}}}" for n, v in shape.items())
    m = with_weights(f"block (float[N, {length}, {width}] x) => (float[N, 3] logits) <float ratio = {{0.1}}, "
                     f"{consts}> {{\n"
                     + "\n".join(lines) + "\n}", shapes, scale=0.2)
    for t in m.graph.initializer:
        if re.fullmatch(r"g\d|gg\d", t.name):
            t.CopyFrom(numpy_helper.from_array(np.ones(t.dims, np.float32), t.name))
    return m


def batch(shape, n=256):
    rng = np.random.default_rng(5)
    return {"x": rng.standard_normal((n, *shape)).astype(np.float32), "label": rng.integers(0, 3, n)}


CASES = {"mlp": (deep_mlp, (4,)), "cnn": (cnn, (1, 12, 12)), "transformer": (transformer, (16, 32))}


def prepared(name, **kw):
    make, shape = CASES[name]
    return ot.prepare(make().SerializeToString(), loss="cross_entropy", optimizer=ot.AdamW(lr=1e-2), **kw), batch(shape)


def smallest(model, feeds):
    with pytest.raises(ot.ModelError) as e:
        ot.Trainer(model, memory=1000).step(feeds)
    assert e.value.code == "OT1404"
    return re.search(r"needs (\d+[KM])", str(e.value)).group(1)


@pytest.mark.parametrize("name", CASES)
def test_limit_gives_the_same_bits(name):
    model, feeds = prepared(name)
    free = ot.Trainer(model, seed=3, threads=2)
    losses = [free.step(feeds).loss for _ in range(3)]
    m = free.memory
    assert m["nodes_computed_twice"] == 0 and m["step_bytes"] == m["step_bytes_without_limit"]
    peaks = []
    for share in (0.9, 0.75, 0.6):
        limit = m["state_bytes"] + int(share * m["step_bytes"])
        t = ot.Trainer(model, seed=3, threads=2, memory=limit)
        try:
            assert [t.step(feeds).loss for _ in range(3)] == losses
        except ot.ModelError as e:
            assert e.code == "OT1404" and share < 0.9, e
            continue
        for key in free.state:
            np.testing.assert_array_equal(t.state[key], free.state[key], err_msg=key)
        n = t.memory
        assert n["nodes_computed_twice"] > 0 and n["state_bytes"] + n["step_bytes"] <= limit
        assert n["step_bytes_without_limit"] == m["step_bytes"]
        peaks.append(n["step_bytes"])
    assert peaks and peaks[0] < m["step_bytes"]


@pytest.mark.parametrize("name", CASES)
def test_refusal_names_a_limit_that_works(name):
    model, feeds = prepared(name)
    least = smallest(model, feeds)
    t = ot.Trainer(model, seed=3, memory=least)
    free = ot.Trainer(model, seed=3)
    assert t.step(feeds).loss == free.step(feeds).loss
    m = t.memory
    assert m["state_bytes"] + m["step_bytes"] <= int(least[:-1]) << (10 if least[-1] == "K" else 20)


def test_a_limit_that_is_no_limit_changes_nothing():
    model, feeds = prepared("mlp")
    t = ot.Trainer(model, memory="1G")
    t.step(feeds)
    assert t.memory["nodes_computed_twice"] == 0
    for bad in ("500Q", "", "-1", 0, "nan"):
        with pytest.raises(ot.UsageError) as e:
            ot.Trainer(model, memory=bad)
        assert e.value.code == "OT0003"


def test_other_batch_sizes_share_the_memory_of_the_step():
    model, feeds = prepared("cnn")
    t = ot.Trainer(model)
    t.step(feeds)
    before = t.memory["step_bytes"]
    t.step({k: v[:7] for k, v in feeds.items()})
    assert t.memory["step_bytes"] == before
    want = ot.Trainer(model)
    want.step(feeds)
    want.step({k: v[:7] for k, v in feeds.items()})
    assert t.step(feeds).loss == want.step(feeds).loss


def big_mlp(path):
    """Weights large enough to be read past protobuf."""
    m = mlp(hidden=9000, seed=2)
    onnx.save(m, path)
    return m


def test_large_weights_survive_loading_and_saving(tmp_path):
    m = big_mlp(tmp_path / "m.onnx")
    loaded = ot.load(tmp_path / "m.onnx")
    again = onnx.load_from_string(loaded.proto())
    assert again.graph == m.graph
    loaded.save(tmp_path / "again.onnx")
    assert onnx.load(tmp_path / "again.onnx").graph == m.graph
    gc.collect()
    for t in m.graph.initializer:
        np.testing.assert_array_equal(loaded.parameters[t.name], numpy_helper.to_array(t))


def test_initialize_reads_the_first_values_again(tmp_path):
    path = tmp_path / "m.onnx"
    m = big_mlp(path)
    t = ot.Trainer(ot.prepare(path, loss="cross_entropy", optimizer=ot.Adam(lr=0.1)))
    first = {k: np.array(t.state[k]) for k in t.state}
    losses = [t.step(mlp_feeds()).loss for _ in range(3)]
    assert not np.array_equal(t.state["fc1.weight"], first["fc1.weight"])
    t.initialize()
    for k, v in first.items():
        np.testing.assert_array_equal(t.state[k], v, err_msg=k)
    assert [t.step(mlp_feeds()).loss for _ in range(3)] == losses
    m.graph.initializer[0].raw_data = bytes(len(m.graph.initializer[0].raw_data))
    onnx.save(m, path)
    now = {k: np.array(t.state[k]) for k in t.state}
    with pytest.raises(ot.Error) as e:
        t.initialize()
    assert e.value.code == "OT1137" and "m.onnx" in str(e.value)
    for k, v in now.items():  # nothing was reset by half
        np.testing.assert_array_equal(t.state[k], v, err_msg=k)


def test_the_model_does_not_change_with_its_trainer(tmp_path):
    big_mlp(tmp_path / "m.onnx")
    model = ot.prepare(tmp_path / "m.onnx", loss="cross_entropy", optimizer=ot.Adam(lr=0.1))
    before = {k: np.array(v) for k, v in model.parameters.items()}
    t = ot.Trainer(model)
    t.step(mlp_feeds())
    for k, v in before.items():
        np.testing.assert_array_equal(model.parameters[k], v, err_msg=k)


def wide_training_file(path):
    r = np.random.default_rng(0)
    w = [numpy_helper.from_array(r.standard_normal(s).astype(np.float32) * 0.02, n)
         for n, s in (("a", (512, 2048)), ("b", (2048, 4)))]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "a"], ["h"]), helper.make_node("Relu", ["h"], ["k"]),
                               helper.make_node("MatMul", ["k", "b"], ["y"])],
                              "wide", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 512])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])], w)
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ot.prepare(ot.load(m.SerializeToString()), loss="mse", optimizer=ot.AdamW(lr=1e-3)).save(path)


def test_weights_of_a_file_that_only_the_trainer_reads_are_not_copied(tmp_path):
    path = tmp_path / "m.train.onnx"
    wide_training_file(path)
    on_disk = path.read_bytes()
    feeds = {"x": np.ones((3, 512), np.float32), "label": np.ones((3, 4), np.float32)}
    model = ot.load(path)
    copied, taken = ot.Trainer(model), ot.Trainer(path)
    first = taken.state["a"].copy()
    assert [copied.step(feeds).loss for _ in range(3)] == [taken.step(feeds).loss for _ in range(3)]
    assert np.array_equal(model.parameters["a"], first) and not np.array_equal(taken.state["a"], first)
    assert np.array_equal(taken.model().parameters["a"], taken.state["a"])
    taken.save(tmp_path / "c.train.onnx")
    assert np.array_equal(ot.load(tmp_path / "c.train.onnx").parameters["a"], copied.state["a"])
    assert path.read_bytes() == on_disk
    taken.initialize()
    assert np.array_equal(taken.state["a"], first)


def test_a_model_that_somebody_keeps_stays_as_it_is(tmp_path):
    path = tmp_path / "m.train.onnx"
    wide_training_file(path)
    kept = ot.load(path)
    before = kept.parameters["a"].copy()
    t = ot.Trainer(kept)
    del t
    feeds = {"x": np.ones((3, 512), np.float32), "label": np.ones((3, 4), np.float32)}
    a, b = ot.Trainer(kept), ot.Trainer(kept)
    a.step(feeds)
    assert np.array_equal(kept.parameters["a"], before) and np.array_equal(b.state["a"], before)
