"""Every hint of the sources: its commands and flags exist, and a planted mistake prints it, or a reason says why."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import hints  # noqa: E402
import run_mistakes as run  # noqa: E402
import workshop  # noqa: E402
from mistake import BIN, shell  # noqa: E402

# programs of others that hints name, with flags of their own
OTHERS = ("git lfs", "tf2onnx", "optimum-cli", "pip install")
# mistakes that print these codes, by name; they are planted here, and their fixes typed
PLANTED = Path(__file__).with_name("planted.json")
# codes that no mistake of a test can print, and why
NOT_PLANTED = {
    "OT1121": "a name of the C API; Python asks for names itself (OT1122)",
    "OT1205": "an operator of a whole training whose lowered gradient needs sizes: tests/engines",
    "OT1271": "a package of an engine that is missing or broken: python/tests/test_engines.py",
    "OT1275": "an engine that dies in the middle of a run: tests/engines",
    "OT1276": "an engine that gives other values than it was asked for: python/tests/test_engines.py",
    "OT1607": "another version of TensorFlow: make test-versions",
    "OT1731": "no Python on the machine",
    "OT1772": "a training without a loss, made by hand: tests/engines",
    "OT2109": "a source with only one part: src/data/arrays/npy_test.cpp",
    "OT2130": "settings that the command line and Python refuse before (OT0003, OT1152, OT2101)",
    "OT2131": "settings that the command line and Python refuse before (OT0003, OT1152)",
    "OT4502": "a port that only others than root may not open",
    "OT5001": "several processes: tests/test_many_processes.py",
    "OT5006": "several processes: tests/test_many_processes.py",
    "OT5040": "a machine without mpirun and srun, or hosts without them",
    "OT5010": "blocks of rows: tests/test_row_blocks.py",
    "OT5012": "an output of a step in blocks, asked for in a loop of one's own",
    "OT5013": "a step in blocks of a model that takes a sequence, in a loop of one's own",
    "OT2221": "needs the package tokenizers: tests/test_text_columns.py",
    "OT1734": "the Python package without PyTorch: python/tests/test_torch_missing.py",
}


def commands():
    code, text = shell(f"{BIN}/onnxtrain reference json 2>/dev/null", Path.cwd())
    assert code == 0
    return {c["command"]: {n for o in c["options"] for n in o["names"]} for c in json.loads(text)}


def test_commands_and_flags_of_hints_exist():
    known = commands()
    every = set().union(*known.values())
    wrong = []
    for code, file, words in hints.collect():
        if any(o in words for o in OTHERS):
            continue
        if "new" not in known and file.startswith(("src/convert/networks/", "src/convert/preprocess/")):
            continue  # parts of a command that is not there yet: nothing prints them
        for m in hints.COMMAND.finditer(words):
            if m.group(1) not in known:
                wrong.append(f"{file} {code}: there is no command '{m.group(1)}'")
            elif bad := set(hints.FLAG.findall(m.group(2))) - known[m.group(1)]:
                wrong.append(f"{file} {code}: {m.group(1)} has no {bad}")
        if bad := set(hints.FLAG.findall(words)) - every:
            wrong.append(f"{file} {code}: no command has {bad}")
    assert not wrong, "\n".join(wrong)


def test_every_hint_is_planted():
    planted = json.loads(PLANTED.read_text())
    open_ones = hints.actionable() - set(planted) - set(NOT_PLANTED)
    assert not open_ones, f"no planted mistake prints {sorted(open_ones)}: add one to tests/mistakes and its name here"
    names = {m.name for cases in run.GROUPS.values() for m in cases}
    assert not set(planted.values()) - names, "planted.json names mistakes that are not there"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return workshop.make(tmp_path_factory.mktemp("workshop"))


@pytest.mark.parametrize("code", sorted(json.loads(PLANTED.read_text())) if PLANTED.exists() else [])
def test_a_planted_mistake_prints_it(code, made):
    name = json.loads(PLANTED.read_text())[code]
    m = next(m for cases in run.GROUPS.values() for m in cases if m.name == name)
    if "--text" in m.typed:
        pytest.importorskip("tokenizers")
    a = run.one(m, made)
    assert code in a.text and not a.problems, "\n".join([m.typed, *a.problems, a.text])
