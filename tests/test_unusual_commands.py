"""Flags that do not go together, names that are not there, numbers out of range: refused or said, never passed over."""

import json
import shutil
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, lstm, mlp, table  # noqa: E402


def log(run):
    return [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]


def same(a, b, cwd):
    return cli("diff", f"{a}/checkpoints/last.train.onnx", f"{b}/checkpoints/last.train.onnx", cwd=cwd).returncode == 0


@pytest.fixture
def run(work):
    r = cli("train", "mlp.onnx", "--data", "d.npz", "--epochs", "2", "--optimizer", "sgd", "--lr", "0.1", "--batch",
            "16", "--out", "run", cwd=work)
    assert r.returncode == 0, r.stderr
    return work


def test_a_run_with_nothing_left_to_do_is_not_blamed(run):
    r = cli("train", "--resume", "run", "--epochs", "1", cwd=run)
    assert r.returncode == 0 and "nothing to do" in r.stdout + r.stderr
    assert "OT3127" not in r.stderr


CHANGES = [["--optimizer", "adam"], ["--loss", "mse"], ["--freeze", "fc1.*"], ["--only", "fc2.*"], ["--clip", "1"],
           ["--clip-value", "1"], ["--accumulate", "2"], ["--weight-decay", "0.1"], ["--momentum", "0.9"],
           ["--seed", "5"], ["--label-smoothing", "0.1"], ["--as-is"]]


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c[0])
@pytest.mark.parametrize("place", ["run", "run/checkpoints/last.train.onnx"])
def test_a_run_goes_on_as_it_began(run, change, place):
    r = cli("train", "--resume", place, "--epochs", "3", *change, cwd=run)
    assert r.returncode == 2 and "OT0004" in r.stderr and change[0] in r.stderr
    assert len(log(run / "run")) == 2


def test_the_same_again_is_no_change(run):
    shutil.copytree(run / "run", run / "other")
    r = cli("train", "--resume", "run", "--epochs", "3", "--optimizer", "sgd", "--lr", "0.10", "--seed", "0",
            "--accumulate", "1", cwd=run)
    assert r.returncode == 0, r.stderr
    assert cli("train", "--resume", "other", "--epochs", "3", cwd=run).returncode == 0
    assert same("run", "other", run)


def test_a_checkpoint_by_its_path_goes_on_with_the_settings_of_its_run(run):
    r = cli("train", "--resume", "run/checkpoints/last.train.onnx", "--epochs", "4", "--out", "file", cwd=run)
    assert r.returncode == 0 and "batch 16" in r.stderr + r.stdout
    assert cli("train", "--resume", "run", "--epochs", "4", cwd=run).returncode == 0
    assert same("run", "file", run)


def test_a_lone_checkpoint_knows_how_it_was_made(work):
    """Its settings are in the file: another rate or schedule goes the way of a run that is resumed."""
    r = cli("train", "mlp.onnx", "--data", "d.npz", "--epochs", "2", "--optimizer", "sgd", "--schedule", "cosine",
            "--out", "run", cwd=work)
    assert r.returncode == 0
    shutil.copy(work / "run/checkpoints/last.train.onnx", work / "lone.train.onnx")
    for flags in (["--lr", "0.5"], ["--schedule", "linear"]):
        for name, what in (("lone", "lone.train.onnx"), ("again", "run")):
            r = cli("train", "--resume", what, "--data", "d.npz", "--epochs", "4", *flags, "--out", name, cwd=work)
            assert r.returncode == 0, r.stderr
        assert [e["lr"] for e in log(work / "lone")] == [e["lr"] for e in log(work / "again")]
    r = cli("train", "lone.train.onnx", "--data", "d.npz", "--epochs", "4", "--optimizer", "adam", cwd=work)
    assert r.returncode == 2 and "OT0004" in r.stderr
    r = cli("train", "--resume", "lone.train.onnx", "--epochs", "4", "--optimizer", "adam", "--out", "x", cwd=work)
    assert r.returncode == 2 and "OT0004" in r.stderr


def test_another_schedule_on_resume(run):
    r = cli("train", "--resume", "run", "--epochs", "4", "--schedule", "step", "--schedule-arg", "step_size=8",
            "--schedule-arg", "gamma=0.5", cwd=run)
    assert r.returncode == 0, r.stderr
    # 8 steps per epoch: the run stands at 16, after each epoch one factor more
    assert [e["lr"] for e in log(run / "run")][2:] == pytest.approx([0.1 * 0.5 ** 3, 0.1 * 0.5 ** 4])


