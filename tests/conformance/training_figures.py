"""The conformance suite for ONNX Training on every engine of this machine: a table, and a scoreboard page.

    python tests/conformance/training_figures.py [--only GLOB] [TARGET...]

Targets: native, engines of docs/engines.md, backend=MODULE. Each runs in a process of its own, in the environment of
the runtimes (tools/environment.sh engines) where there is one. Writes out/figures/training-conformance.html, .json."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ["native", "onnxruntime", "openvino", "backend=onnx.reference", "tinygrad", "iree"]
VERDICTS = ("pass", "wrong", "refused", "not applicable")


def interpreter():
    made = subprocess.run([str(ROOT / "tools/environment.sh"), "engines"], capture_output=True, text=True)
    return made.stdout.strip() + "/bin/python" if made.returncode == 0 else sys.executable


def run(python, name, folder, only):
    how = ["--backend", name[8:]] if name.startswith("backend=") else ["--engine", name]
    command = [python, "-m", "onnxtrain.conformance", "run", folder, *how, "--json"]
    command += ["--only", only] if only else []
    path = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, capture_output=True, text=True, env=path)
    try:
        return json.loads(done.stdout[done.stdout.index("{"):])
    except ValueError:
        print(f"{name}: {(done.stderr.strip().splitlines() or ['it ended without a result'])[-1]}")
        return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("targets", nargs="*", default=TARGETS)
    p.add_argument("--only")
    a = p.parse_args()
    sys.path.insert(0, str(ROOT / "python"))
    from onnxtrain import conformance
    from onnxtrain.conformance.score import Result, Score

    out = ROOT / "out" / "figures"
    out.mkdir(parents=True, exist_ok=True)
    folder = subprocess.run(["mktemp", "-d"], capture_output=True, text=True).stdout.strip() + "/suite"
    print(f"{len(conformance.export(folder, a.only))} cases")
    python, scores = interpreter(), []
    for name in a.targets:
        got = run(python, name, folder, a.only)
        if got is None:
            continue
        s = Score(got["target"], got["version"], [Result(**r) for r in got["results"]])
        scores.append(s)
        print(s.line, flush=True)
        for r in s.results:
            if r.verdict in ("wrong", "refused"):
                print(f"    {r.verdict:<8} {r.name}: {r.why}")
    table(scores)
    (out / "training-conformance.html").write_text(conformance.page(scores))
    (out / "training-conformance.json").write_text(json.dumps([vars(s) | {"results": [vars(r) for r in s.results]}
                                                               for s in scores], indent=1))


def table(scores):
    print("\n| runs on | " + " | ".join(VERDICTS) + " |\n|---|---|---|---|---|")
    for s in scores:
        print(f"| {s.target} {s.version} | " + " | ".join(str(s.count(v)) for v in VERDICTS) + " |")
    print("\n| category | cases | " + " | ".join(s.target for s in scores) + " |\n|---|---|" + "---|" * len(scores))
    for category in dict.fromkeys(r.category for r in scores[0].results):
        def share(s, category=category):
            mine = [r for r in s.results if r.category == category and r.verdict != "not applicable"]
            return f"{sum(r.verdict == 'pass' for r in mine)} of {len(mine)}" if mine else "-"
        count = sum(r.category == category for r in scores[0].results)
        print(f"| {category} | {count} | " + " | ".join(map(share, scores)) + " |")


if __name__ == "__main__":
    main()
