"""The trainer through the command line: schedules, resume, divergence, settings, run folder, commands."""

import json
import re
import shutil
import struct
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnxtrain as ot

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import ROOT, cli, cnn, images, lstm, mlp, save, table, transformer  # noqa: E402


def train(work, *args, ok=0, **more):
    r = cli("train", *args, cwd=work, **more)
    assert r.returncode == ok, r.stderr
    return r


def log(run):
    return [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]


def weights(path):
    m = onnx.load(path)
    return {t.name: numpy_helper.to_array(t) for g in [m.graph, *(t.algorithm for t in m.training_info)]
            for t in g.initializer}


# ---- length and schedules

@pytest.mark.parametrize("schedule", ["cosine", "linear", "polynomial", "onecycle"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_schedules_span_the_run(work, schedule, accumulate):
    train(work, "mlp.onnx", "--data", "d.npz", "--valid", "0", "--batch", "13", "--epochs", "4", "--optimizer", "sgd",
          "--lr", "0.1", "--schedule", schedule, "--accumulate", accumulate, "--out", "run")
    rates = [e["lr"] for e in log(work / "run")]  # of the step after each epoch
    assert len(rates) == 4 and rates[0] > rates[1] or schedule == "onecycle"
    assert rates[-1] < 0.012  # all the way down at the end
    updates = 40 // accumulate
    if schedule == "cosine":
        np.testing.assert_allclose(rates, [0.05 * (1 + np.cos(np.pi * k / 4)) for k in (1, 2, 3, 4)], atol=1e-7)
    assert int(weights(work / "run/checkpoints/last.train.onnx")["T"]) == updates


def test_resume_with_more_epochs(work):
    flags = ["--data", "d.npz", "--batch", "16", "--optimizer", "adam", "--lr", "0.01"]
    train(work, "mlp.onnx", *flags, "--epochs", "6", "--out", "whole")
    train(work, "mlp.onnx", *flags, "--epochs", "3", "--out", "part")
    train(work, "--resume", "part", "--epochs", "6")  # batch, data and the rest come from the run
    assert (
        cli("diff", "part/checkpoints/last.train.onnx", "whole/checkpoints/last.train.onnx", cwd=work).returncode == 0
    )
    assert [e["epoch"] for e in log(work / "part")] == [1, 2, 3, 4, 5, 6]
    config = (work / "part/config.toml").read_text()
    assert re.search(r"^batch = 16 +# run$", config, re.M) and re.search(r"^epochs = 6 +# flag$", config, re.M)
    # a schedule is stretched over the new length
    train(work, "mlp.onnx", *flags, "--schedule", "linear", "--epochs", "2", "--out", "s")
    r = train(work, "--resume", "s", "--epochs", "4")
    assert "linear over" in r.stderr
    np.testing.assert_allclose([e["lr"] for e in log(work / "s")], [0.005, 0, 0.0025, 0], atol=1e-8)


@pytest.mark.parametrize("schedule,first,then", [
    ("constant", [0.01, 0.01], [0.02, 0.02]),
    ("exponential", [0.01 * 0.95 ** 10, 0.01 * 0.95 ** 20], [0.02 * 0.95 ** 30, 0.02 * 0.95 ** 40]),
    ("cosine", [0.005, 0], [0.01 * (1 + np.cos(0.75 * np.pi)), 0])])
def test_lr_on_resume(work, schedule, first, then):
    """The same --lr again changes nothing; with another one the schedule goes on at its place from there."""
    more = ["--schedule-arg", "gamma=0.95"] if schedule == "exponential" else []
    train(work, "mlp.onnx", "--data", "d.npz", "--valid", "0", "--batch", "13", "--optimizer", "adam", "--schedule",
          schedule, *more, "--lr", "0.01", "--epochs", "2", "--out", "none")
    for name, flags in (("same", ["--lr", "0.01"]), ("other", ["--lr", "0.02"]), ("none", [])):
        if name != "none":
            shutil.copytree(work / "none", work / name)
        train(work, "--resume", name, "--epochs", "4", *flags)
    assert cli("diff", "none/checkpoints/last.train.onnx", "same/checkpoints/last.train.onnx", cwd=work).returncode == 0
    np.testing.assert_allclose([e["lr"] for e in log(work / "other")], first + then, rtol=1e-6, atol=1e-9)


def test_lr_for_a_file_that_schedules_its_rate_is_refused(work):
    assert (
        cli(
            "prepare",
            "mlp.onnx",
            "--schedule",
            "cosine",
            "--schedule-arg",
            "total_steps=50",
            "-o",
            "s.train.onnx",
            cwd=work,
        ).returncode
        == 0
    )
    r = train(work, "s.train.onnx", "--data", "d.npz", "--lr", "0.1", ok=2)
    assert "error[OT0004]" in r.stderr and "--lr does not apply" in r.stderr


def test_the_default_rate_of_a_run_is_the_schedules_own(work):
    """A rate that begins low (onecycle) is not taken for the one that the schedule was made from."""
    flags = ["--data", "d.npz", "--batch", "16", "--schedule", "onecycle"]
    train(work, "mlp.onnx", *flags, "--epochs", "2", "--out", "default")
    train(work, "mlp.onnx", *flags, "--lr", "0.001", "--epochs", "2", "--out", "said")
    assert re.search(r"^lr = 0.001 +# default$", (work / "default/config.toml").read_text(), re.M)
    for run in ("default", "said"):
        train(work, "--resume", run, "--epochs", "4")
    assert [e["lr"] for e in log(work / "default")] == [e["lr"] for e in log(work / "said")]


def test_steps_time_patience(work):
    train(work, "mlp.onnx", "--data", "d.npz", "--steps", "5", "--batch", "16", "--out", "a")
    assert log(work / "a")[-1]["step"] == 5
    train(work, "mlp.onnx", "--data", "d.npz", "--time", "0.2", "--epochs", "1000000", "--out", "b")
    train(work, "mlp.onnx", "--data", "d.npz", "--patience", "2", "--epochs", "500", "--lr", "1e-12", "--out", "c")
    assert len(log(work / "c")) == 3


# ---- not finite

def test_the_first_bad_tensor_is_named_and_the_state_before_it_is_saved(work):
    save(mlp(op="Exp"), work / "exp.onnx")
    r = train(work, "exp.onnx", "--data", "d.npz", "--optimizer", "sgd", "--lr", "50", "--out", "run", ok=5)
    assert "error[OT3001]" in r.stderr and re.search(r"at step \d+ \(epoch 1\); last finite loss [\d.e+-]+, "
                                                     r"gradient norm", r.stderr)
    assert "of 'act" in r.stderr and "run/checkpoints/last.train.onnx" in r.stderr, r.stderr
    step = int(re.search(r"at step (\d+)", r.stderr).group(1))
    assert all(np.isfinite(v).all() for v in weights(work / "run/checkpoints/last.train.onnx").values())
    # the state is the one of the step before: the same run, ended there, has it too
    train(work, "exp.onnx", "--data", "d.npz", "--optimizer", "sgd", "--lr", "50", "--steps", step - 1, "--epochs",
          "10", "--out", "same")
    a, b = (weights(work / f"{n}/checkpoints/last.train.onnx") for n in ("run", "same"))
    assert all(np.array_equal(a[k], b[k]) for k in a)


def test_a_gradient_that_is_not_finite_under_a_finite_loss(work):
    """sqrt(relu(x w)) has a finite value and an infinite slope at 0."""
    g = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["h"], "mm"),
                           helper.make_node("Sqrt", ["h"], ["s"], "root"),
                           helper.make_node("MatMul", ["s", "v"], ["y"], "out")], "g",
                          [helper.make_tensor_value_info("x", 1, ["N", 4])],
                          [helper.make_tensor_value_info("y", 1, ["N", 1])],
                          [numpy_helper.from_array(np.zeros((4, 2), np.float32), "w"),
                           numpy_helper.from_array(np.ones((2, 1), np.float32), "v")])
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    t = ot.Trainer(ot.prepare(m.SerializeToString(), loss="mse", optimizer=ot.Adam(lr=0.1)))
    feeds = {"x": np.ones((3, 4), np.float32), "label": np.ones((3, 1), np.float32)}
    before = {k: v.copy() for k, v in t.state.items()}
    with pytest.raises(ot.DivergedError) as e:
        t.step(feeds)
    assert "the gradient of 'w' became" in str(e.value) and e.value.code == "OT3001"
    assert all(np.array_equal(t.state[k], v) for k, v in before.items())
    assert t.step_count == 0