def test_milestones_from_the_command_line(work):
    r = cli("train", "mlp.onnx", "--data", "d.npz", "--valid", "0", "--batch", "13", "--epochs", "4", "--optimizer",
            "sgd", "--lr", "0.1", "--schedule", "multistep", "--schedule-arg", "milestones=15,35", "--out", "run",
            cwd=work)
    assert r.returncode == 0, r.stderr
    assert [e["lr"] for e in log(work / "run")] == pytest.approx([0.1, 0.01, 0.01, 0.001])
    r = cli("train", "mlp.onnx", "--data", "d.npz", "--schedule", "multistep", cwd=work)
    assert r.returncode == 2 and "--schedule-arg milestones=" in r.stderr
    r = cli("train", "mlp.onnx", "--data", "d.npz", "--schedule", "multistep", "--schedule-arg", "milestones=a",
            cwd=work)
    assert r.returncode == 2 and "OT0003" in r.stderr


def test_the_best_of_another_number_begins_anew(run):
    r = cli("train", "--resume", "run", "--epochs", "4", "--valid", "0", cwd=run)
    assert r.returncode == 0 and "* best" in r.stderr + r.stdout  # a loss is not compared with an accuracy
    rows = [line.split(",") for line in (run / "run/metrics.csv").read_text().splitlines()]
    assert len({len(row) for row in rows}) == 1
    table_, entries = [dict(zip(rows[0], row)) for row in rows[1:]], log(run / "run")
    for row, entry in zip(table_, entries):
        numbers = {k: v for k, v in entry.items() if k != "best"}  # why it was the best is text
        assert {k: float(v) for k, v in row.items() if v} == pytest.approx(numbers, rel=1e-6)
    assert table_[2]["valid_accuracy"] == "" and table_[2]["lr"]


@pytest.mark.parametrize("flags, code, said", [
    (["--momentum", "0.9"], "OT1235", "--momentum does not belong to the optimizer adamw"),
    (["--target", "y"], "OT2116", "--map"), (["--valid", "nan"], "OT0003", "--valid nan"),
    (["--seed", "-1"], "OT0001", "--seed"), (["--epochs", "99999999999999999999"], "OT0003", "--epochs"),
    (["--loss", "mse"], "OT2110", "--loss cross_entropy")])
def test_passed_over_no_longer(work, flags, code, said):
    r = cli("train", "mlp.onnx", "--data", "d.npz", *flags, cwd=work)
    assert r.returncode in (2, 4) and code in r.stderr and said in r.stderr


def test_said(run):
    r = cli("train", "mlp.onnx", "--data", "d.npz", "--epochs", "1", "--accumulate", "100", cwd=run)
    assert r.returncode == 0 and "OT3104" in r.stderr
    r = cli("train", "--resume", "run", cwd=run)
    assert r.returncode == 0 and "nothing to do: the run has 2 of 2 epochs" in r.stderr + r.stdout
    r = cli("train", "mlp.onnx", "--resume", "run", "--epochs", "3", cwd=run)
    assert r.returncode == 0 and "'mlp.onnx' is not read" in r.stderr + r.stdout
    r = cli("train", "mlp.onnx", "--data", "d.npz", "--epochs", "1", "--deterministic", "--out", "d", cwd=run)
    assert r.returncode == 0 and "deterministic = true" in (run / "d/config.toml").read_text()
    r = cli("train", "mlp.onnx", "--data", "d.npz", cwd=run, env={"ONNXTRAIN_EPOCHS": "seven"})
    assert r.returncode == 2 and "1797693" not in r.stderr


def test_names_of_inputs(work):
    x, _ = table(5)
    s = ot.Session(mlp().SerializeToString())
    with pytest.raises(ot.DataError, match="input 'x' .* was not given; no input is named 'X'"):
        s.run({"X": x})
    with pytest.raises(ot.DataError, match="no input named 'z'") as e:
        s.run({"x": x, "z": x})
    assert e.value.hint == "leave it out, or name an input"  # 'x' has its value
    assert s.run({"x": x}, outputs=[]) == {}


def test_overrides_and_rates_are_checked():
    with pytest.raises(ot.UsageError, match="overrides 'nothere\\*' matches no initializer"):
        ot.prepare(mlp().SerializeToString(), loss="cross_entropy",
                   optimizer=ot.SGD(lr=0.1, overrides={"nothere*": {"lr_scale": 0.5}}))
    t = ot.Trainer(ot.prepare(mlp().SerializeToString(), loss="cross_entropy"))
    for rate in (-1, float("nan"), float("inf")):
        with pytest.raises(ot.UsageError, match="learning rate"):
            t.lr = rate
    t.lr = 0.25
    assert t.lr == 0.25


