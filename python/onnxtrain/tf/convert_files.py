"""SavedModels of `onnxtrain convert`, and its check: one step on both sides."""

import os
import shutil
import sys

import numpy as np
import tensorflow as tf

from ..converters.feeds import difference, input_types, random_feeds
from ..errors import UsageError
from ..model import load
from ..session import Session
from ..trainer import Trainer
from .from_tf import from_tf
from .shared.names import distinct, identifier
from .to_tf import to_tf

_TOLERANCE = 1e-4


def convert(source, have, target, wanted, verify):
    """0 done, 6 when --verify finds a difference."""
    if wanted == "onnx":
        model = from_tf(source)
        model.save(target)
        made = to_tf(model) if verify else None
    else:
        if os.path.exists(target) and (not os.path.isdir(target) or os.listdir(target)):
            raise UsageError(f"'{target}' is not an empty folder", "OT1732", "name a folder that does not exist yet")
        model = load(source)
        made = to_tf(model)
        _save(made, target)
    print(f"saved     {target}", file=sys.stderr)
    return _verified(model, made) if verify else 0


def _save(made, folder):
    """Whole or not at all."""
    part = os.fspath(folder).rstrip(os.sep) + ".part"
    try:
        made.save(part)
        if os.path.isdir(folder):
            os.rmdir(folder)
        os.replace(part, folder)
    finally:
        if os.path.exists(part):
            shutil.rmtree(part)


def _verified(model, made):
    rng, differences = np.random.default_rng(0), {}
    if hasattr(made, "random_counter") and model.trainable:
        print("note      the step draws random numbers, each side its own: the inference form is compared",
              file=sys.stderr)
    elif model.trainable:
        _compare_step(model, made, rng, differences)
    if not differences:
        _compare_inference(model, made, rng, differences)
    name = max(differences, key=differences.get)
    good = differences[name] <= _TOLERANCE
    tensors = f"{len(differences)} tensors" if len(differences) > 1 else "1 tensor"
    verdict = "agree" if good else "do NOT agree"
    print(f"verify    {tensors} {verdict}, largest difference {differences[name]:.3g} ('{name}')")
    return 0 if good else 6


def _arguments(feeds):
    names = distinct(list(feeds), identifier)
    return {names[n]: tf.constant(v) for n, v in feeds.items()}


def _takes(function):
    return {s.name for s in tf.nest.flatten(function.get_concrete_function().structured_input_signature)}


def _compare_step(model, made, rng, differences):
    """One step of every section on both sides."""
    trainer = Trainer(model)
    types = {}
    for k in range(len(model.info["training"])):
        types.update(input_types(model, k))
    feeds = random_feeds(types, list(types), rng)
    loss = trainer.step(feeds).loss
    given = {n: v for n, v in _arguments(feeds).items() if n in _takes(made.train_step)}
    got = made.train_step(**given)
    if len(model.info["training"]) == 1 and "loss" in got:
        differences["loss"] = difference(np.float64(loss), got["loss"].numpy())
    for name in trainer.state:
        differences[name] = difference(trainer.state[name], made.variable(name).numpy())


def _compare_inference(model, made, rng, differences):
    types = input_types(model)
    feeds = random_feeds(types, list(types), rng)
    got = made(**_arguments(feeds))
    got = got if isinstance(got, dict) else {model.outputs[0]: got}
    for name, want in Session(model).run(feeds).items():
        differences[name] = difference(want, got[name].numpy())
