"""Every fourth planted mistake; `make figures-mistakes` plants all of them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import run_mistakes as run  # noqa: E402
import workshop  # noqa: E402

SAMPLE = [m for cases in run.GROUPS.values() for m in cases[::4]]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    return workshop.make(tmp_path_factory.mktemp("workshop"))


@pytest.mark.parametrize("m", SAMPLE, ids=[m.name for m in SAMPLE])
def test_answered_fully(m, made):
    if "--text" in m.typed:
        pytest.importorskip("tokenizers")
    a = run.one(m, made)
    assert not a.problems, "\n".join([m.typed, *a.problems, a.text])


def test_names_are_unique():
    for cases in run.GROUPS.values():
        names = [m.name for m in cases]
        assert len(names) == len(set(names))
