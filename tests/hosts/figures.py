"""Tables of docs/distributed.md over four hosts on one machine:  python tests/hosts/figures.py [--steps N]

Hosts are network namespaces with TCP between them (hosts.py). First the bits of one process, of two and of four hosts;
then time, bytes and messages of a step on links of different speed.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parents[1] / "bench"
sys.path[:0] = [str(HERE), str(HERE.parent)]
import many_processes as many  # noqa: E402

import hosts as h  # noqa: E402

LINKS = ({}, {"rate": "1gbit"}, {"rate": "1gbit", "delay_us": 500})

def name_of(link):
    if not link:
        return "not limited"
    return "1 Gbit/s" + (f", {link['delay_us']} us" if "delay_us" in link else "")


def bits(folder, steps):
    print("| model | 1 process | 2 hosts | 4 hosts |\n|---|---|---|---|")
    for name in many.networks(folder):
        many.run(folder, name, "one", "--micro-blocks", 4, "--steps", steps)
        row = []
        for count in (2, 4):
            with h.Hosts(count, rate="1gbit") as hosts:
                words = many.t.command(folder / f"{name}.onnx", "--data", folder / f"{name}.npz", "--batch", 24,
                                       "--epochs", 50, "--valid", 0, "--threads", 1, "--micro-blocks", 4, "--steps",
                                       steps, "--out", folder / "many")
                subprocess.run(hosts.mpirun(count, words), env=hosts.environment(), check=True, capture_output=True,
                               timeout=900)
            row.append("the same bits" if many.t.same(folder / "one", folder / "many") else "DIFFERENT")
            shutil.rmtree(folder / "many")
        print(f"| {name} | {steps} steps | {' | '.join(row)} |", flush=True)
        shutil.rmtree(folder / "one")


def links(folder, steps):
    sys.path.insert(0, str(BENCH))
    from distributed.workloads import gradient_bytes, training

    training("W1").save(folder / "mlp.train.onnx")
    gradient = gradient_bytes("W1")[1]
    print(f"\nW1 (MLP, {gradient / 1e6:.2f} MB of gradients), 16 rows on each host, a host's share of each step:\n")
    print("| hosts | link | ms | bytes sent | 2 G (R-1)/R | on the wire | messages |\n|---|---|---|---|---|---|---|")
    for count in (2, 4):
        for link in LINKS:
            with h.Hosts(count, **link) as hosts:
                start, _ = mpirun(hosts, count, folder, 1)  # of starting and a few steps
                wire, found = mpirun(hosts, count, folder, 1 + steps)
            theory = 2 * gradient * (count - 1) / count
            print(f"| {count} | {name_of(link)} | {found['ms']:.2f} | {found['bytes']:.0f} | {theory:.0f} | "
                  f"{(wire - start) / steps:.0f} | {found['messages']:g} |", flush=True)


def mpirun(hosts, count, folder, steps):
    """-> (bytes that the last host sent, what rank 0 wrote)"""
    before = hosts.sent(count - 1)[0]
    words = [sys.executable, BENCH / "distributed/steps.py", folder / "mlp.train.onnx", 16, steps, folder / "out.json"]
    done = subprocess.run(hosts.mpirun(count, words), env=hosts.environment(), text=True, capture_output=True,
                          timeout=900)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return hosts.sent(count - 1)[0] - before, json.loads((folder / "out.json").read_text())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--only", choices=("bits", "links"))
    a = parser.parse_args()
    why = h.obstacle()
    if why:
        print(f"hosts: not here: {why}")
        return
    with tempfile.TemporaryDirectory() as name:
        if a.only != "links":
            bits(pathlib.Path(name), a.steps)
        if a.only != "bits":
            links(pathlib.Path(name), a.steps)


if __name__ == "__main__":
    main()
