"""`ot.to_tf`: training files in TensorFlow step as onnxtrain does, before and after a SavedModel."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import onnxtrain as ot

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "with_tensorflow"))
import to_tf_trajectories as trajectories  # noqa: E402

TEN = ["lenet.legacy", "resnet.dynamo", "unet.legacy", "superres.dynamo", "vit.legacy", "gru.legacy", "gan.legacy",
       "dlrm.dynamo", "moe.legacy", "seq2seq.legacy"]


def test_ten_files_ten_steps_and_their_saved_models(tmp_path):
    first, bad = {}, {}
    for case in TEN:
        r = trajectories.run(*case.split("."), tmp_path / case)
        first[str(tmp_path / case)] = r["losses"]
        if not trajectories.good(r):
            bad[case] = r
    assert not bad
    later = trajectories.reload(first)
    for folder, losses in first.items():
        np.testing.assert_allclose(later[folder], losses, rtol=1e-6, atol=1e-7, err_msg=folder)


SMALL = """
<ir_version: 10, opset_import: ["" : 22, "ai.onnx.preview.training" : 1]>
main (float[n, 3] x) => (float[n, 2] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> { y = MatMul (x, w) }
"""


def stepped(model, feeds, steps=3):
    t = ot.Trainer(model)
    return [t.step(feeds).loss for _ in range(steps)], {n: t.state[n] for n in t.state}


def test_a_small_module():
    model = ot.prepare(ot.parse(SMALL), loss="mse", optimizer=ot.Adam(lr=0.1))
    x, y = np.ones((4, 3), np.float32), np.zeros((4, 2), np.float32)
    made = ot.to_tf(model)
    assert isinstance(made, tf.Module) and [v.name for v in made.trainable_variables] == ["w:0"]
    np.testing.assert_allclose(made(x), ot.Session(model).run({"x": x})["y"])
    losses, state = stepped(model, {"x": x, "label": y})
    got = [made.train_step(x=x, label=y) for _ in range(3)]
    assert set(got[0]) == {"loss"}
    np.testing.assert_allclose([float(g["loss"]) for g in got], losses, rtol=1e-6)
    for n, v in state.items():
        np.testing.assert_allclose(made.variable(n).numpy(), v, rtol=1e-5, atol=1e-6, err_msg=n)
    back = made.model()  # and on in onnxtrain
    more = ot.Trainer(back).step({"x": x, "label": y}).loss
    np.testing.assert_allclose(more, stepped(model, {"x": x, "label": y}, 4)[0][-1], rtol=1e-5)
    made.initialize()
    np.testing.assert_array_equal(made.variable("w").numpy(), model.parameters["w"])


def test_names_that_tensorflow_does_not_take():
    text = SMALL.replace("w = {", '"_w:0 a" = {').replace("(x, w)", '(x, "_w:0 a")')
    try:
        model = ot.parse(text)
    except ot.Error:
        pytest.skip("the text syntax has no such names")
    made = ot.to_tf(model)
    assert made.renamed == {"_w:0 a": "v_w_0_a"} and list(made.parameters) == ["_w:0 a"]


HAND_WRITTEN = """
<ir_version: 10, opset_import: ["" : 22, "ai.onnx.preview.training" : 1]>
main (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul (x, w) }
"""


def hand_written(nodes, outputs="float loss, float[2] w_new", constants="<float lr = {0.1}>"):
    """A file with a training section of these nodes, made without the package onnx."""
    from onnxtrain.converters.onnx_file import Graph, Info, Model, Node, Training

    main = Graph("main", [Node("Mul", ["x", "w"], ["y"])], [Info("x", np.float32, [2])], [Info("y", np.float32, [2])],
                 {"w": np.array([1, 2], np.float32)})
    step = Graph("step", nodes, [Info("t", np.float32, [2])],
                 [Info("loss", np.float32, []), Info("w_new", np.float32, [2])], {"lr": np.array(0.1, np.float32)})
    model = Model(main, {"": 22, "ai.onnx.preview.training": 1}, [Training(step, [("w", "w_new")])])
    return ot.load(model.encode()), Node


def test_gradient_nodes_by_hand():
    from onnxtrain.converters.onnx_file import Node

    g = "ai.onnx.preview.training"
    forward = [Node("Sub", ["y", "t"], ["d"]), Node("Mul", ["d", "d"], ["q"]),
               Node("ReduceSum", ["q"], ["loss"], attrs={"keepdims": 0})]
    update = [Node("Mul", ["lr", "grad"], ["s"]), Node("Sub", ["w", "s"], ["w_new"])]
    here = Node("Gradient", ["w", "x", "t"], ["grad"], g, "", {"xs": ["w"], "zs": ["x", "t"], "y": "loss"})
    elsewhere = Node("Gradient", ["w2", "x", "t"], ["grad"], g, "", {"xs": ["w"], "zs": ["x", "t"], "y": "loss"})
    half = [Node("Constant", [], ["half"], attrs={"value": np.array(0.5, np.float32)}),
            Node("Mul", ["w", "half"], ["w2"])]
    inside = Node("Gradient", ["y", "t"], ["grad"], g, "", {"xs": ["y"], "zs": ["t"], "y": "loss"})
    twice = [Node("Gradient", ["w", "x", "t"], ["g1"], g, "", {"xs": ["w"], "zs": ["x", "t"], "y": "loss"}),
             Node("Mul", ["g1", "g1"], ["g2"]), Node("ReduceSum", ["g2"], ["norm"], attrs={"keepdims": 0}),
             Node("Gradient", ["w", "x", "t"], ["grad"], g, "", {"xs": ["w"], "zs": ["x", "t"], "y": "norm"})]
    for nodes in ([*forward, here, *update], [*forward, *half, elsewhere, *update], [*forward, inside, *update],
                  [*forward, *twice, *update]):
        model, _ = hand_written(nodes)
        feeds = {"x": np.float32([1, 3]), "t": np.float32([0.5, -1])}
        losses, state = stepped(model, feeds)
        made = ot.to_tf(model)
        np.testing.assert_allclose([float(made.train_step(**feeds)["loss"]) for _ in range(3)], losses, rtol=1e-5)
        np.testing.assert_allclose(made.variable("w").numpy(), state["w"], rtol=1e-5)


DROPOUT = """
<ir_version: 10, opset_import: ["" : 22]>
main (float[n, 1000] x) => (float[n, 1000] y) <float[1000] w = {1}, float ratio = {0.3}>
{ a = Mul (x, w) y = Dropout (a, ratio) }
"""


def test_dropout_draws_anew_and_can_be_repeated():
    model = ot.prepare(ot.parse(DROPOUT.replace("<float[1000] w = {1}", "<float[1] w = {1}")), loss="mse",
                       optimizer=ot.SGD(lr=0.0))
    x = np.ones((50, 1000), np.float32)
    feeds = {"x": x, "label": np.zeros_like(x)}
    runs = []
    for seed in (0, 0, 1):
        made = ot.to_tf(model, seed=seed)
        runs.append([float(made.train_step(**feeds)["loss"]) for _ in range(3)])
    assert runs[0] == runs[1] and runs[0] != runs[2] and len(set(runs[0])) == 3
    np.testing.assert_allclose(np.mean(runs[0]), 1 / 0.7, rtol=5e-3)  # what is kept is scaled
    np.testing.assert_array_equal(made(x), x)


def test_sequences_are_ragged():
    model = ot.parse("""
    <ir_version: 10, opset_import: ["" : 22]>
    main (float[n, 3] x) => (seq(float) s, float[m, 3] back)
    { parts = Constant <value_ints = [2, 1]> () s = SplitToSequence (x, parts)
      back = ConcatFromSequence <axis = 0> (s) }
    """)
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    got = ot.to_tf(model)(x)
    assert isinstance(got["s"], tf.RaggedTensor) and got["s"].to_list() == [x[:2].tolist(), x[2:].tolist()]
    np.testing.assert_array_equal(got["back"], x)


@pytest.mark.parametrize("case", ["unet.dynamo", "wavenet.dynamo"])
def test_images_stay_channels_last(case):
    """Group normalizations whose sizes are computed from constants, and halves taken out of a sequence of parts."""
    r = trajectories.run(*case.split("."))
    assert trajectories.good(r) and r["transposes"] == 0


@pytest.mark.parametrize("sizes, places", [("value_ints = [2, 3]", (0, -1)), ("value_int = 2", (1, 2)),
                                           ("value_int = 2", (-1, -3))])
def test_parts_of_a_sequence(sizes, places):
    model = ot.parse(f"""
    <ir_version: 10, opset_import: ["" : 22]>
    main (float[n, 5, 2] x) => (float[n, a, 2] y, float[n, b, 2] z)
    {{ sizes = Constant <{sizes}> () i = Constant <value_int = {places[0]}> () k = Constant <value_int = {places[1]}> ()
       s = SplitToSequence <axis = 1> (x, sizes) y = SequenceAt (s, i) z = SequenceAt (s, k) }}
    """)
    x = np.arange(20, dtype=np.float32).reshape(2, 5, 2)
    got, want = ot.to_tf(model)(x), ot.Session(model).run({"x": x})
    for name, v in want.items():
        np.testing.assert_array_equal(got[name], v)


def test_refused_nodes_in_a_branch():
    model = ot.parse("""
    <ir_version: 10, opset_import: ["" : 22]>
    main (bool c, int64[n] at) => (int64[k] y)
    { y = If (c) <then_branch = a () => (int64[k] u) { u = Unique <axis = 0> (at) },
                  else_branch = b () => (int64[n] v) { v = Identity (at) }> }
    """)
    with pytest.raises(ot.ModelError) as e:
        ot.to_tf(model)
    assert e.value.code == "OT1711" and "Unique" in str(e.value)


def test_a_row_beside_a_turned_product():
    """TensorFlow's optimizer of graphs takes the row for a bias and then wants a vector."""
    model = ot.parse("""
    <ir_version: 10, opset_import: ["" : 22]>
    main (float[6, 3] a, float[6, 4] b, float[1, 4] c) => (float[3, 4] y) { y = Gemm <transA = 1> (a, b, c) }
    """)
    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(size=s).astype(np.float32) for s in ((6, 3), (6, 4), (1, 4)))
    np.testing.assert_allclose(ot.to_tf(model)(a, b, c), a.T @ b + c, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_by_all_bits_and_more(direction):
    model = ot.parse(f"""
    <ir_version: 13, opset_import: ["" : 28]>
    main (int8[n] x, int8[n] by) => (int8[n] y) {{ y = BitShift <direction = "{direction}"> (x, by) }}
    """)
    x, by = np.array([-8, 5, 5, -8, 1], np.int8), np.array([8, 9, -1, -3, 2], np.int8)
    np.testing.assert_array_equal(ot.to_tf(model)(x, by), [0, 0, 0, 0, 4] if direction == "LEFT" else [-1, 0, 0, -1, 0])


def test_refused_nodes_are_named_at_once():
    model = ot.parse("""
    <ir_version: 10, opset_import: ["" : 22]>
    main (float[n, 3] x, int64[m] at) => (float y, int64[k] z)
    { w = BlackmanWindow (at) z = Unique <axis = 0> (at) y = ReduceSum <keepdims = 0> (x) }
    """.replace("w = BlackmanWindow (at) ", "").replace("float y", "float y, float[a, b, c] w").replace(
        "z = Unique", 'w = STFT (x3, step) x3 = Identity (x) step = Identity (at) z = Unique'))
    with pytest.raises(ot.ModelError) as e:
        ot.to_tf(model)
    assert e.value.code == "OT1711" and "STFT" in str(e.value) and "Unique" in str(e.value)
