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
    "OT1275": "an engine that dies in the middle of a run: tests/engines",
    "OT1607": "another version of TensorFlow: make test-versions",
    "OT1731": "no Python on the machine",
    "OT2221": "needs the package tokenizers: tests/test_text_columns.py",
    "OT2224": "its fix needs the package tokenizers: planted, the fix is not typed",
    "OT2225": "its fix needs the package tokenizers: planted, the fix is not typed",
    "OT1734": "the Python package without PyTorch: python/tests/test_torch_missing.py",
}
# hints whose records are not named in planted.json yet: to be planted; the list only gets shorter
OPEN = set("""
OT0031 OT1203 OT1205 OT1206 OT1210 OT1243 OT1246 OT1247 OT1248 OT1260 OT1262 OT1286 OT1287 OT1405 OT1770 OT1772
OT2115 OT2130 OT2131 OT2153 OT2172 OT2173 OT3104 OT3114 OT3117 OT4203 OT4204 OT4205
OT0032 OT0033 OT0034 OT0035 OT0036 OT0037 OT0038 OT0039 OT1101 OT1152 OT1781 OT1800 OT1801 OT1802 OT1804 OT2125
OT2170 OT2171 OT2180 OT2183 OT2184 OT2187 OT4500 OT4501 OT4502 OT5001 OT5002 OT5006 OT5008 OT5010 OT5012 OT5013
""".split())


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
    open_ones = hints.actionable() - set(planted) - set(NOT_PLANTED) - OPEN
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
    a = run.one(m, made)
    assert code in a.text and not a.problems, "\n".join([m.typed, *a.problems, a.text])
