"""docs/flower.md: its apps are made, its commands start a federation with certificates on this machine."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/federated"
sys.path.insert(0, str(EXAMPLE))
import run as example  # noqa: E402

PAGE = (ROOT / "docs/flower.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.M | re.S)


def test_every_block_is_here():
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds == ["console", "python", "python", "console", "toml", "console"]
    # the first: test_examples of this file's neighbours (test_real_processes.py, test_state_travels.py)
    assert re.findall(r"^\$ (\S+ \S+)", BLOCKS[0][1], re.M) == ["pip install", "python examples/federated/run.py",
                                                               "python examples/federated/run.py"]


def test_apps(tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLE)
    for kind, text in BLOCKS:
        if kind == "python":
            names = {"rows": lambda context: None}
            exec(compile(text, "docs/flower.md", "exec"), names)
            assert type(names["app"]).__name__ in ("ClientApp", "ServerApp")


def written(folder, port):
    """[(who, words of a command)] with the names of this machine in the place of others."""
    here = {"server:8000": f"localhost:{port}", "CN=server": "CN=localhost", "DNS:server": "DNS:localhost",
            "--host 0.0.0.0": f"--host 127.0.0.1 --port {port}", "/data/": f"{folder}/",
            "num-server-rounds=20": "num-server-rounds=2", "examples/federated": str(EXAMPLE)}
    text = "\n".join(text for kind, text in BLOCKS if kind in ("console", "toml"))
    for old, new in here.items():
        assert old in text, old
        text = text.replace(old, new)
    home = folder / "flwr"
    home.mkdir()
    (home / "config.toml").write_text(re.search(r"^\[superlink.*?\n(?=\n|anyone)", text, re.M | re.S)[0])
    return [(who, shlex.split(line)) for who, line in re.findall(r"^(server|client|anyone)\$ (.*)$", text, re.M)]


def test_several_machines(tmp_path):
    """The certificate, a SuperLink, two SuperNodes and a run over TLS: the averaged model is written."""
    shutil.copy(EXAMPLE / "model.train.onnx", tmp_path)
    port = example.free_port()
    certificate, link, node, submit = (words for _, words in written(tmp_path, port))
    env = dict(os.environ, PYTHONPATH=str(ROOT / "python"), FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1",
               FLWR_HOME=str(tmp_path / "flwr"), PATH=f"{example.BIN}{os.pathsep}{os.environ['PATH']}")
    subprocess.run(certificate, cwd=tmp_path, check=True, capture_output=True)
    started = []

    def start(words):
        with open(tmp_path / "log.txt", "ab") as log:
            started.append(subprocess.Popen(words, cwd=tmp_path, env=env, stdout=log, stderr=log,
                                            start_new_session=True))

    try:
        start(link)
        for k in range(2):
            other = [w.replace("partition-id=0", f"partition-id={k}") for w in node]
            start([*other, "--port", str(example.free_port())])  # two on one machine
        exported = tmp_path / "averaged.onnx"
        deadline = time.monotonic() + 400
        while time.monotonic() < deadline:  # until the SuperLink listens
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.2)
        done = subprocess.run(submit, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr + (tmp_path / "log.txt").read_text()[-3000:]
        log = tmp_path / "log.txt"
        while not exported.exists() and time.monotonic() < deadline and "Traceback" not in log.read_text():
            time.sleep(0.5)
    finally:
        for process in reversed(started):
            example.ended(process)
    assert exported.exists(), done.stdout + (tmp_path / "log.txt").read_text()[-3000:]
