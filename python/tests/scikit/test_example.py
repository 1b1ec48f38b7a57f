"""examples/sklearn_both_ways runs and prints what its README shows."""

import importlib.util
import pathlib
import re

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples/sklearn_both_ways"


def test_example(capsys):
    spec = importlib.util.spec_from_file_location("sklearn_both_ways", EXAMPLE / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 1.0
    printed = capsys.readouterr().out.splitlines()
    shown = (EXAMPLE / "README.md").read_text().split("prints\n\n")[1].split("\n\n")[0].splitlines()
    form = lambda line: re.sub(r"[\d.]+(e-\d+)?", "#", line.strip())
    assert list(map(form, shown)) == list(map(form, printed))
    assert all(float(line.split()[-1]) < 1e-9 for line in printed[:4])
