"""What people hand to steps, sessions and fit: other byte orders, lists of batches, wrong kinds."""

import numpy as np
import pytest

import onnxtrain as ot
from models import mlp, three_classes, trainer


@pytest.fixture
def data():
    return three_classes()


def test_arrays_in_any_byte_order(data):
    s = ot.Session(mlp())
    [name] = s.model.inputs
    want, = s.run({name: data[0]}).values()
    got, = s.run({name: data[0].astype(">f4")}).values()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("feeds", [None, np.zeros((1, 4), np.float32), [1, 2]])
def test_values_come_by_name(feeds):
    with pytest.raises(ot.Error) as e:
        ot.Session(mlp()).run(feeds)
    assert e.value.code == "OT1156"


def test_a_list_of_batches(data):
    x, y = data
    batches = [(x[:12], y[:12]), (x[12:], y[12:])]
    t, want = trainer(), trainer()
    t.fit(batches, epochs=2)
    want.fit(x, y, epochs=2, batch_size=12, shuffle=False)
    for name in want.state:
        np.testing.assert_array_equal(t.state[name], want.state[name])
    rows = [tuple(row) for row in x]  # rows, not batches
    assert len(trainer().fit(rows, y, epochs=1)) == 1