def test_weights_that_overflow_in_the_update(work):
    t = ot.Trainer(ot.prepare(mlp().SerializeToString(), loss="cross_entropy", optimizer=ot.SGD(lr=3e38)))
    x, y = table(32)
    before = {k: v.copy() for k, v in t.state.items()}
    with pytest.raises(ot.DivergedError):
        for _ in range(3):
            before = {k: v.copy() for k, v in t.state.items()}
            t.step({"x": x * 1000, "label": y})
    assert all(np.array_equal(t.state[k], v) for k, v in before.items())
    assert all(np.isfinite(v).all() for v in t.state.values())


# ---- threads

@pytest.mark.parametrize("name", ["cnn", "transformer", "lstm"])
def test_threads_do_not_change_a_bit_in_200_steps(name):
    r = np.random.default_rng(0)
    model, x = {"cnn": (cnn(), images(16)[0]),
                "transformer": (transformer(), r.standard_normal((16, 6, 8)).astype(np.float32)),
                "lstm": (lstm(), r.standard_normal((6, 16, 5)).astype(np.float32))}[name]
    feeds = {"xt" if name == "lstm" else "x": x, "label": r.integers(0, 3, 16)}
    prepared = ot.prepare(model.SerializeToString(), loss="cross_entropy", optimizer=ot.Adam(lr=1e-3))
    results = []
    for threads in (1, 2, 4):
        t = ot.Trainer(prepared, seed=1, threads=threads)
        for _ in range(200):
            t.step(feeds)
        results.append({k: v.tobytes() for k, v in t.state.items()})
    assert results[0] == results[1] == results[2]


