"""The stages `training` and `export` of try_file.py: steps that lower a loss, the trained file in ONNX Runtime."""

import tempfile
from pathlib import Path

import feeds as made_up
import numpy as np
from answers import gap, is_float, reference, refused

import onnxtrain as ot

STEPS = 2  # that follow the first
SHARES = (0.005, 5e-4, 5e-5, 0.05, 0.5, 5.0, 500.0)  # of the loss that one step would take away on a straight line
STRAIGHT = (0.7, 1.3)  # a step that takes this much of it shows that the gradient is right


def answer(trial):
    """Fills in trial.stages: training and, where it trained, export."""
    target = next((n for n, v in trial.got.items() if is_float(v) and np.isfinite(v).all()), None)
    try:
        if target is not None:
            result = squared_error(trial, target)
        elif any(isinstance(v, list) for v in trial.got.values()):
            result = classes(trial)
        else:
            trial.stages["training"] = ["not tried", "no finite floating-point output"]
            return
    except ot.Error as e:
        trial.stages["training"] = refused(e)
        return
    finish(trial, *result)


def finish(trial, first, slope, lowest):
    if lowest is None:
        why = "all gradients are 0" if slope == 0 else "no learning rate lowers it"
        trial.stages["training"] = ["not tried", f"the loss is {first:.4g}, {why}"]
        return
    last, trial.fell, trainer = lowest
    words = f"{first:.4g} to {last:.4g}; the first step took {trial.fell:.2g} of what its gradient says"
    trial.stages["training"] = ["trained", words]
    trial.stages["export"] = exported(trial, trainer)


def classes(trial):
    """A classifier that gives labels and maps only: the loss that `auto` chooses, on the first class."""
    trained = ot.prepare(str(trial.path), loss="auto", optimizer=ot.SGD(lr=0.0, momentum=0.5), label="wanted")
    rows = next(iter(trial.feeds.values())).shape[0]
    feeds = {**{n: v for n, v in trial.feeds.items() if n in trained.inputs}, "wanted": np.zeros(rows, np.int64)}
    return descend(trained, feeds, STEPS)


def squared_error(trial, target):
    try:
        return toward(trial, target, trial.feeds, trial.got[target])
    except ot.Error as e:
        more = two_rows(trial, target) if e.code == "OT1286" else None  # one row has no variance
        if more is None:
            raise
        return more


def toward(trial, target, inputs, now):
    try:
        return to_numbers(trial, target, inputs, now, now + np.random.default_rng(2).normal(size=now.shape))
    except ot.Error as e:
        if e.code != "OT2166":  # an output between 0 and 1 learns no other number
            raise
    return to_numbers(trial, target, inputs, now, np.random.default_rng(2).uniform(0, 1, now.shape))


def to_numbers(trial, target, inputs, now, wanted):
    loss = ot.losses.MSE(output=target)
    trained = ot.prepare(str(trial.path), loss=loss, optimizer=ot.SGD(lr=0.0, momentum=0.5), label="wanted")
    wanted = wanted.astype(now.dtype)
    feeds = {**{n: v for n, v in inputs.items() if n in trained.inputs}, "wanted": wanted}
    return descend(trained, feeds, 0 if trial.large else STEPS)


def two_rows(trial, target):
    """The same with two rows, where the model takes them."""
    session = ot.Session(str(trial.path), threads=1)
    for feeds in made_up.guesses(trial.proto, batch=2):
        try:
            return toward(trial, target, feeds, session.run(feeds)[target])
        except ot.Error:
            continue
    return None


def descend(trained, feeds, more):
    """(loss before, squared length of its gradient, lowest); lowest: None, or (loss after, fall of the first step
    beside what the gradient says, trainer).

    A step at the learning rate 0 leaves the gradient in the optimizer's state: the learning rate follows from it."""
    t = ot.Trainer(trained, threads=1)
    start = {n: np.array(t.state[n]) for n in t.state}
    first = t.step(feeds).loss
    velocities = [np.asarray(t.state[n], np.float64) for n in t.state if n.endswith(".momentum")]
    slope = sum(float(np.sum(v * v)) for v in velocities)
    if slope == 0 or not np.isfinite(slope):
        return first, slope, None
    lowest = None
    for share in SHARES:
        if lowest is not None and share > SHARES[0]:
            break
        for n, value in start.items():
            t.state[n] = value
        t.lr = rate = share * max(abs(first), 1e-6) / slope
        try:
            losses = [t.step(feeds).loss for _ in range(2 + more)]
        except ot.DivergedError:
            continue
        fell = (losses[0] - losses[1]) / (rate * slope)
        if losses[-1] < losses[0]:
            lowest = losses[-1], fell, t
            if STRAIGHT[0] < fell < STRAIGHT[1]:
                break
    return first, slope, lowest


def exported(trial, trainer):
    """The trained file here and in ONNX Runtime, on the inputs of the first stage."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trained.onnx"
        try:
            trainer.export(str(path))
            got = ot.Session(str(path), threads=1).run(trial.feeds)
        except ot.Error as e:
            return refused(e)
        try:
            session = reference(path)
            want = dict(zip([o.name for o in session.get_outputs()], session.run(None, trial.feeds), strict=True))
        except Exception as e:
            return ["WRONG", f"ONNX Runtime refuses the trained file: {str(e)[:300]}"]
        if trial.random:
            return ["as trained", "random: runs"]
        bad = trial.beyond_noise({n: gap(got[n], v) for n, v in want.items()}, path, want)
        bad = trial.farther_from_double(bad, path, got, want)
        return ["WRONG", f"{bad}"] if bad else ["as trained", ""]
