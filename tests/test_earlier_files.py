"""Files of an earlier commit still load, resume and give the same bits; names that users rely on are still there.

tests/earlier/ holds the files and what that commit made of them; tests/earlier/make.py says how they were written.
"""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "earlier"))
import replay  # noqa: E402
import surface  # noqa: E402


def load(name):
    return json.loads((replay.HERE / name).read_text())


RUNS, RECIPES, TORCH, SURFACE = (load(f"{name}.json") for name in ("runs", "recipes", "torch", "surface"))
EARLIER = f"since {RUNS['commit']}"


def worker(what, given, isa, folder=replay.HERE):
    done = replay.python([replay.HERE / "worker.py", what], folder, isa, given)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def same(want, got, exact=True):
    found = replay.differences(want, got, exact)
    assert not found, f"{len(found)} differences {EARLIER}:\n" + "\n".join(found[:20])


# ---- recipes

@pytest.mark.parametrize("isa", replay.INSTRUCTION_SETS)
def test_recipes_give_the_same_files_and_losses(isa):
    """Files byte for byte; losses and state of five steps bit-exact."""
    cases = RECIPES["cases"]
    assert len(cases) > 150
    got = worker("steps", cases, isa)
    same({c["name"]: c["file"] for c in cases}, {name: seen["file"] for name, seen in got.items()})
    for convolution in (False, True):
        exact = replay.is_exact(isa, convolution, RECIPES["cpu"])
        want = {c["name"]: c[isa] for c in cases if c["convolution"] == convolution}
        if not exact:  # a bias in front of a normalisation has no gradient but rounding, and Adam makes steps of it
            want = {name: {"losses": seen["losses"]} for name, seen in want.items()}
        same(want, got, exact)


# ---- run folders, checkpoints, settings

@pytest.mark.parametrize("case", RUNS["cases"], ids=lambda c: c["name"])
def test_run_folders(case, tmp_path):
    for isa, want in case["recorded"].items():
        (tmp_path / isa).mkdir()
        got = replay.play(case, replay.copy_to(tmp_path / isa), isa)
        exact = replay.is_exact(isa, case.get("convolution", False), RUNS["cpu"])
        same(want, got if isa == "sse4" else replay.compact(got), exact)
        if case.get("run") in RUNS["uninterrupted"] and isa == "sse4":
            for which, tensors in RUNS["uninterrupted"][case["run"]].items():
                same(tensors, got[f"tensors runs/{case['run']}/checkpoints/{which}.train.onnx"], exact)


def test_lines_of_a_log_stay_when_a_run_goes_on(tmp_path):
    folder = replay.copy_to(tmp_path)
    before = (folder / "runs/cli-finished/metrics.jsonl").read_text()
    done = replay.cli(["train", "--resume", "runs/cli-finished", "--epochs", "4"], folder)
    assert done.returncode == 0, done.stderr
    after = (folder / "runs/cli-finished/metrics.jsonl").read_text()
    assert after.startswith(before) and after.count("\n") == before.count("\n") + 1


# ---- files of from_torch and of convert

@pytest.mark.parametrize("isa", replay.INSTRUCTION_SETS)
def test_converted_files_train_alike(isa):
    want = TORCH["steps"][isa]
    got = worker("torch", list(want), isa)
    for name in want:
        same(want[name], got[name], replay.is_exact(isa, name == "cnn", TORCH["cpu"]))


def test_converted_files_in_pytorch():
    """from_torch writes the same bytes again; to_torch gives the same state; PyTorch goes on alike."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'onnxtrain[torch]'")
    done = replay.python([replay.HERE / "torch_modules.py"], replay.HERE)
    assert done.returncode == 0, done.stderr
    want, got = TORCH["pytorch"]["trainings"], json.loads(done.stdout)["trainings"]
    for name, seen in want.items():
        next_losses = seen.pop("next", [])
        same(next_losses, got[name].get("next", []), exact=False)
        if torch.__version__.split("+")[0] != TORCH["pytorch"]["torch"]:
            seen.pop("from_torch")  # what PyTorch traces is its own
        same(seen, got[name])


# ---- names

def test_c_functions():
    assert set(SURFACE["symbols"]) <= set(surface.symbols())


def test_commands_and_flags():
    same(SURFACE["commands"], surface.commands())


def test_operators():
    same(SURFACE["operators"], surface.operators())


def arguments_missing(want, got, where):
    """Recorded arguments keep place, kind and default; new ones come behind them and have a default."""
    if not isinstance(want, list):
        return [] if isinstance(got, type(want)) else [f"{where}: {got!r}, recorded {want!r}"]
    if not isinstance(got, list):
        return [f"{where}: is no function any more"]
    known = {name for name, *_ in want}
    kept = [a for a in got if a[0] in known]
    found = [] if kept == want else [f"{where}: {kept}, recorded {want}"]
    positional = [a[0] for a in got if "positional" in a[1] and "variadic" not in a[1]]
    before = [a[0] for a in want if "positional" in a[1] and "variadic" not in a[1]]
    if positional[:len(before)] != before:
        found.append(f"{where}: arguments by position are {positional}, recorded {before}")
    return found + [f"{where}: new argument '{a[0]}' has no default" for a in got
                    if a[0] not in known and a[2] is None and "variadic" not in a[1]]


def test_python_names_and_arguments():
    done = replay.python([replay.HERE / "surface.py"], replay.HERE)
    assert done.returncode == 0, done.stderr
    got, found = json.loads(done.stdout), []
    for module, names in SURFACE["python"].items():
        for name, want in names.items():
            now = got[module].get(name)
            if now is None:
                found.append(f"{module}.{name}: missing")
            elif isinstance(want, dict):
                found += [f"{module}.{name}.{m}: missing" for m in want if m not in now]
                found += [d for m in want if m in now
                          for d in arguments_missing(want[m], now[m], f"{module}.{name}.{m}")]
            else:
                found += arguments_missing(want, now, f"{module}.{name}")
    assert not found, "\n".join(found)
