"""One round trip: 5 steps in Keras, 5 here, 5 in Keras, against 15 in Keras. All weights, statistics, the optimizer's
state, iterations and losses are compared, relative to the largest element of each tensor."""

import keras
import numpy as np

import onnxtrain as ot
import zoo_images
import zoo_sequences  # noqa: F401 - fills the table
from settings import setting

STEPS, LIMIT, SPREAD = 5, 1e-5, 8
MODELS = zoo_images.MODELS


def fresh(name, optimizer, seed=3):
    """(compiled model, x, y); the same numbers every time."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    model, loss, x, y = MODELS[name]()
    loss, weights = loss if isinstance(loss, tuple) else (loss, None)
    model.compile(setting(optimizer), loss, loss_weights=weights, jit_compile=False)
    return model, x, y


def train(model, x, y, steps=STEPS):
    return [float(np.asarray(model.train_on_batch(x, y)).reshape(-1)[0]) for _ in range(steps)]


def variables(model):
    from onnxtrain.keras.from_keras.training import optimizer_variables

    return [*model.weights, *optimizer_variables(model.optimizer)]


def state(model):
    return [np.asarray(keras.ops.convert_to_numpy(v)) for v in variables(model)]


def feeds(trainer, x, y):
    """Batches under the file's names."""
    def flat(v):
        return [v] if isinstance(v, np.ndarray) else [v[k] for k in sorted(v)] if isinstance(v, dict) else list(v)
    names = [*trainer.inputs, *trainer.targets]
    return dict(zip(names, [*flat(x), *flat(y)]))


def apart(a, b):
    """Largest difference over the largest element, and where."""
    worst, at = 0.0, -1
    for k, (u, v) in enumerate(zip(a, b)):
        if u.shape != v.shape:
            return float("inf"), k
        if u.size and u.dtype.kind == "f":
            d = float(np.abs(u - v).max() / max(float(np.abs(v).max()), 1e-8))
        else:
            d = 0.0 if np.array_equal(u, v) else float("inf")
        if d > worst:
            worst, at = d, k
    return worst, at


def through_here(name, optimizer, into=False):
    """State after 5 + 5 + 5 steps, and the losses."""
    model, x, y = fresh(name, optimizer)
    losses = train(model, x, y)
    converted = ot.from_keras(model, x, y)
    trainer = ot.Trainer(converted)
    data = feeds(trainer, x, y)
    losses += [trainer.step(data).loss for _ in range(STEPS)]
    try:
        back = ot.to_keras(trainer, into=model if into else None)
    except ot.UsageError as e:  # own classes and functions have no config
        if e.code != "OT1715":
            raise
        back = ot.to_keras(trainer, into=model)
    losses += train(back, x, y)
    return state(back), losses


def in_keras(name, optimizer, jitter=0):
    model, x, y = fresh(name, optimizer)
    if jitter:
        rng = np.random.default_rng(jitter)
        for v in model.trainable_weights:
            a = np.asarray(keras.ops.convert_to_numpy(v))
            v.assign((a + np.spacing(np.abs(a)) * rng.integers(-1, 2, a.shape)).astype(a.dtype))
    losses = train(model, x, y, 3 * STEPS)
    return state(model), losses, [v.path for v in variables(model)]


def round_trip(name, optimizer, into=False):
    """(difference, what differs most, noise of Keras itself or None when it was not needed)."""
    want, losses, paths = in_keras(name, optimizer)
    got, here = through_here(name, optimizer, into)
    if len(want) != len(got):
        return float("inf"), f"{len(got)} variables instead of {len(want)}", None
    difference, at = apart(got, want)
    loss = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(here, losses))
    what = paths[at] if at >= 0 else ""
    if max(difference, loss) <= LIMIT:
        return max(difference, loss), what, None
    noise = 0.0
    for k in (1, 2, 3):
        other, other_losses, _ = in_keras(name, optimizer, k)
        noise = max(noise, apart(other, want)[0],
                    max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(other_losses, losses)))
    return max(difference, loss), what, noise
