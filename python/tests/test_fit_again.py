"""`fit` of a trainer that was trained before, and steps from several threads."""

import threading

import numpy as np
import pytest

import onnxtrain as ot
from models import three_classes, trainer


@pytest.fixture
def data():
    return three_classes()


def test_fit_again_trains_again(data):
    t = trainer()
    first, second = t.fit(*data, epochs=2, shuffle=False), t.fit(*data, epochs=2, shuffle=False)
    assert len(first) == len(second) == 2 and second["loss"][0] < first["loss"][-1]
    whole = trainer()
    whole.fit(*data, epochs=4, shuffle=False)
    for name in whole.state:
        np.testing.assert_array_equal(t.state[name], whole.state[name])
    before = t.step_count
    t.fit(data[0][:8], data[1][:8], epochs=9, steps=3, batch_size=4)  # other data, so many steps more
    assert t.step_count == before + 3


def test_several_threads_step_one_trainer(data):
    t = trainer()
    feeds = dict(zip([*t.inputs, *t.targets], data))
    work = [threading.Thread(target=lambda: [t.step(feeds) for _ in range(100)]) for _ in range(4)]
    for w in work:
        w.start()
    for w in work:
        w.join()
    alone = trainer()
    for _ in range(400):
        alone.step(feeds)
    assert t.step_count == 400
    for name in alone.state:
        np.testing.assert_array_equal(t.state[name], alone.state[name])
