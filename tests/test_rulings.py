"""Rulings G1-G16 on what ONNX leaves open about training files: each test is named after its ruling and
shows the behaviour on a file written by hand or by `prepare`. (There are no rulings G3, G10 and G11.)"""

import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, cnn, images, mlp, save, table  # noqa: E402

TRAINING = "ai.onnx.preview.training"
F = TensorProto.FLOAT


def text_model(main, *steps, ir=8, opset=17):
    """A training model: main graph and (algorithm, {key: value}) pairs in ONNX's text syntax."""
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}, "{TRAINING}" : 1]>\n'
    m = onnx.parser.parse_model(head + main)
    for algorithm, updates in steps:
        info = m.training_info.add()
        info.algorithm.CopyFrom(onnx.parser.parse_graph(algorithm))
        for key, value in updates.items():
            e = info.update_binding.add()
            e.key, e.value = key, value
    return m.SerializeToString()


LINE = "main (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }"
STEP = """step () => (float[2] w_new, float loss) {
    loss = ReduceSum<keepdims=0>(y)
    g = %s.Gradient<xs=["w"], zs=["x"], y="loss">(w, x)
    w_new = Sub(w, g)
}""" % TRAINING
X = np.array([3, 5], np.float32)


def rules(model):
    return {(f["rule"], f["level"]) for f in ot.check(model)}


def test_g1_a_key_repeated_over_sections_is_read_with_a_warning_and_assigned_after_each():
    m = text_model(LINE, (STEP, {"w": "w_new"}),
                   (STEP.replace("step", "step2").replace("w_new", "w_new2"), {"w": "w_new2"}))
    assert ("G1", "warning") in rules(m)
    t = ot.Trainer(ot.load(m))
    t.step({"x": X})
    np.testing.assert_array_equal(t.state["w"], [1 - 2 * 3, 2 - 2 * 5])  # two assignments
    twice = onnx.load_from_string(text_model(LINE, (STEP, {"w": "w_new"})))
    twice.training_info[0].update_binding.add().CopyFrom(twice.training_info[0].update_binding[0])
    assert ("C10", "error") in rules(twice.SerializeToString())  # never within one list
    prepared = onnx.load_from_string(ot.prepare(mlp().SerializeToString()).proto())
    keys = [b.key for t in prepared.training_info for b in t.update_binding]
    assert len(keys) == len(set(keys))  # and we write unique keys


def test_g2_an_update_may_be_an_output_of_the_main_graph():
    m = text_model("main (float[2] x) => (float[2] y, float[2] w_next) <float[2] w = {1, 2}> { y = Mul(x, w)  "
                   "w_next = Add(w, x) }",
                   ("step () => (float loss) { loss = ReduceSum<keepdims=0>(y) }", {"w": "w_next"}))
    t = ot.Trainer(ot.load(m))
    assert t.step({"x": X}).loss == 13
    np.testing.assert_array_equal(t.state["w"], [4, 7])


def test_g4_one_name_is_one_variable():
    step = """step%d () => (float n_new, float loss) <float n = {0}> {
        one = Constant<value_float=1.0>() n_new = Add(n, one) loss = ReduceSum<keepdims=0>(y) }"""
    m = text_model(LINE, (step % 1, {"n": "n_new"}), (step % 2, {}))
    assert ("G4", "error") in rules(m)
    with pytest.raises(ot.ModelError):
        ot.load(m)


def test_g5_a_fed_state_variable_wins_for_that_step_and_the_binding_still_assigns():
    main = LINE.replace("(float[2] x)", "(float[2] x, float[2] w)")
    t = ot.Trainer(ot.load(text_model(main, (STEP, {"w": "w_new"}))))
    assert t.step({"x": X, "w": np.array([10, 20], np.float32)}).loss == 3 * 10 + 5 * 20
    np.testing.assert_array_equal(t.state["w"], [10 - 3, 20 - 5])
    assert t.step({"x": X}).loss == 3 * 7 + 5 * 15  # the next step reads what was assigned


def test_g6_main_inputs_the_step_does_not_need_are_not_required():
    main = """main (float[2] x, float[2] other) => (float[2] y, float[2] z) <float[2] w = {1, 2}> {
        y = Mul(x, w)  z = Mul(other, w) }"""
    t = ot.Trainer(ot.load(text_model(main, (STEP, {"w": "w_new"}))))
    assert t.step({"x": X}).loss == 13