def test_resume_is_the_uninterrupted_run():
    r = subprocess.run([sys.executable, str(ROOT / "tools/resume_check.py"), "--count", "2", "--seed", "1"],
                       capture_output=True, text=True)
    assert r.returncode == 0, r.stdout + r.stderr
    assert r.stdout.count("2 of 2 runs equal") == 3


# ---- settings and the run folder

def test_precedence_flag_environment_config_default(work):
    (work / "run.toml").write_text('epochs = 2\nbatch = 11\nlr = 0.02\noptimizer = "sgd"\n')
    train(work, "mlp.onnx", "--data", "d.npz", "--config", "run.toml", "--epochs", "1", "--out", "run",
          env={"ONNXTRAIN_BATCH": "12", "ONNXTRAIN_EPOCHS": "9"})
    config = (work / "run/config.toml").read_text()
    for line in (r"epochs = 1 +# flag", r"batch = 12 +# environment", r"lr = 0.02 +# config",
                 r'optimizer = "sgd" +# config',
                 r"seed = 0 +# default"):
        assert re.search("^" + line + "$", config, re.M), (line, config)
    # the file itself can be given again
    train(work, "mlp.onnx", "--config", "run/config.toml", "--out", "again")
    assert cli("diff", "run/checkpoints/last.train.onnx", "again/checkpoints/last.train.onnx", cwd=work).returncode == 0


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= b
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_run_folder(work):
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "3", "--keep", "2")
    run = work / "runs/mlp-001"
    assert (work / "runs/latest").resolve() == run
    names = {p.name for p in run.iterdir()}
    assert {"model.onnx", "config.toml", "command.txt", "env.json", "metrics.jsonl", "metrics.csv", "report.html",
            "checkpoints"} <= names
    assert (run / "command.txt").read_text() == "onnxtrain train mlp.onnx --data d.npz --epochs 3 --keep 2\n"
    assert json.loads((run / "env.json").read_text())["threads"] >= 1
    assert {p.name for p in (run / "checkpoints").iterdir()} >= {"last.train.onnx", "best.train.onnx",
                                                                 "epoch-0002.train.onnx", "epoch-0003.train.onnx"}
    assert not (run / "checkpoints/epoch-0001.train.onnx").exists()
    rows = (run / "metrics.csv").read_text().splitlines()
    assert rows[0].startswith("epoch,") and len(rows) == 4
    html = (run / "report.html").read_text()
    assert "Slowest operators" in html and "Gemm, backward" in html
    slowest = json.loads((run / "operators.json").read_text())
    assert abs(sum(row["share"] for row in slowest) - 1) < 0.2 and all(row["calls"] >= 1 for row in slowest)
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html)
    [said] = json.loads(data)["runs"]
    assert len(said["epochs"]) == 3 and said["ended"] and said["predictions"]["worst"] and len(html) < 300_000
    assert said["environment"]["parameters"] == said["environment"]["parameters_trained"] > 0
    assert "http" not in html.replace("http://www.w3.org", "")
    [events] = run.glob("events.out.tfevents.*")
    data, records = events.read_bytes(), []
    while data:
        length, check = struct.unpack("<QI", data[:12])
        body, tail = data[12:12 + length], struct.unpack("<I", data[12 + length:16 + length])[0]
        for part, value in ((data[:8], check), (body, tail)):
            c = crc32c(part)
            assert ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF == value
        records.append(body)
        data = data[16 + length:]
    assert len(records) == 4 and b"brain.Event:2" in records[0] and b"train_loss" in records[1]


