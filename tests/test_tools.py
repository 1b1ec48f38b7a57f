"""The tools that `make` calls: tables that exist, environments that cannot be made, sources for clang-tidy."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import tidy  # noqa: E402


def run(*args, **env):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, cwd=ROOT, env={**os.environ, **env})


def test_every_table_of_figures_has_its_script():
    rows = re.findall(r"^([a-z0-9-]+) +\| .+ \| (.+)$", (ROOT / "tools/figures.sh").read_text(), re.M)
    assert [name for name, _ in rows] == run("tools/figures.sh", "--names").stdout.split() and len(rows) > 5
    for name, command in rows:
        [script] = [word for word in command.split() if word.endswith((".py", ".sh"))]
        assert (ROOT / script).is_file(), f"figures-{name}: there is no {script}"


def test_a_table_that_is_not_there():
    done = run("tools/figures.sh", "nothing")
    assert done.returncode == 2 and "gradients" in done.stderr


def test_an_environment_that_cannot_be_made_says_so_in_one_line(tmp_path):
    done = run("tools/environment.sh", "torch", ONNXTRAIN_CACHE=str(tmp_path), PIP_NO_INDEX="1",
               PIP_FIND_LINKS=str(tmp_path), PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("environment: torch cannot be installed: ERROR"), done.stderr
    assert not [p for p in tmp_path.iterdir() if p.is_dir()]  # nothing half made is left


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository with three sources and a header that two of them include, all recorded as clean."""
    for name, text in {"src/a/x.hpp": "", "src/a/one.cpp": '#include "a/x.hpp"\n',
                       "src/a/two.cpp": '#include "a/x.hpp"\n',
                       "src/a/three.cpp": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(tidy, "ROOT", tmp_path)
    commit(tmp_path, "first")
    return tmp_path


def commit(folder, message):
    for args in (("init", "-q"), ("add", "-A"), ("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", message)):
        subprocess.run(["git", *args], cwd=folder, check=True)
    tidy.below.cache_clear()
    tidy.digest.cache_clear()


SOURCES = ["src/a/one.cpp", "src/a/three.cpp", "src/a/two.cpp"]


def clean_record():
    return {name: tidy.digest(name) for name in [*SOURCES, "src/a/x.hpp"]}


def test_clang_tidy_sees_what_changed(tree):
    clean = clean_record()
    assert tidy.changed(SOURCES, clean) == []
    (tree / "src/a/three.cpp").write_text("int x;\n")  # not committed
    assert tidy.changed(SOURCES, clean) == ["src/a/three.cpp"]
    commit(tree, "second")  # committed, and not what was recorded
    assert tidy.changed(SOURCES, clean) == ["src/a/three.cpp"]
    (tree / "src/a/x.hpp").write_text("int y;\n")  # one source that includes it
    assert tidy.changed(SOURCES, clean) == ["src/a/one.cpp", "src/a/three.cpp"]
    (tree / "src/a/two.cpp").write_text('#include "a/x.hpp"\nint z;\n')  # which sees the header too
    assert tidy.changed(SOURCES, clean) == ["src/a/two.cpp", "src/a/three.cpp"]  # what is not committed comes first


def test_clang_tidy_checks_new_sources_and_counts_those_that_wait(tree, capsys):
    clean = clean_record()
    del clean["src/a/one.cpp"]  # has no line: new
    assert tidy.changed(SOURCES, clean) == ["src/a/one.cpp"]
    clean["src/a/two.cpp"] = tidy.OPEN  # the record is not complete
    assert tidy.changed(SOURCES, clean) == []
    assert "2 of 3 sources are still to be checked" in capsys.readouterr().out
    assert tidy.changed(SOURCES, {}) == []
    (tree / "src/a/two.cpp").write_text("int x;\n")  # not committed
    assert tidy.changed(SOURCES, {}) == ["src/a/two.cpp"]


def test_clang_tidy_says_what_it_leaves_out(tree, monkeypatch, capsys):
    checked = []
    monkeypatch.setattr(tidy, "compile_commands", lambda: dict.fromkeys(SOURCES))
    monkeypatch.setattr(tidy, "CLEAN", tree / "tidy-clean.txt")
    monkeypatch.setattr(tidy, "check", lambda todo, entries, jobs: [checked.append(f) or {f: ""} for f in todo])
    monkeypatch.setenv("ONNXTRAIN_CACHE", str(tree / "cache"))
    (tree / ".clang-tidy").write_text("")
    monkeypatch.setattr(tidy, "recorded", lambda settings: {"src/a/earlier.cpp": ""})  # no file of now has a line
    for expected in ("2 of 3 files", "1 of 2 files", "0 with findings"):  # what was checked is remembered
        monkeypatch.setattr("sys.argv", ["tidy.py", "--changed", "--most", "1", "--record"])
        assert tidy.main() == 0
        assert expected in capsys.readouterr().out
    assert sorted(checked) == SOURCES


def test_what_the_record_of_clang_tidy_keeps(tree, monkeypatch):
    monkeypatch.setattr(tidy, "CLEAN", tree / "tidy-clean.txt")

    def lines(before, clean, bad=()):
        tidy.record(b"settings", SOURCES, before, clean, bad)
        return tidy.recorded(b"settings")

    one, two, three = SOURCES
    first = lines({}, {one, "src/a/x.hpp"})
    assert first == {one: tidy.digest(one), two: "-", three: "-", "src/a/x.hpp": tidy.digest("src/a/x.hpp")}
    assert lines(first | {one: "earlier"}, {two}, {two}) == first | {one: "earlier"}  # findings: not clean
    del first[three]
    assert three not in lines(first, {two}) and lines(first, {two})[two] == tidy.digest(two)  # a new file stays new


def test_what_is_remembered_as_clean_depends_on_headers(tree):
    before = tidy.key("src/a/one.cpp", b"settings")
    assert tidy.key("src/a/one.cpp", b"other settings") != before
    (tree / "src/a/x.hpp").write_text("int y;\n")
    tidy.digest.cache_clear()
    assert tidy.key("src/a/one.cpp", b"settings") != before