def test_g7_the_main_graph_stays_inference_and_the_step_carries_a_training_copy():
    train = ot.prepare(cnn().SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=0.1))
    p = onnx.load_from_string(train.proto())
    bn = [n for n in p.graph.node if n.op_type == "BatchNormalization"]
    assert all(a.i == 0 for n in bn for a in n.attribute if a.name == "training_mode") and len(bn) == 1
    copies = [n for n in p.training_info[0].algorithm.node if n.op_type == "BatchNormalization"]
    assert [a.i for n in copies for a in n.attribute if a.name == "training_mode"] == [1]
    assert {"bn.mean", "bn.var"} <= {b.key for b in p.training_info[0].update_binding}
    assert [n.input[1] for n in copies] == ["bn.weight"]  # shared initializers
    frozen = onnx.load_from_string(ot.prepare(cnn().SerializeToString(), loss="cross_entropy", freeze=["bn.*"]).proto())
    assert not any(n.op_type == "BatchNormalization" for n in frozen.training_info[0].algorithm.node
                   for a in n.attribute if a.name == "training_mode" and a.i)
    x, y = images(16)
    t = ot.Trainer(train)
    before = t.state["bn.mean"]
    t.step({"x": x, "label": y})
    assert np.any(t.state["bn.mean"] != before)


def test_g8_random_numbers_depend_on_seed_node_and_step_only():
    x, y = images(16)
    train = ot.prepare(cnn().SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=0.1))

    def losses(seed, threads):
        t = ot.Trainer(train, seed=seed, threads=threads)
        return [t.step({"x": x, "label": y}).loss for _ in range(4)]

    assert losses(3, 1) == losses(3, 4) != losses(4, 1)
    still = ot.prepare(cnn().SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=1e-30))
    t = ot.Trainer(still, seed=0)
    assert t.step({"x": x, "label": y}).loss != t.step({"x": x, "label": y}).loss  # another mask in every step


def test_g9_a_checkpoint_is_the_same_file_with_new_values(tmp_path):
    train = ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.Adam(lr=1e-2))
    t = ot.Trainer(train, seed=5)
    x, y = table(32)
    for _ in range(3):
        t.step({"x": x, "label": y})
    t.save(tmp_path / "last.train.onnx")
    p, q = onnx.load(tmp_path / "last.train.onnx"), onnx.load_from_string(train.proto())
    assert [n.op_type for n in p.graph.node] == [n.op_type for n in q.graph.node]
    assert p.training_info[0].algorithm.node == q.training_info[0].algorithm.node
    meta = {e.key: e.value for e in p.metadata_props}
    assert meta["onnxtrain.step"] == "3" and meta["onnxtrain.seed"] == "5"
    assert any(k.startswith("onnxtrain.checksum.") for k in meta)
    assert ot.check(tmp_path / "last.train.onnx") == []


def test_g12_a_gradient_of_a_tensor_is_the_product_with_ones_and_zero_where_nothing_flows():
    m = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) '
                                '<float[2] w = {1,2}, float[2] u = {1,1}> { h = Mul(x, w) y = Relu(h) z = Mul(u, x) }')
    g = ot.gradients(m.SerializeToString(), {"x": X}, of="y", wrt=["w", "x", "u"])
    np.testing.assert_array_equal(g["w"], X)
    np.testing.assert_array_equal(g["u"], [0, 0])  # independent of y
    zero = ot.gradients(m.SerializeToString(), {"x": np.zeros(2, np.float32)}, of="y", wrt=["x"])
    np.testing.assert_array_equal(zero["x"], [0, 0])  # PyTorch's subgradient of Relu at 0


def test_g13_schedule_clipping_and_accumulation_are_ordinary_nodes():
    p = onnx.load_from_string(ot.prepare(mlp().SerializeToString(), loss="cross_entropy", clip_norm=1.0, accumulate=2,
                                         schedule={"kind": "cosine", "total_steps": 10}).proto())
    ops = {n.op_type for n in p.training_info[0].algorithm.node}
    assert {"Cos", "Sqrt", "Where", "Gradient"} <= ops


def test_g14_what_onnx_lacks_is_a_local_function_of_standard_operators():
    p = onnx.load_from_string(ot.prepare(mlp().SerializeToString(), loss="cross_entropy",
                                         optimizer=ot.AdamW(lr=1e-3)).proto())
    domains = {n.domain for n in p.training_info[0].algorithm.node} - {"", "ai.onnx", TRAINING}
    bodies = {(f.domain, f.name): f for f in p.functions}
    for n in p.training_info[0].algorithm.node:
        if n.domain in domains:
            assert {b.domain for b in bodies[n.domain, n.op_type].node} <= {"", "ai.onnx"}
    assert domains