def test_predict_needs_no_options(tmp_path):
    r = np.random.default_rng(0)
    x = r.standard_normal((150, 3)) * 3 + 10
    names = np.array(["ant", "bee", "cat"])[(x[:, 0] > 10).astype(int) + (x[:, 1] > 11)]
    lines = [f"{a},{n},{b},{c}" for (a, b, c), n in zip(x, names)]
    (tmp_path / "d.csv").write_text("a,species,b,c\n" + "\n".join(lines) + "\n")
    save(mlp(inputs=3), tmp_path / "mlp.onnx")
    r1 = cli("train", "mlp.onnx", "--data", "d.csv", "--scale", "10,3", "--epochs", "60", "--lr", "0.02", "--out",
             "run", cwd=tmp_path)
    assert r1.returncode == 0, r1.stderr
    meta = {p.key: p.value for p in onnx.load(tmp_path / "run/model.onnx").metadata_props}
    assert json.loads(meta["onnxtrain.classes"]) == ["ant", "bee", "cat"] and json.loads(
        meta["onnxtrain.features"]
    ) == ["a", "b", "c"]
    # other column order, no target, one class only
    (tmp_path / "new.csv").write_text("c,b,a\n" + "\n".join(f"{c},{b},{a}" for a, b, c in x) + "\n")
    r2 = cli("predict", "run", "--data", "new.csv", "-o", "p.csv", cwd=tmp_path)
    assert r2.returncode == 0, r2.stderr
    rows = (tmp_path / "p.csv").read_text().splitlines()
    assert rows[0] == "prediction,ant,bee,cat"
    assert np.mean([row.split(",")[0] == n for row, n in zip(rows[1:], names)]) > 0.8
    (tmp_path / "cats.csv").write_text("a,species,b,c\n" + "\n".join(x for x in lines if ",cat," in x) + "\n")
    r3 = cli("eval", "run", "--data", "cats.csv", "--json", cwd=tmp_path)
    assert r3.returncode == 0, r3.stderr
    assert json.loads(r3.stdout)["accuracy"] > 0.6


# ---- commands

def test_check_grad(tmp_path):
    for name, m in (("mlp", mlp()), ("cnn", cnn()), ("transformer", transformer()), ("lstm", lstm())):
        save(m, tmp_path / f"{name}.onnx")
        r = cli("check", f"{name}.onnx", "--grad", "--json", cwd=tmp_path)
        assert r.returncode == 0, (name, r.stdout, r.stderr)
        g = json.loads(r.stdout)["gradients"]
        assert len(g) >= 4 and all(e["ok"] for e in g) and max(e["error"] for e in g) < 0.02, (name, g)


def test_check_grad_lists_every_node_without_a_gradient(tmp_path):
    g = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["h"], "mm"),
                           helper.make_node("Binarizer", ["h"], ["s"], "first", domain="ai.onnx.ml"),
                           helper.make_node("MatMul", ["x", "v"], ["k"], "mm2"),
                           helper.make_node("Binarizer", ["k"], ["t"], "second", domain="ai.onnx.ml"),
                           helper.make_node("Add", ["s", "t"], ["y"], "sum")], "g",
                          [helper.make_tensor_value_info("x", 1, ["N", 4])],
                          [helper.make_tensor_value_info("y", 1, ["N", 1])],
                          [numpy_helper.from_array(np.ones((4, 1), np.float32), n) for n in ("w", "v")])
    save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)],
                           ir_version=8), tmp_path / "m.onnx")
    r = cli("check", "m.onnx", "--grad", cwd=tmp_path)
    assert r.returncode == 3 and "OT1203" in r.stderr and "'first'" in r.stderr and "'second'" in r.stderr, (
        r.stdout + r.stderr
    )


