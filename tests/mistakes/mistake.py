"""One planted mistake: what is typed, and what a full answer is.

    Mistake("a name", "onnxtrain train mlp.onnx --data nowhere.npz", 4, ["nowhere.npz"], fix="...", then="...")

typed      a shell line, or Python when `python` is set; runs in a copy of the workshop's folder
code       the exit code that is right; Python: the name of the exception's class
says       words that must be in the answer: the culprit and its place
fix        what the answer must print, to be typed
then       the line that is typed with it ("{fix}" stands for it); it must succeed. Python: an expression or line.
           "": the answer prints the whole line.
plant      spoils something in the folder first
after      the mistake is not to be refused: a warning must say so, and the command succeeds (code 0)
"""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".venv" / "bin"
TRACES = (
    "Traceback (most recent call last)",
    "terminate called",
    "OT9001",
    "Segmentation",
    "internal error",
    "core dumped",
)


@dataclasses.dataclass
class Mistake:
    name: str
    typed: str
    code: object
    says: list
    fix: str = None
    then: str = None
    plant: object = None
    python: bool = False
    env: dict = None


@dataclasses.dataclass
class Answer:
    mistake: Mistake
    problems: list  # what is missing for a full answer
    silent: bool = False  # accepted without a word
    fix_failed: bool = False
    text: str = ""


def environment(extra=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ONNXTRAIN_")}
    env["PATH"] = f"{BIN}:{env['PATH']}"
    env["NO_COLOR"] = "1"
    env["PYTHONPATH"] = str(ROOT / "python")
    return {**env, **(extra or {})}


def _run(command, folder, env):
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=120,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )


def shell(line, folder, env=None):
    p = _run(["bash", "-c", line], folder, env)
    return p.returncode, p.stdout + p.stderr


_PYTHON = """
import sys
import numpy as np
import onnxtrain as ot
x, y = (lambda d: (d["x"], d["y"]))(np.load("data.npz"))
try:
    exec(sys.argv[1])
except ot.Error as e:
    print(type(e).__name__)
    print(e)
    sys.exit(9)
except (TypeError, FileNotFoundError) as e:
    print(type(e).__name__)
    print(type(e).__name__, e)
    sys.exit(9)
"""


def python(code, folder, env=None):
    p = _run([sys.executable, "-c", _PYTHON, code], folder, env)
    name = p.stdout.splitlines()[0] if p.returncode == 9 and p.stdout else p.returncode
    return name, p.stdout + p.stderr


def printed_line(text):
    """The command that the answer prints: from `onnxtrain` to the end of the line or three spaces."""
    found = re.findall(r"(onnxtrain [a-z].*?)(?:   |$)", text, re.M)
    return found[-1].strip() if found else None


def answer(m, folder):
    run = python if m.python else shell
    if m.plant:
        m.plant(folder)
    code, text = run(m.typed, folder, m.env)
    a = Answer(m, [], text=text)
    for trace in TRACES:
        if trace in text:
            a.problems.append(f"a trace: {trace}")
    if code != m.code:
        a.problems.append(f"exit {code}, expected {m.code}")
        a.silent = code == 0 and m.code != 0
    if m.code not in (0, 6) and not m.python and "error[OT" not in text:
        a.problems.append("no error code")
    if m.code == 0 and not any(w in text for w in ("warning[OT", "note")) and not m.fix:
        missing = [w for w in m.says if w not in text]
        a.silent = bool(missing)
    a.problems += [f"does not say {w!r}" for w in m.says if w not in text]
    if m.fix is not None or m.then is not None:
        check_fix(m, a, text, folder, run)
    elif m.code not in (0, 6, "TypeError") and "help:" not in text:
        a.problems.append("no help line")
    return a


def check_fix(m, a, text, folder, run):
    if m.fix is not None and m.fix not in text:
        a.problems.append(f"does not print the fix {m.fix!r}")
        return
    line = m.then
    if line is None:
        line = printed_line(text)
        if line is None:
            a.problems.append("prints no command")
            return
    code, after = run(line.replace("{fix}", m.fix or ""), folder, {} if m.env else None)
    if code != 0:
        a.fix_failed = True
        a.problems.append(f"the fix fails: {line.replace('{fix}', m.fix or '')}\n{after[-400:]}")