def test_g15_lowered_has_no_gradient_node_and_the_same_numbers():
    x, y = table(32)
    results = []
    for lowered in (False, True):
        train = ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=0.1), lowered=lowered)
        p = onnx.load_from_string(train.proto())
        assert any(n.op_type == "Gradient" for n in p.training_info[0].algorithm.node) != lowered
        t = ot.Trainer(train)
        results.append([t.step({"x": x, "label": y}).loss for _ in range(5)])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_g16_everything_ignored_is_zero_and_worth_a_warning(tmp_path):
    train = ot.prepare(mlp().SerializeToString(), loss=ot.losses.CrossEntropy(ignore_index=-100),
                       optimizer=ot.SGD(lr=0.1))
    t = ot.Trainer(train)
    x, _ = table(8)
    before = {k: v.copy() for k, v in t.state.items() if "weight" in k}
    assert t.step({"x": x, "label": np.full(8, -100)}).loss == 0
    assert all(np.array_equal(t.state[k], v) for k, v in before.items())
    save(mlp(), tmp_path / "mlp.onnx")
    np.savez(tmp_path / "d.npz", x=x, y=np.full(8, -100))
    r = cli("train", "mlp.onnx", "--data", "d.npz", "--ignore-index", "-100", "--loss", "cross_entropy", "--optimizer",
            "sgd", "--valid", "0", "--epochs", "1", cwd=tmp_path)
    assert r.returncode == 0 and "warning[OT3101]" in r.stderr, r.stderr


# ---- beside the rulings: sections and old files

def test_several_sections_run_in_order_or_one_at_a_time():
    second = "step2 () => (float[2] v_new) { v_new = Add(v, w) }"
    main = LINE.replace("<float[2] w = {1, 2}>", "<float[2] w = {1, 2}, float[2] v = {0, 0}>").replace(
        "y = Mul(x, w)", "y0 = Mul(x, w) y = Add(y0, v)"
    )
    t = ot.Trainer(ot.load(text_model(main, (STEP, {"w": "w_new"}), (second, {"v": "v_new"}))))
    t.step({"x": X})
    np.testing.assert_array_equal(t.state["v"], [1 - 3, 2 - 5])  # the second sees what the first assigned
    t.step({"x": X}, which=1)
    np.testing.assert_array_equal(t.state["w"], [-2, -3])
    np.testing.assert_array_equal(t.state["v"], [-4, -6])
    with pytest.raises(ot.Error):
        t.step({"x": X}, which=2)


PAIR = "main (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {3, 4}> { p = Mul(x, a)  y = Add(p, b) }"


def test_bindings_that_name_state_variables_themselves_read_their_old_values():
    step = "step () => (float loss, float[2] a, float[2] b) { loss = ReduceSum<keepdims=0>(y) }"
    t = ot.Trainer(ot.load(text_model(PAIR, (step, {"a": "b", "b": "a"}))))
    for k in range(3):
        out = t.step({"x": X}).outputs
        was = [[1, 2], [3, 4]] if k % 2 == 0 else [[3, 4], [1, 2]]
        assert [out["a"].tolist(), out["b"].tolist()] == was  # outputs of a step are from before the assignment
        assert [t.state["a"].tolist(), t.state["b"].tolist()] == was[::-1]


def test_state_variables_of_every_kind_survive_steps_and_files(tmp_path):
    step = """step () => (float loss, string[2] s2, bool f2, int32[3] k2)
        <string[2] s = {"a long text that owns memory", "b"}, bool f = {1}, int32[3] k = {1, 2, 3}> {
        loss = ReduceSum<keepdims=0>(y)
        turned = Constant<value_ints=[1, 0]>()
        s2 = Gather(s, turned)  f2 = Not(f)  k2 = Add(k, k) }"""
    t = ot.Trainer(ot.load(text_model(PAIR, (step, {"s": "s2", "f": "f2", "k": "k2"}))))
    for _ in range(3):
        t.step({"x": X})
    t.save(tmp_path / "c.train.onnx")
    for state in (t.state, ot.Trainer(ot.load(tmp_path / "c.train.onnx")).state):
        assert list(state["s"]) == ["b", "a long text that owns memory"]
        assert not state["f"] and state["k"].tolist() == [8, 16, 24]
    t.initialize()
    assert list(t.state["s"]) == ["a long text that owns memory", "b"]


