"""Table of docs/flower.md: ten clients of Flower, three of them killed in every round, then started again.

    make figures-flower        (--rounds N; the environment is that of tools/environment.sh flower)

SuperLink and SuperNodes are processes on this machine. A client is killed with its SuperNode (SIGKILL) at a random
moment of its training; a new SuperNode takes its place. Beside it: the same without kills. A round with kills takes
more than a minute: SuperLink waits for a SuperNode until two of its signs of life (every 30 s) are missing.
"""

import argparse
import pathlib
import re
import shutil
import sys
import tempfile
import time

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples/federated"
sys.path.insert(0, str(EXAMPLE))
import run as example  # noqa: E402

LONGEST = 3600  # seconds of a run

CLIENT = '''
import os
import random
import signal
import threading
import time

import onnxtrain.flower

from .task import file, rows

app = onnxtrain.flower.client_app(file, rows, threads=1)
train = app._registered_funcs["train.default"]


def in_danger(message, context):
    number, clients = message.content["config"]["server-round"], context.run_config["clients"]
    unlucky = random.Random(number).sample(range(clients), context.run_config["killed"])
    if context.node_config["partition-id"] in unlucky:
        threading.Thread(target=killed, args=(random.random() * 0.2,), daemon=True).start()
        train(message, context)
        time.sleep(60)  # the answer never leaves
    return train(message, context)


def killed(after):
    time.sleep(after)
    os.killpg(0, signal.SIGKILL)  # SuperNode and everything that it started


app._registered_funcs["train.default"] = in_danger
'''


def app(folder):
    shutil.copytree(EXAMPLE, folder / "app", ignore=shutil.ignore_patterns("__pycache__", "*.onnx"))
    (folder / "app/spirals/client.py").write_text(CLIENT)
    file = folder / "app/pyproject.toml"
    file.write_text(file.read_text() + "killed = 0\n")
    return folder / "app"


def federation(clients, rounds, killed, seconds):
    """(accuracy by round, answers by round, SuperNodes that were killed, accuracy of the exported file)"""
    lost = 0
    with tempfile.TemporaryDirectory() as name, example.Federation(name, app(pathlib.Path(name))) as flower:
        for k in range(clients):
            flower.add_node(k)
        exported = flower.folder / "averaged.onnx"
        run = flower.submit(num_server_rounds=rounds, export=str(exported), clients=clients, killed=killed,
                            round_timeout=seconds, file=str(EXAMPLE / "model.train.onnx"))
        begin = looked = time.monotonic()
        while not exported.exists() and time.monotonic() - begin < LONGEST:
            for k in [k for k, process in flower.nodes.items() if process.poll() is not None]:
                lost += 1
                flower.add_node(k)
            if time.monotonic() - looked > 60:  # every look is a start of Python
                looked = time.monotonic()
                if flower.status(run).startswith("finished"):
                    break
                accuracies, answers = told(flower.log(run))
                print(f"# {killed} killed per round, after {looked - begin:.0f} s: {len(answers)} rounds, accuracy "
                      f"{' '.join(f'{100 * v:.0f}' for v in accuracies)} %, {lost} SuperNodes killed", flush=True)
            time.sleep(0.5)
        time.sleep(2)
        said = flower.log(run)
        if not exported.exists():
            raise SystemExit(said[-4000:])
        return *told(said), lost, example.accuracy(exported), time.monotonic() - begin


def told(said):
    """(accuracy by round, the first before any; answers by round) of what the ServerApp has said"""
    return ([float(v) for v in re.findall(r"MetricRecord: \{.*?'accuracy': ([0-9.e-]+)", said)],
            [int(v) for v in re.findall(r"aggregate_train: Received (\d+) results", said)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--killed", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=900, help="that a round waits for answers")
    a = parser.parse_args()
    rows = []
    for killed in (0, a.killed):
        accuracies, answers, lost, exported, took = federation(a.clients, a.rounds, killed, a.seconds)
        rows.append(f"| {a.clients} | {killed} | {lost} | {' '.join(map(str, answers))} | "
                    f"{' '.join(f'{100 * v:.0f}' for v in accuracies)} % | {exported:.1%} | {took:.0f} |")
    print("| clients | killed per round | SuperNodes killed | answers per round | accuracy by round | exported | s |\n"
          "|---|---|---|---|---|---|---|", *rows, sep="\n")


if __name__ == "__main__":
    main()
