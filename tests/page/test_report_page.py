"""Reports and the board: what they hold, and how they look in a browser (headless Chromium, where there is one)."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from cli_models import cli, cnn, images, mlp, save  # noqa: E402

PROGRAM = ROOT / "build" / "release" / "onnxtrain"


def data_of(html):
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html)
    return json.loads(text)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Two runs on images and one regression."""
    folder = tmp_path_factory.mktemp("page")
    x, y = images()
    np.savez(folder / "d.npz", x=x, y=y)
    save(cnn(), folder / "cnn.onnx")
    for lr in ("1e-2", "1e-3"):
        cli("train", "cnn.onnx", "--data", "d.npz", "--epochs", "3", "--batch", "16", "--valid", "0.3", "--lr", lr,
            cwd=folder)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(90, 4)).astype(np.float32)
    np.savez(folder / "r.npz", x=table, y=table @ rng.normal(size=(4, 1)).astype(np.float32))
    save(mlp(classes=1), folder / "mlp.onnx")
    cli("train", "mlp.onnx", "--data", "r.npz", "--epochs", "2", "--valid", "0.2", "--loss", "mse", cwd=folder)
    return folder


def test_predictions_are_those_of_the_best_model(work):
    """The worst rows by loss, checked against the exported model in this library's own session."""
    import onnxtrain as ot

    run = work / "runs/cnn-001"
    [said] = data_of((run / "report.html").read_text())["runs"]
    worst = said["predictions"]["worst"]
    assert [w["loss"] for w in worst] == sorted((w["loss"] for w in worst), reverse=True)
    assert len(said["predictions"]["sample"]) == 12 and all(w["image"]["channels"] == 3 for w in worst)
    wrong = sum(sum(row) - row[k] for k, row in enumerate(said["confusion"]))
    assert sum(w["target"] != w["predicted"] for w in worst) == min(wrong, 12)  # same model, same rows
    assert said["confusion_title"] == f"Confusion of epoch {said['best_epoch']}, the best"
    probabilities = ot.Session(str(run / "model.onnx")).run({"x": images()[0].astype(np.float32)})
    scores = next(iter(probabilities.values()))
    e = np.exp(scores - scores.max(1, keepdims=True))
    losses = -np.log((e / e.sum(1, keepdims=True))[np.arange(len(scores)), images()[1]])
    for w in worst:  # every loss is that of some row of the data
        assert np.abs(losses - w["loss"]).min() < 1e-4 * max(1, w["loss"])


def test_regression_has_predictions_too(work):
    [said] = data_of((work / "runs/mlp-001/report.html").read_text())["runs"]
    first = said["predictions"]["worst"][0]
    assert said["predictions"]["kind"] == "regression"
    assert abs(first["target"][0] - first["predicted"][0]) == pytest.approx(first["loss"])
    assert "confusion" not in said


def test_several_runs(work):
    done = cli("report", "runs/cnn-001", "runs/cnn-002", "-o", "both.html", cwd=work)
    assert done.stdout.strip() == "both.html"
    assert [r["name"] for r in data_of((work / "both.html").read_text())["runs"]] == ["cnn-001", "cnn-002"]


def test_text_of_a_run_cannot_leave_its_place(work, tmp_path):
    shutil.copytree(work / "runs/mlp-001", tmp_path / "bad")
    (tmp_path / "bad/command.txt").write_text("</script><script>alert(1)</script>")
    cli("report", "bad", cwd=tmp_path)
    html = (tmp_path / "bad/report.html").read_text()
    assert html.count("</script>") == 2 and data_of(html)["runs"][0]["command"].startswith("</script>")


def test_runs_sorts_and_shows_what_differs(work):
    lines = cli("runs", "--sort", "loss", cwd=work).stdout.splitlines()
    losses = [float(re.search(r"train loss (\S+)", line)[1]) for line in lines]
    assert len(lines) == 3 and losses == sorted(losses)
    listed = json.loads(cli("runs", "--json", cwd=work).stdout)
    assert [float(r["settings"]["lr"]) for r in listed[:2]] == [0.01, 0.001] and "out" not in listed[0]["settings"]
    assert "seed" not in listed[0]["settings"]  # the same in all