def test_info_runs_report_diff_export(work):
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "2", "--seed", "1")
    train(work, "mlp.onnx", "--data", "d.npz", "--epochs", "2", "--seed", "2")
    r = cli("info", "mlp.onnx", "--ops", "--batch", "32", cwd=work)
    assert "Gemm" in r.stdout and "memory    batch 32" in r.stdout and "training" in r.stdout
    layers = json.loads(cli("info", "mlp.onnx", "--json", cwd=work).stdout)["layers"]
    assert [x["op"] for x in layers] and all(x["flops_per_row"] > 0 and x["not_trained"] == 0 for x in layers)
    assert f"layers    {len(layers)} with {sum(x['trained'] for x in layers):,} parameters" in r.stdout
    runs = json.loads(cli("runs", "--json", cwd=work).stdout)
    assert [x["run"] for x in runs] == ["runs/mlp-001", "runs/mlp-002"] and runs[0]["epochs"] == 2
    assert cli("report", "runs/mlp-001", cwd=work).stdout.strip() == "runs/mlp-001/report.html"
    r = cli("diff", "runs/mlp-001", "runs/mlp-002", cwd=work)
    assert r.returncode == 6 and "setting     seed" in r.stdout and "epoch 1     train_loss" in r.stdout
    assert cli("diff", "runs/mlp-001", "runs/mlp-001", cwd=work).returncode == 0
    for which in ("best", "last"):
        assert cli("export", "runs/mlp-001", "-o", "e.onnx", "--which", which, "--verify", cwd=work).returncode == 0
        assert not onnx.load(work / "e.onnx").training_info


def test_export_folds_batch_normalization(tmp_path):
    save(cnn(), tmp_path / "cnn.onnx")
    x, y = images()
    np.savez(tmp_path / "d.npz", x=x, y=y)
    assert cli("train", "cnn.onnx", "--data", "d.npz", "--epochs", "2", "--out", "run", cwd=tmp_path).returncode == 0
    r = cli("export", "run", "-o", "folded.onnx", "--fold-bn", "--verify", cwd=tmp_path)
    assert r.returncode == 0 and "1 BatchNormalization" in r.stderr, r.stderr
    m = onnx.load(tmp_path / "folded.onnx")
    onnx.checker.check_model(m, full_check=True)
    assert not any(n.op_type == "BatchNormalization" for n in m.graph.node)
    assert not any(t.name.startswith("bn.") for t in m.graph.initializer)
    a = ot.Session(tmp_path / "run/model.onnx").run({"x": x})["logits"]
    np.testing.assert_allclose(ot.Session(tmp_path / "folded.onnx").run({"x": x})["logits"], a, rtol=1e-4, atol=1e-5)


def test_help(work):
    r = cli("train", "--help", cwd=work)
    assert r.returncode == 0
    options = [x for x in r.stdout.splitlines() if re.match(r"\s+(-\w,)?-", x)]
    assert len(options) <= 15, options
    assert r.stdout.index("Examples:") < r.stdout.index("Options" if "Options" in r.stdout else "Data")
    assert r.stdout.count("  onnxtrain train") == 3
    everything = cli("train", "--help-all", cwd=work).stdout
    for flag in ("--map", "--accumulate", "--save-every", "--keep", "--find-lr", "--overfit", "--progress", "--config"):
        assert flag in everything and flag not in r.stdout


@pytest.mark.parametrize("shell,word",
                         [("bash", "complete -o filenames"), ("zsh", "#compdef"), ("fish", "complete -c onnxtrain")])
def test_completion(work, shell, word):
    text = cli("completion", shell, cwd=work).stdout
    assert word in text and "prepare" in text and "epochs" in text
    if shell == "bash":
        script = text + '\nCOMP_WORDS=(onnxtrain train --epo) COMP_CWORD=2; _onnxtrain; echo "${COMPREPLY[@]}"'
        assert subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.strip() == "--epochs"


def test_every_code_has_an_explanation():
    used = set()
    for path in [*ROOT.glob("src/**/*.?pp"), *ROOT.glob("python/**/*.py")]:
        if not path.name.endswith("_test.cpp") and "explanations" not in path.name:
            used |= set(re.findall(r'(?:"|error\[|warning\[)(OT\d{4})(?:"|\])', path.read_text()))
    explained = set()
    for path in ROOT.glob("src/cli/explain/explanations_*.cpp"):
        explained |= set(re.findall(r'\{"(OT\d{4})"', path.read_text()))
    assert len(used) > 150 and used <= explained, sorted(used - explained)
    assert explained <= used, f"never raised: {sorted(explained - used)}"
    r = cli("explain", "OT3001")
    assert r.returncode == 0 and "first bad tensor" in r.stdout
    assert cli("explain", "OT9999").returncode == 2


