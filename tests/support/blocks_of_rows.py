"""A training whose batches are cut into blocks of rows, against whole batches."""

import numpy as np
import pytest

import onnxtrain as ot


def assert_blocks_agree(file, feeds, blocks=4):
    """feeds(rows, rng): a batch. Steps with other numbers of rows give the same losses and weights."""
    rng = np.random.default_rng(3)
    one, many = ot.Trainer(file, threads=1), ot.Trainer(file, threads=1, micro_blocks=blocks)
    for rows in (16, 5, 2, 9):
        batch = feeds(rows, rng)
        assert many.step(batch).loss == pytest.approx(one.step(batch).loss, rel=2e-6)
    for n in one.state:
        np.testing.assert_allclose(one.state[n], many.state[n], rtol=1e-5, atol=1e-6, err_msg=n)


def assert_not_cut(file, feeds, why):
    """The step runs on whole batches; in blocks it is refused, and the message says why."""
    batch = feeds(8, np.random.default_rng(3))
    assert np.isfinite(ot.Trainer(file, threads=1).step(batch).loss)
    with pytest.raises(ot.ModelError, match=why) as e:
        ot.Trainer(file, threads=1, micro_blocks=2).step(batch)
    assert e.value.code == "OT5010"