def test_a_name_with_the_characters_of_globs_is_itself():
    m = mlp()
    for node in m.graph.node:
        node.input[:] = [i.replace("fc1.weight", "fc[1].weight") for i in node.input]
    m.graph.initializer[0].name = "fc[1].weight"
    t = ot.Trainer(ot.prepare(m.SerializeToString(), loss="cross_entropy", freeze=["fc[1].weight"]))
    assert "fc[1].weight" not in t.state and "fc1.bias" in t.state


# ---- sizes given by name, for lowered steps

def open_lstm():
    m = lstm()
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "S"
    return m


def attention(kv_heads=2, opset=23, mask=None, lengths=False, attributes=None):
    r = np.random.default_rng(3)
    f = lambda *s: (r.standard_normal(s) * 0.4).astype(np.float32)  # noqa: E731
    n = helper.make_node
    nodes = [n("MatMul", ["x", w], [o]) for w, o in (("wq", "q"), ("wk", "k"), ("wv", "v"))]
    info = lambda name, shape, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape)  # noqa: E731
    inputs, attributes = [info("x", ["N", "S", 8])], {"is_causal": 1} if attributes is None else attributes
    if mask:
        inputs.append(info("mask", mask))
    if lengths:
        inputs.append(info("lengths", ["N"], TensorProto.INT64))
    names = ["q", "k", "v", "mask" if mask else "", "", "", "lengths" if lengths else ""]
    while not names[-1]:
        names.pop()
    nodes += [n("Attention", names, ["a"], "att", q_num_heads=2, kv_num_heads=kv_heads, **attributes),
              n("ReduceMean", ["a", "one"], ["m"], keepdims=0), n("MatMul", ["m", "head"], ["logits"])]
    weights = {"wq": f(8, 8), "wk": f(8, 4 * kv_heads), "wv": f(8, 4 * kv_heads), "head": f(8, 3), "one": np.array([1])}
    g = helper.make_graph(nodes, "g", inputs, [info("logits", ["N", 3])],
                          [numpy_helper.from_array(v, k) for k, v in weights.items()])
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)])
    m.ir_version = 10
    return m


LSTM = (open_lstm, (7, 4, 5), "xt")
RECIPE = {"loss": "cross_entropy", "optimizer": ot.SGD(lr=0.5)}


def feeds_of(name, shape):
    return {name: np.random.default_rng(0).standard_normal(shape).astype(np.float32), "label": np.array([0, 2, 1, 0])}


@pytest.mark.parametrize("make, shape, name", [LSTM, (attention, (4, 7, 8), "x")], ids=["LSTM", "Attention"])
def test_a_lowered_step_with_a_sequence_length_by_name(make, shape, name, tmp_path):
    m, feeds = make().SerializeToString(), feeds_of(name, shape)
    plain = ot.Trainer(ot.prepare(m, **RECIPE))
    want = [plain.step(feeds).loss for _ in range(4)]
    for sizes in ({"dims": {"S": 7}}, {"dims": {"S": 7}, "batch": 4}, {"dims": {name: shape}}):
        t = ot.Trainer(ot.prepare(m, lowered=True, **sizes, **RECIPE))
        np.testing.assert_allclose([t.step(feeds).loss for _ in range(4)], want, rtol=2e-6)
    with pytest.raises(ot.UsageError, match="no open dimension and no input 'T'; it has 'N' 'S'"):
        ot.prepare(m, dims={"T": 7}, **RECIPE)
    with pytest.raises(ot.UsageError, match="does not fit its type"):
        ot.prepare(m, dims={name: (*shape[:2], 99)}, **RECIPE)
    (tmp_path / "m.onnx").write_bytes(m)
    r = cli("prepare", "m.onnx", "-o", "t.onnx", "--lowered", "--dim", "S=7", "--loss", "cross_entropy", cwd=tmp_path)
    assert r.returncode == 0, r.stderr
    assert not any(n.op_type == "Gradient" for n in onnx.load(tmp_path / "t.onnx").training_info[0].algorithm.node)


def test_a_recurrent_layer_says_which_length_it_lacks():
    with pytest.raises(ot.ModelError, match="dims={'S': N}"):
        ot.prepare(open_lstm().SerializeToString(), lowered=True, **RECIPE)


MASKS = {"none": [], "rows": ["N", 1, "S", "S"], "shared": [1, 1, "S", "S"]}


