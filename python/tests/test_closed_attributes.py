"""Our objects take no new attributes; copies, pickles and classes of users go on as before."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import onnxtrain as ot
from models import mlp


@pytest.fixture
def model():
    return ot.load(mlp())


def every(model):
    ready = ot.prepare(model, loss="cross_entropy", optimizer=ot.SGD(lr=0.1))
    trainer = ot.Trainer(ready)
    return [model, trainer, trainer.state, model.parameters, ot.Session(model), ot.AdamW(), ot.SGD(lr=1),
            ot.OnnxAdam(), ot.losses.MSE(), ot.Schedule("cosine"), ot.callbacks.EarlyStopping(),
            ot.callbacks.ReduceLROnPlateau(), ot.callbacks.LearningRateScheduler(print),
            ot.callbacks.CSVLogger("x.csv"), ot.callbacks.LambdaCallback(), ot.OnnxClassifier("m.onnx"),
            ot.OnnxRegressor("m.onnx")]


def test_a_new_attribute_is_refused_everywhere(model):
    for thing in every(model):
        with pytest.raises(ot.UsageError, match="something_else") as e:
            thing.something_else = 1
        assert isinstance(e.value, AttributeError) and e.value.code == "OT1166" and e.value.hint
        assert not hasattr(thing, "something_else")
        assert getattr(thing, "something_else", 7) == 7


def test_names_of_other_libraries_are_said_and_not_listed(model):
    trainer = ot.Trainer(ot.prepare(model, loss="cross_entropy", optimizer=ot.SGD(lr=0.1)))
    with pytest.raises(ot.UsageError, match="has no attribute 'optimizer'") as e:
        trainer.optimizer  # noqa: B018
    assert e.value.hint == "trainer.lr = 1e-4" and not hasattr(trainer, "optimizer")
    assert "optimizer" not in dir(trainer) and {"lr", "step", "state"} <= set(dir(trainer))
    with pytest.raises(AttributeError, match="stepp"):
        trainer.stepp  # noqa: B018


def test_what_an_object_has_can_be_set(model):
    optimizer, term = ot.AdamW(), ot.losses.CrossEntropy()
    optimizer.lr, optimizer.betas, term.weight = 0.5, (0.5, 0.9), 2
    assert optimizer.spec()["beta1"] == 0.5 and term.spec()["weight"] == 2
    stop = ot.callbacks.EarlyStopping()
    stop.patience, stop.monitor = 7, "loss"
    estimator = ot.OnnxClassifier("m.onnx")
    estimator.epochs = 3
    assert estimator.get_params()["epochs"] == 3
    trainer = ot.Trainer(ot.prepare(model, optimizer=optimizer))
    trainer.lr = 0.25
    trainer.learning_rate = 0.125
    assert trainer.lr == 0.125
    schedule = ot.Schedule("step")
    schedule.numbers = {"step_size": 5}
    assert schedule.spec()["numbers"] == {"step_size": 5}


def test_copies_and_pickles(model):
    for thing in (ot.AdamW(lr=0.5), ot.losses.MSE(), ot.Schedule("cosine"), ot.callbacks.EarlyStopping(patience=4),
                  ot.OnnxClassifier("m.onnx", epochs=3)):
        for made in (copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
            assert vars(made) == vars(thing)
    assert dataclasses.replace(ot.SGD(lr=1), momentum=0.5).momentum == 0.5
    assert copy.deepcopy(model).inputs == pickle.loads(pickle.dumps(model)).inputs == model.inputs


def test_classes_of_users_take_any_attribute(model):
    class Mine(ot.callbacks.Callback):
        def __init__(self):
            self.seen = 0

        def on_epoch_end(self, epoch, logs=None):
            self.seen += 1

    class Stop(ot.callbacks.EarlyStopping):
        pass

    class Named(ot.Model):
        pass

    mine, stop, named = Mine(), Stop(monitor="loss"), Named(model._m)
    stop.note, named.title = "a", "b"
    x, y = np.random.default_rng(0).standard_normal((20, 4)).astype("f4"), np.arange(20) % 3
    model.compile().fit(x, y, epochs=2, callbacks=[mine, stop])
    assert mine.seen == 2 and named.title == "b"
    with pytest.raises(AttributeError):
        mine.nothing  # noqa: B018


def test_the_history_too(model):
    x, y = np.zeros((20, 4), "f4"), np.arange(20) % 3
    history = model.compile().fit(x, y, epochs=1)
    assert history.best_epoch == 1
    with pytest.raises(AttributeError, match="losses"):
        history.losses  # noqa: B018
