"""Every architecture in two blocks of rows: what a whole batch gives, or a refusal that names the reason."""

import dataclasses

import numpy as np
import pytest

import compare
import onnxtrain as ot
from trajectory_cases import CASES, feeds

REFUSED = {("gcn", "dynamo"): "picks rows by their numbers"}
FILES = [(name, how) for name, case in CASES.items() for how in ("legacy", "dynamo")
         if case.open_batch and (compare.DATA / f"{name}.{how}.onnx").exists()]


def test_what_is_covered():
    assert len(FILES) > 50 and set(REFUSED) <= set(FILES)


@pytest.mark.parametrize(("name", "how"), FILES)
def test_blocks(name, how):
    sections = [dataclasses.replace(s, optimizer=("SGD", {"lr": 0.01}), schedule=None) for s in CASES[name].sections]
    file = compare.prepared(name, str(compare.DATA / f"{name}.{how}.onnx"), sections)
    one = ot.Trainer(file, threads=1)
    many = ot.Trainer(file, threads=1, micro_blocks=2, batch_norm="sync")
    batch = feeds(CASES[name], 0)
    if (name, how) in REFUSED:
        with pytest.raises(ot.ModelError, match=REFUSED[name, how]) as e:
            many.step(batch)
        assert e.value.code == "OT5010"
        return
    for _ in range(2):
        assert many.step(batch).loss == pytest.approx(one.step(batch).loss, rel=2e-6)
    for n in one.state:
        if np.asarray(one.state[n]).dtype.kind == "f":
            np.testing.assert_allclose(one.state[n], many.state[n], rtol=1e-4, atol=1e-6, err_msg=n)