def test_board_without_runs(tmp_path):
    done = cli("board", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 1 and "onnxtrain demo" in done.stderr
    assert "error[OT4500]: there is no run in" in done.stderr


def test_board_on_a_port_in_use(work):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = cli("board", "--port", str(taken.getsockname()[1]), cwd=work)
    assert done.returncode == 1 and "error[OT4501]: port" in done.stderr and "onnxtrain board --port 0" in done.stderr


@pytest.fixture
def board(work):
    process = subprocess.Popen([PROGRAM, "board", "--port", "0"], cwd=work, stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0


def status_of(address, **more):
    try:
        return urllib.request.urlopen(urllib.request.Request(address, **more), timeout=10).status
    except urllib.error.HTTPError as e:
        return e.code


def test_board_answers_only_with_its_token(board, work):
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}", board)
    base, token = board.split("/?token=")
    assert status_of(board) == 200
    for path in ("/", "/runs", "/run?name=cnn-001", f"/?token={token[:-1]}", f"/?token={'0' * 32}"):
        assert status_of(base + path) == 403, path
    assert status_of(f"{base}/run?name=../mlp.onnx&token={token}") == 404
    assert status_of(f"{base}/../../etc/passwd?token={token}") == 404
    assert status_of(board, method="POST", data=b"x") == 405 and status_of(board, method="DELETE") == 405
    runs = json.load(urllib.request.urlopen(f"{base}/runs?token={token}"))
    assert [r["name"] for r in runs] == ["cnn-001", "cnn-002", "mlp-001"] and all(r["ended"] for r in runs)
    port = int(base.rsplit(":", 1)[1])
    with socket.socket() as elsewhere:  # loopback only
        own = socket.gethostbyname(socket.gethostname())
        if not own.startswith("127."):
            assert elsewhere.connect_ex((own, port)) != 0


def test_board_follows_a_run(board, work):
    """A line that a run writes is there at the next question."""
    base, token = board.split("/?token=")
    ask = lambda: json.load(urllib.request.urlopen(f"{base}/run?name=live&token={token}"))
    (work / "runs/live/checkpoints").mkdir(parents=True)
    try:
        for epoch in (1, 2):
            with open(work / "runs/live/metrics.jsonl", "a") as log:
                log.write(json.dumps({"epoch": epoch, "train_loss": 1 / epoch}) + "\n")
            said = ask()
            assert len(said["epochs"]) == epoch and not said["ended"] and said["age_seconds"] < 60
    finally:
        shutil.rmtree(work / "runs/live")


# ---- in a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    if not shutil.which("chromium"):
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    made = subprocess.run([ROOT / "tools/environment.sh", "browser"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(made.stderr.strip().splitlines()[-1])
    return [pathlib.Path(made.stdout.strip()) / "bin/python", ROOT / "tests/page/browser.py", "--quick"]


def looked_at(browser, *pages):
    done = subprocess.run([*browser, *pages], capture_output=True, text=True, timeout=300, env={**os.environ})
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_report_in_a_browser(browser, work):
    cli("report", "runs/cnn-001", "runs/cnn-002", "-o", "two.html", cwd=work)
    for said in looked_at(browser, work / "runs/cnn-001/report.html", work / "two.html"):
        assert not said["console"] and not said["outside"] and not said["serious"] and not said["wide"], said
        assert said["charts"] >= 5 and said["images"] >= 24 and said["tip"].startswith("epoch ")


def test_board_in_a_browser(browser, board):
    [said] = looked_at(browser, board)
    assert not said["console"] and not said["outside"] and not said["serious"] and not said["wide"], said
    assert "cnn-001" in said["text"] and said["charts"] >= 4


def test_a_loss_that_falls_by_decades_begins_on_a_log_scale():
    if not (node := shutil.which("node")):
        pytest.skip("no node on this machine")
    curves = {"falls": [2e5, 4e3, 900, 800, 700], "usual": [2.3, 0.9, 0.5, 0.4, 0.3], "zero": [9e5, 3, 0, 0, 0]}
    script = (ROOT / "src/run/report/page/chart.js").read_text() + f"""
        const curves = {json.dumps(curves)};
        console.log(JSON.stringify(Object.fromEntries(Object.entries(curves).map(([name, values]) =>
          [name, spansDecades([{{points: values.map((v, k) => [k + 1, v])}}])]))));"""
    said = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == {"falls": True, "usual": False, "zero": False}