def in_a_branch(inside):
    return """step () => (float loss, float[2] a2) <float limit = {100}, float rate = {0.5}> {
        q = Mul(y, y)  loss = ReduceSum<keepdims=0>(q)  c = Less(loss, limit)
        a2 = If(c)<then_branch = t () => (float[2] o) { %s  d = Mul(g, rate)  o = Sub(a, d) },
                   else_branch = e () => (float[2] o2) { o2 = Identity(a) }>
    }""" % (inside % {"gradient": TRAINING + ".Gradient"})


@pytest.mark.parametrize("inside, factor", [
    ('g = %(gradient)s<xs=["a"], zs=["x"], y="loss">(a, x)', 1),  # y is of the enclosing graph
    ('two = Constant<value_float=2.0>() l = Mul(loss, two) g = %(gradient)s<xs=["a"], zs=["x"], y="l">(a, x)',
     2),  # the way begins there
    ('g = %(gradient)s<xs=["a"], zs=["b"], y="loss">(a, b)', 1)])
def test_a_gradient_in_a_branch_reaches_through_the_enclosing_graph(inside, factor):
    t = ot.Trainer(ot.load(text_model(PAIR, (in_a_branch(inside), {"a": "a2"}))))
    x = np.array([0.5, -1], np.float32)
    t.step({"x": x})
    after = np.array([1, 2]) - 0.5 * factor * 2 * (x * [1, 2] + [3, 4]) * x
    np.testing.assert_allclose(t.state["a"], after, rtol=1e-6)
    t.step({"x": 100 * x})  # beyond the limit: nothing is done
    np.testing.assert_allclose(t.state["a"], after, rtol=1e-6)


def test_a_gradient_two_bodies_deep_reaches_out_too():
    step = """step () => (float loss, float[2] a2) <int64 n = {2}, bool c = {1}, float zero = {0}> {
        q = Mul(y, y)  loss = ReduceSum<keepdims=0>(q)
        a2 = Loop(n, c, a)<body = l (int64 i, bool go, float[2] w) => (bool on, float[2] w2) {
            on = Identity(go)  m = Less(zero, loss)
            w2 = If(m)<then_branch = t () => (float[2] o) { g = %s.Gradient<xs=["a"], zs=["x"], y="loss">(a, x)
            o = Sub(w, g) },
                       else_branch = e () => (float[2] o2) { o2 = Identity(w) }> }>
    }""" % TRAINING
    t = ot.Trainer(ot.load(text_model(PAIR, (step, {"a": "a2"}))))
    x = np.array([0.5, -1], np.float32)
    t.step({"x": x})
    np.testing.assert_allclose(t.state["a"], [1, 2] - 2 * 2 * (x * [1, 2] + [3, 4]) * x, rtol=1e-6)


def test_a_gradient_in_a_branch_does_not_repeat_random_numbers_silently():
    step = in_a_branch('g = %(gradient)s<xs=["a"], zs=["x"], y="loss">(a, x)').replace(
        "q = Mul(y, y)", "half = Constant<value_float=0.5>()  on = Constant<value = bool {1}>()  z = Dropout(y, half, "
                         "on)  q = Mul(z, z)")
    with pytest.raises(ot.ModelError) as e:
        ot.Trainer(ot.load(text_model(PAIR, (step, {"a": "a2"})))).step({"x": X})
    assert e.value.code == "OT1316" and "Dropout" in str(e.value)


def test_a_file_of_onnx_1_7_calls_the_main_graph():
    step = """step (float[2] batch) => (float[2] w_new, float loss) {
        p = %s.GraphCall<graph_name="main">(batch)
        loss = ReduceSum<keepdims=0>(p)
        g = %s.Gradient<xs=["w"], zs=["batch"], y="loss">(w, batch)
        w_new = Sub(w, g)
    }""" % (TRAINING, TRAINING)
    t = ot.Trainer(ot.load(text_model(LINE, (step, {"w": "w_new"}), ir=7, opset=12)))
    assert t.step({"batch": X}).loss == 13
    np.testing.assert_array_equal(t.state["w"], [1 - 3, 2 - 5])
    assert t.step({"batch": X}).loss == 3 * -2 + 5 * -3