@pytest.mark.parametrize("kind", ["plain", "causal", "grouped", "window", "capped", "lengths", *MASKS])
def test_attention_lowers_for_any_size(kind):
    attributes = {"causal": {"is_causal": 1}, "window": {"left_window_size": 2, "right_window_size": 1},
                  "capped": {"softcap": 1.5, "is_causal": 1}, "lengths": {"is_causal": 1}}.get(kind, {})
    m = attention(1 if kind == "grouped" else 2, 25 if kind == "window" else 24, MASKS.get(kind) or None,
                  kind == "lengths", attributes)
    loaded = m.SerializeToString()
    plain, low = (ot.Trainer(ot.prepare(loaded, lowered=lowered, **RECIPE)) for lowered in (False, True))
    rng = np.random.default_rng(1)
    for rows, length in ((4, 7), (4, 3), (2, 5)):  # one plan for all of them
        feeds = feeds_of("x", (rows, length, 8))
        feeds["label"] = feeds["label"][:rows]
        if MASKS.get(kind):
            feeds["mask"] = rng.standard_normal([{"N": rows, "S": length}.get(d, d)
                                                 for d in MASKS[kind]]).astype(np.float32)
        if kind == "lengths":
            feeds["lengths"] = rng.integers(1, length + 1, rows)
        assert low.step(feeds).loss == pytest.approx(plain.step(feeds).loss, rel=3e-6)
    for name in plain.state:
        np.testing.assert_allclose(low.state[name], plain.state[name], rtol=3e-5, atol=1e-6)


def test_rows_that_are_not_the_first_dimension_are_refused(tmp_path):
    """Time first: rows of a file would be taken for steps in time, and the numbers would look fine."""
    (tmp_path / "m.onnx").write_bytes(lstm().SerializeToString())
    r = np.random.default_rng(0)
    x, y = r.standard_normal((60, 6, 5)).astype(np.float32), r.integers(0, 3, 60)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    for command in ("train", "predict", "eval"):
        got = cli(command, "m.onnx", "--data", "d.npz", cwd=tmp_path)
        assert got.returncode == 4 and "OT2117" in got.stderr and "dimension 1" in got.stderr, command
    t = ot.Trainer(ot.prepare(lstm().SerializeToString(), loss="cross_entropy"))
    with pytest.raises(ot.DataError, match="dimension 1"):
        t.fit(x, y, epochs=1)
    with pytest.raises(ot.DataError, match="dimension 1"):
        t.predict(x)
    t.fit([(x[:20].transpose(1, 0, 2), y[:20])], epochs=1)  # batches as the model takes them
    assert t.step_count == 1


def test_a_part_is_taken_or_refused(run):
    """--part of arrays with and without parts, of a folder of files, of a table through a pipe."""
    x, y = table(60)
    np.savez(run / "parts.npz", x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
    np.savez(run / "whole.npz", x=x, y=y)
    folder = run / "files"
    folder.mkdir()
    for name, part in (("train", slice(0, 40)), ("test", slice(40, 60))):
        np.savez(folder / f"{name}.npz", x=x[part], y=y[part])
    for data in ("parts.npz", "files"):
        for part, rows in (("train", 40), ("test", 20)):
            r = cli("eval", "run", "--data", data, "--part", part, "--json", cwd=run)
            assert r.returncode == 0 and json.loads(r.stdout)["rows"] == rows, r.stderr
    for data in ("whole.npz", "-"):
        r = cli("eval", "run", "--data", data, "--part", "test", cwd=run)
        assert r.returncode == 2 and "error[OT2194]" in r.stderr and "leave --part out" in r.stderr, r.stderr
    assert cli("eval", "run", "--data", "whole.npz", cwd=run).returncode == 0


def test_new_counts_parameters_as_train_does(tmp_path):
    """Shapes and tables of the preprocessing are no parameters."""
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},{'uvw'[k]},2020-01-{1 + k:02d},{int(a > 0.5)}" for a, k in
             zip(rng.random(90), rng.integers(0, 3, 90))]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,day,y", *lines]) + "\n")
    for more in ([], ["--embed", "b"]):
        made = cli("new", "mlp", "--data", "t.csv", "--target", "y", "-o", "m.onnx", "--json", *more, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        said = json.loads(made.stdout)
        r = cli("train", "m.onnx", "--data", "t.csv", "--target", "y", "--dry-run", cwd=tmp_path)
        trained, frozen = said["parameters_trained"], said["parameters"] - said["parameters_trained"]
        more_text = f", {frozen} frozen" if frozen else ""
        assert f" {trained:,} parameters trained{more_text}" in r.stderr, (said, r.stderr)
        assert f"mlp, {trained:,} parameters{more_text}\n" in made.stderr
