"""Preparing a model for training: the arguments of `prepare` become the recipe that the library reads."""

import json
import os
import warnings

import numpy as np

from .errors import UsageError
from .hints import in_python
from .model import Model, as_model
from .recipe import loss_specs, optimizer_spec, schedule_spec
from .values import to_native


def prepare(model, loss="auto", optimizer=None, label=None, freeze=(), only=None, clip_norm=None, clip_value=None,
            schedule=None, accumulate=1, mode="train", lowered=False, reset=False, seed=0, batch=None,
            append=False, dims=None, bn_variance="torch", strict=False, augment=None):
    """Inference model -> training model (loss, gradients, optimizer and state are in the file).

    loss: a name, `ot.losses.CrossEntropy(...)`, a list of weighted terms, or the path of an ONNX graph;
    optimizer: `ot.AdamW(...)`, a name or the path of an ONNX graph; freeze, only: globs over initializer names;
    schedule: a name, `ot.Schedule(...)` or a dict; mode: "train" or "as_is"; batch, dims: fix the number of
    rows, other open dimensions by name ({"sequence": 128}) or the shape of an input; append: one more training section
    behind those that the model has; bn_variance: running variance of BatchNormalization, "torch" (unbiased) or "onnx"
    (population variance); strict: weights that would not train are an error, not a warning; augment: random changes
    of images in training only, "flip,crop:4" or a list, also the path of an ONNX graph. docs/recipe.md has all of it.
    """
    recipe = recipe_json(loss, optimizer, label, freeze, only, clip_norm, clip_value, schedule, accumulate, mode,
                         lowered, reset, seed, batch, append, dims, bn_variance, strict, augment)
    model = as_model(model)
    if model.trainable and not append:
        warnings.warn("the model carries a training already: it is replaced, with its optimizer and state", UserWarning,
                      stacklevel=2)
    return _prepared(model, recipe)


def prepare_for(model, target, **options):
    """`prepare` for a fit whose target is known, an array with one number per row, or None: `auto` looks at it."""
    return _prepared(model, recipe_json(**options), target)


def _prepared(model, recipe, target=None):
    native = model._m
    made = native.prepare(recipe, None if target is None else to_native(target, "y"))
    said = json.loads(native.weights(recipe))
    for left in said["left_out"]:
        warnings.warn(f"{left['text']} [OT1285]; to leave them as they are: freeze={left['names']}", stacklevel=3)
    for odd in said.get("settings", ()):
        warnings.warn(f"[OT3130] {in_python(odd['text'])}; help: {in_python(odd['hint'])}", stacklevel=3)
    return Model(made)


def recipe_json(loss="auto", optimizer=None, label=None, freeze=(), only=None, clip_norm=None, clip_value=None,
                schedule=None, accumulate=1, mode="train", lowered=False, reset=False, seed=0, batch=None,
                append=False, dims=None, bn_variance="torch", strict=False, augment=None):
    """The arguments of `prepare` as the JSON that the library reads."""
    recipe = {
        "losses": loss_specs(loss, label), "optimizer": optimizer_spec(optimizer), "schedule": schedule_spec(schedule),
        "freeze": [freeze] if isinstance(freeze, str) else list(freeze or ()),
        "only": [only] if isinstance(only, str) else list(only or ()),
        "clip_norm": clip_norm or 0, "clip_value": clip_value or 0, "accumulate": accumulate, "mode": mode,
        "lowered": lowered, "reset": reset, "seed": seed, "append": append,
        "bn_variance": bn_variance, "strict": strict,
    }
    if augment:
        parts = [augment] if isinstance(augment, (str, os.PathLike)) else augment
        recipe["augment"] = ",".join(os.fspath(p) for p in parts)
    if batch:
        recipe["batch"] = int(batch)
    if dims:
        recipe["dims"] = {name: [int(n) for n in np.atleast_1d(size)] for name, size in dims.items()}
    return options_json(recipe)


def options_json(options):
    """JSON; numbers of numpy are numbers."""
    def plain(v):
        if isinstance(v, (np.generic, np.ndarray)):
            return v.tolist()
        raise UsageError(f"{v!r} is no number, text or list", "OT1152")
    try:
        return json.dumps(options, default=plain, allow_nan=False)
    except ValueError:
        where = next(_not_finite(options), "an option")
        raise UsageError(f"{where} is NaN or infinite, it takes a finite number", "OT1152",
                         f"give {where} a number") from None


def _not_finite(value, name="an option"):
    """Names of the numbers in there that JSON cannot say."""
    if isinstance(value, dict):
        for k, v in value.items():
            yield from _not_finite(v, k)
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _not_finite(v, name)
    elif isinstance(value, (float, np.floating)) and not np.isfinite(value):
        yield name
