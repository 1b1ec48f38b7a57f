"""One round trip: 5 steps in Keras, 5 here, 5 in Keras, against 15 in Keras. All weights, statistics, the optimizer's
state, iterations and losses are compared, relative to the largest element of each tensor."""

import keras
import numpy as np

import onnxtrain as ot
import signs
import zoo_images
import zoo_sequences  # noqa: F401 - fills the table
from settings import setting

STEPS, LIMIT, SPREAD = 5, 1e-5, 8
MODELS = zoo_images.MODELS
GRAPHS = {"subclassed", "cnn", "lstm"}  # run as graphs; the others eagerly, which is faster for so few steps


def fresh(name, optimizer, seed=3):
    """(compiled model, x, y); the same numbers every time."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    model, loss, x, y = MODELS[name]()
    loss, weights = loss if isinstance(loss, tuple) else (loss, None)
    model.compile(setting(optimizer), loss, loss_weights=weights, jit_compile=False, run_eagerly=name not in GRAPHS)
    return model, x, y


def train(model, x, y, steps=STEPS):
    found = []
    for _ in range(steps):
        model.reset_metrics()  # older versions of Keras return the mean since the last reset
        found.append(float(np.asarray(model.train_on_batch(x, y)).reshape(-1)[0]))
    return found


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


def differences(a, b):
    """Of each tensor: the largest difference over its largest element."""
    found = []
    for u, v in zip(a, b):
        if u.shape != v.shape or u.dtype.kind != "f" and not np.array_equal(u, v):
            found.append(float("inf"))
        elif u.dtype.kind != "f" or not u.size:
            found.append(0.0)
        else:
            found.append(float(np.abs(u - v).max() / max(float(np.abs(v).max()), 1e-8)))
    return np.array(found)


def apart(a, b):
    """The largest of them, and where."""
    found = differences(a, b)
    return (float(found.max()), int(found.argmax())) if len(found) else (0.0, -1)


def through_here(name, optimizer, into=False, watch=None):
    """State after 5 + 5 + 5 steps, and the losses. watch: called with the weights after every step."""
    watch = watch or (lambda weights: None)
    model, x, y = fresh(name, optimizer)
    losses = _watched(model, x, y, watch)
    converted = ot.from_keras(model, x, y)
    trainer = ot.Trainer(converted)
    data = feeds(trainer, x, y)
    for _ in range(STEPS):
        losses.append(trainer.step(data).loss)
        watch(ot.keras_weights(trainer))
    try:
        back = ot.to_keras(trainer, into=model if into else None)
    except ot.UsageError as e:  # own classes and functions have no config
        if e.code != "OT1715":
            raise
        back = ot.to_keras(trainer, into=model)
    back.run_eagerly = name not in GRAPHS
    losses += _watched(back, x, y, watch)
    return state(back), losses


def _watched(model, x, y, watch):
    losses = []
    for _ in range(STEPS):
        losses += train(model, x, y, 1)
        watch(model.get_weights())
    return losses


def with_the_same_signs(name, optimizer, into=False):
    """(difference, what differs most, number of signs that float32 does not know): Keras takes the round trip's."""
    weights = []
    got, here = through_here(name, optimizer, into, weights.append)
    model, x, y = fresh(name, optimizer)
    follower = signs.Follower(model, x, y)
    places = [next(k for k, w in enumerate(model.weights) if w is v) for v in model.trainable_weights]
    losses = [follower.step(train, [after[p] for p in places]) for after in weights]
    want, names = state(model), variables(model)
    found = differences(got, want)
    for v, off in follower.noise():  # momentum that is 0 in exact arithmetic is nothing but rounding
        k = next(i for i, other in enumerate(names) if other is v)
        if np.abs(got[k] - want[k]).max() <= SPREAD * off:
            found[k] = 0.0
    found = np.append(found, _losses(here, losses))
    paths = [*[v.path for v in names], "the losses"]
    return float(found.max()), paths[int(found.argmax())], follower.undecided


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
    """(difference, what differs most, noise of Keras itself there or None when it was not needed). Every tensor and the
    losses are judged by themselves; the one that differs most beyond its noise is returned."""
    want, losses, paths = in_keras(name, optimizer)
    got, here = through_here(name, optimizer, into)
    if len(want) != len(got):
        return float("inf"), f"{len(got)} variables instead of {len(want)}", None
    found = np.append(differences(got, want), _losses(here, losses))
    paths = [*paths, "the losses"]
    if found.max() <= LIMIT:
        return float(found.max()), paths[int(found.argmax())], None
    noise = np.zeros_like(found)
    for k in (1, 2, 3):
        other, other_losses, _ = in_keras(name, optimizer, k)
        noise = np.maximum(noise, np.append(differences(other, want), _losses(other_losses, losses)))
        at = int((found / np.maximum(SPREAD * noise, LIMIT)).argmax())
        if found[at] <= max(SPREAD * noise[at], LIMIT):
            break
    return float(found[at]), paths[at], float(noise[at])


def _losses(a, b):
    return max(abs(x - y) / max(abs(y), 1e-3) for x, y in zip(a, b))