def test_a_lowered_step_is_exported_as_a_plain_model(work):
    """And ONNX Runtime runs it, step by step, with the state fed back as the printed list says."""
    onnxruntime = pytest.importorskip("onnxruntime")
    r = cli("prepare", "mlp.onnx", "-o", "t.onnx", "--loss", "cross_entropy", "--optimizer", "adamw", cwd=work)
    assert r.returncode == 0, r.stderr
    assert cli("export", "t.onnx", "-o", "step.onnx", "--step", "0", cwd=work).returncode == 0  # lowered or not
    assert (
        cli(
            "prepare",
            "mlp.onnx",
            "-o",
            "t.onnx",
            "--loss",
            "cross_entropy",
            "--optimizer",
            "adamw",
            "--lowered",
            cwd=work,
        ).returncode
        == 0
    )
    assert "error[OT1261]" in cli("export", "t.onnx", "-o", "step.onnx", "--step", "1", cwd=work).stderr
    r = cli("export", "t.onnx", "-o", "step.onnx", "--step", "0", cwd=work)
    assert r.returncode == 0, r.stderr
    back = dict(re.findall(r"output '(.*)' -> input '(.*)'", r.stderr))
    onnx.checker.check_model(str(work / "step.onnx"))
    s = onnxruntime.InferenceSession(str(work / "step.onnx"), providers=["CPUExecutionProvider"])
    names, reads = [o.name for o in s.get_outputs()], {i.name for i in s.get_inputs()}
    state = {k: v for k, v in weights(work / "t.onnx").items() if k in reads}
    d, t = np.load(work / "d.npz"), ot.Trainer(str(work / "t.onnx"))
    for k in range(4):
        feeds = {"x": d["x"][k::4], "label": d["y"][k::4]}
        got = dict(zip(names, s.run(names, feeds | state)))
        assert float(got[names[0]]) == pytest.approx(t.step(feeds).loss, rel=1e-5)
        state |= {key: got[value] for value, key in back.items() if key in reads}
    for n in t.state:
        if n in state and n.startswith(("w", "b", "fc")):
            np.testing.assert_allclose(state[n], t.state[n], rtol=1e-4, atol=1e-6)


def test_overfit_find_lr_dry_run_progress(work):
    r = train(work, "mlp.onnx", "--data", "d.npz", "--overfit", "6", "--epochs", "150", "--lr", "0.02", "--out", "o")
    assert "the model can learn these rows" in r.stderr
    r = train(work, "mlp.onnx", "--data", "d.npz", "--find-lr")
    assert "suggestion: --lr" in r.stdout and not (work / "runs").exists()
    r = train(work, "mlp.onnx", "--data", "d.npz", "--dry-run")
    assert "plan" in r.stderr and not (work / "runs").exists()
    r = train(work, "mlp.onnx", "--data", "d.npz", "--progress", "json", "--epochs", "2", "--out", "p")
    assert [json.loads(x)["epoch"] for x in r.stdout.splitlines()] == [1, 2]
    r = train(work, "mlp.onnx", "--data", "d.npz", "-q", "--epochs", "1", "--out", "q")
    assert r.stderr == "" and r.stdout == ""


def test_metrics_of_a_language_model(tmp_path):
    """Classes on the last axis: accuracy, perplexity; labels up to the last class are fine."""
    r = np.random.default_rng(0)
    g = helper.make_graph([helper.make_node("Gather", ["emb", "ids"], ["e"], "emb_"),
                           helper.make_node("MatMul", ["e", "head"], ["logits"], "head_")],
                          "lm", [helper.make_tensor_value_info("ids", 7, ["N", "T"])],
                          [helper.make_tensor_value_info("logits", 1, ["N", "T", 20])],
                          [numpy_helper.from_array(r.standard_normal((20, 16)).astype(np.float32), "emb"),
                           numpy_helper.from_array((r.standard_normal((16, 20)) * 0.1).astype(np.float32), "head")])
    save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "lm.onnx")
    ids = r.integers(0, 20, (64, 5))
    np.savez(tmp_path / "d.npz", ids=ids, label=(ids + 1) % 20)
    x = cli("train", "lm.onnx", "--data", "d.npz", "--epochs", "15", "--lr", "0.05", "--out", "run", cwd=tmp_path)
    assert x.returncode == 0, x.stderr
    last = log(tmp_path / "run")[-1]
    assert last["valid_accuracy"] > 0.9 and last["valid_top5"] >= last["valid_accuracy"]
    assert last["valid_perplexity"] == pytest.approx(np.exp(last["valid_loss"]))
