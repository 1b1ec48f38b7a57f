"""Loops that grow or never end: a few of the models of hostile_loops.py, with small budgets so that it is quick."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import onnxtrain as ot

sys.path.insert(0, str(Path(__file__).parent))
import hostile_loops  # noqa: E402
from measured import command  # noqa: E402


@pytest.mark.parametrize("seed", [3, 11, 17, 29])
def test_random_loops_stay_within_their_budget(seed, tmp_path):
    os.environ["ONNXTRAIN_TIME"] = "2"
    try:
        for name, _, _, _, _, problem in hostile_loops.run_case(seed, tmp_path, "128M"):
            assert not problem, f"{name}: {problem}"
    finally:
        del os.environ["ONNXTRAIN_TIME"]


def loop(nodes, state_shape=None, trips=10**6, elem=T.FLOAT, scan=None):
    """x [4] -> Loop whose body is `nodes` from s to s2."""
    i = hostile_loops.info
    outputs = [i("c2", T.BOOL, []), i("s2", elem, state_shape)] + ([i(scan, T.FLOAT)] if scan else [])
    body = h.make_graph(
        [*nodes, h.make_node("Identity", ["c"], ["c2"])],
        "body",
        [i("i", T.INT64, []), i("c", T.BOOL, []), i("s", elem, state_shape)],
        outputs,
    )
    node = h.make_node("Loop", ["n", "", "xw"], ["y"] + (["stack"] if scan else []), body=body, name="again")
    g = h.make_graph(
        [h.make_node("Mul", ["x", "w"], ["xw"]), node],
        "g",
        [i("x", elem, [4])],
        [i("stack" if scan else "y", elem)],
        [h.make_tensor("n", T.INT64, [], [trips]), h.make_tensor("w", elem, [4], [1.0] * 4)],
    )
    return h.make_model(g, opset_imports=[h.make_opsetid("", 21)], ir_version=10).SerializeToString()


GROWING = loop([h.make_node("Concat", ["s", "s"], ["s2"], axis=0)])
SAME_SHAPES = loop([h.make_node("Relu", ["s"], ["s2"])], [4], trips=1000)
STACKING = loop(
    [
        h.make_node("Relu", ["s"], ["s2"]),
        h.make_node("Constant", [], ["k"], value=h.make_tensor("k", T.INT64, [1], [10**5])),
        h.make_node("ConstantOfShape", ["k"], ["part"]),
    ],
    [4],
    trips=10**6,
    scan="part",
)
X = np.ones(4, np.float32)


@pytest.mark.parametrize("model", [GROWING, STACKING], ids=["state", "scan output"])
def test_memory_names_node_count_and_argument(model):
    with pytest.raises(ot.ModelError) as e:
        ot.Session(model, memory="64M").run({"x": X})
    text = str(e.value)
    assert e.value.code == "OT1401" and "'again' (Loop)" in text and "in iteration" in text
    assert "memory='1" in e.value.hint and "M' allows more" in e.value.hint


def test_memory_holds_in_the_backward_pass():
    wide = loop(
        [
            h.make_node("Tile", ["s", "r"], ["t"]),
            h.make_node("Slice", ["t", "z", "four"], ["s2"]),
            *[
                h.make_node("Constant", [], [n], value=h.make_tensor(n, T.INT64, [1], [v]))
                for n, v in (("r", 10**5), ("z", 0), ("four", 4))
            ],
        ][::-1],
        [4],
        trips=1000,
    )
    with pytest.raises(ot.ModelError) as e:
        ot.gradients(wide, {"x": X}, wrt=["w"], memory="1M")
    assert e.value.code == "OT1401"


def test_iterations_and_time():
    with pytest.raises(ot.ModelError, match="OT1402") as e:
        ot.Session(SAME_SHAPES, max_loop_trips=10).run({"x": X})
    assert "max_loop_trips=1000" in e.value.hint
    assert ot.Session(SAME_SHAPES, max_loop_trips=1000).run({"x": X})["y"].shape == (4,)
    endless = loop([h.make_node("Relu", ["s"], ["s2"])], [4], trips=10**7)
    with pytest.raises(ot.ModelError, match="OT1405"):
        ot.Session(endless, time=0.3).run({"x": X})


def test_the_environment_sets_a_budget(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(GROWING)
    np.savez(tmp_path / "x.npz", x=X)
    code, text, peak = command("run", path, "--inputs", tmp_path / "x.npz", ONNXTRAIN_MEMORY="32M")
    assert code == 3 and "the limit is 32M" in text and "allows more" in text, text
    assert peak < 32 + hostile_loops.PROGRAM_MIB
    code, text, _ = command("run", path, "--inputs", tmp_path / "x.npz", ONNXTRAIN_MAX_LOOP_TRIPS="5")
    assert code == 3 and "OT1402" in text, text


def test_results_that_are_kept_do_not_count():
    session = ot.Session(loop([h.make_node("Concat", ["s", "s"], ["s2"], axis=0)], trips=18), memory="48M")
    kept = [session.run({"x": X})["y"] for _ in range(20)]
    assert len(kept) == 20 and kept[0].nbytes == 4 << 20


def test_a_valid_model_says_nothing(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(SAME_SHAPES)
    code, text, _ = command("check", path)
    assert code == 0, text
