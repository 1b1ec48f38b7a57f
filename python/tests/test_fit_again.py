"""`fit` of a trainer that was trained before, and steps from several threads."""

import json
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


def read(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_batches_into_the_folder_of_another_run_keep_both(data, tmp_path):
    x, y = data
    batches = [(x[k:k + 16], y[k:k + 16]) for k in range(0, len(x), 16)]
    trainer().fit(x, y, epochs=3, out=tmp_path)
    t = trainer()
    t.fit(batches, epochs=2, out=tmp_path)
    assert [e["epoch"] for e in read(tmp_path)] == [1, 2] and len(read(tmp_path / "earlier-001")) == 3
    assert (tmp_path / "earlier-001/data.npz").exists() and not (tmp_path / "data.npz").exists()  # resume must not take another run's data
    t.fit(iter(batches), out=tmp_path)  # the same trainer goes on
    assert [e["epoch"] for e in read(tmp_path)] == [1, 2, 3] and not (tmp_path / "earlier-002").exists()
    assert [e["step"] for e in read(tmp_path)] == [len(batches) * k for k in (1, 2, 3)]
    assert len((tmp_path / "metrics.csv").read_text().splitlines()) == 4
    ot.resume(tmp_path).fit(batches, epochs=1)
    assert [e["epoch"] for e in read(tmp_path)] == [1, 2, 3, 4]
    trainer().fit(iter(batches), out=tmp_path)
    assert len(read(tmp_path)) == 1 and len(read(tmp_path / "earlier-002")) == 4


def test_steps_made_by_hand_count(data, tmp_path):
    t = trainer()
    feeds = dict(zip([*t.inputs, *t.targets], data))
    for _ in range(5):
        t.step(feeds)
    t.fit(*data, epochs=1, batch_size=len(data[0]), out=tmp_path)
    assert t.step_count == 6 and [e["step"] for e in read(tmp_path)] == [6]
