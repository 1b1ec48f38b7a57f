"""from_sklearn, stage by stage: check -> preprocessing -> predictions -> one partial_fit -> file -> self-check."""

import os
import tempfile
import warnings
from dataclasses import dataclass

import numpy as np

from ...converters.onnx_file import Model
from ...errors import UsageError
from ...model import load
from ...prepared import prepare
from ..shared import config
from ..shared.state import arrays, last
from ..shared.versions import sklearn
from . import assemble, linear, mlp, obstacles, predict, self_check, sgd
from .compose import transform
from .nodes import Names, Nodes
from .refusal import CODE, Who
from .table import Inputs, Table
from .target import kind_of

RESERVED = ("X", "y", "sample_weight", "label", "probabilities", "scores", "raw_scores", "prediction", "loss",
            "learning_rate", "t", "t_", "best_loss_", "no_improvement_count", "loss_", "loss_curve_", "loss_count",
            "average_coef", "average_intercept", "coef_", "intercept_", "classes")
_LEARNING_RATE = 1e-3
LOSSES = 8192  # of an MLP's steps: 64 KB


@dataclass(frozen=True)
class Parts:
    """What the stages hand on."""

    end: object  # the estimator that predicts
    family: str
    who: Who
    nodes: Nodes  # of the main graph
    inputs: Inputs
    weights: dict  # {initializer: array}
    features: str  # the value that the weights read
    sparse: bool  # as scikit-learn has it
    outputs: list
    scores: str
    described: dict
    sample_weight: bool


def convert(estimator, sample_weight=False, optimizer=None, X=None, loss_curve=LOSSES):
    version = sklearn().__version__
    if isinstance(loss_curve, bool) or not isinstance(loss_curve, (int, np.integer)) or loss_curve < 0:
        raise UsageError(f"loss_curve is {loss_curve!r}: how many losses of steps the file keeps, 0 for none", CODE,
                         f"leave it out: {LOSSES}")
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise UsageError(f"{estimator!r} is not an estimator of scikit-learn", CODE, "a fitted estimator or pipeline")
    parts = _inference(estimator, version, sample_weight)
    if parts.family in ("mlp", "sgd"):
        if optimizer is not None:
            parts.who.refuse("it goes on with its own optimizer and state", "leave optimizer out")
        model = _with_step(parts, int(loss_curve))
    else:
        model = _with_named_optimizer(parts, optimizer)
    self_check.check(model, estimator, parts.family, parts.inputs, parts.nodes.dtype, X, sample_weight)
    return model


def _inference(estimator, version, sample_weight):
    who = Who(estimator)
    obstacles.check_steps(estimator, who)
    end = last(estimator)
    at_end = who if end is estimator else Who(end, _path(estimator))
    family = obstacles.family(end, at_end)
    weights = _weights(end, family)
    names = Names({*weights, *RESERVED, *(mlp.moments(end) if family == "mlp" else ())})
    names.taken |= set(weights)
    g = Nodes(names, next(iter(weights.values())).dtype)
    inputs = Inputs(g, estimator, obstacles.features_of(estimator))
    table = _features(estimator, g, who, Table(g, inputs.blocks))
    x = table.numbers(at_end)
    outputs, scores = predict.outputs(g, end, "mlp" if family == "lbfgs" else family, x, at_end)
    described = _described(estimator, end, family, who, version)
    return Parts(end, family, at_end, g, inputs, weights, x, table.sparse, outputs, scores, described, sample_weight)


def _path(estimator):
    parts = []
    while type(estimator).__name__ == "Pipeline":
        name, estimator = estimator.steps[-1]
        parts.append(name)
    return ".".join(parts)


def _weights(e, family):
    if family in ("mlp", "lbfgs"):
        return mlp.weights(e)
    return dict(sgd.held(e)) if family == "sgd" else linear.state(e)


def _features(estimator, g, who, table):
    while type(estimator).__name__ == "Pipeline":
        for name, step in estimator.steps[:-1]:
            table = transform(step, g, who.part(step, name), table)
        name, estimator = estimator.steps[-1]
        who = who.part(estimator, name)
    return table


def _described(estimator, end, family, who, version):
    def refuse(path, reason):
        who.refuse(f"its attribute '{path}' {reason}")

    writer = config.Writer(refuse, map(id, arrays(end, family)))
    written = writer.write(estimator)
    return {"sklearn": version, "family": family, "estimator": written, "arrays": writer.arrays}


def _with_step(p, kept):
    """The file of an estimator that goes on with its own state."""
    a = p.nodes.body()
    if p.family == "mlp":
        step = mlp.partial_fit(a, p.end, p.features, p.sample_weight, kept)
    else:
        step = sgd.partial_fit(a, p.end, p.features, p.sample_weight, p.sparse)
    file = assemble.main_model(type(p.end).__name__, p.nodes, p.inputs, p.outputs, p.weights, [p.features])
    assemble.add_training(file, a, step, p.weights)
    assemble.add_metadata(file, p.described, p.outputs[0][0], rate=True)
    return load(file.encode())


def _with_named_optimizer(p, optimizer):
    """The inference form, trained by ot.prepare with the estimator's loss."""
    import onnxtrain

    if optimizer is None:
        optimizer = onnxtrain.Adam(lr=_LEARNING_RATE)
        warnings.warn(f"{p.who.label} keeps no state of its solver: the training goes on with Adam(lr={_LEARNING_RATE})"
                      f" on its loss without the penalty; choose another: optimizer=ot.SGD(lr=0.1)", stacklevel=5)
    p.described["optimizer"] = repr(optimizer)
    raw = p.nodes.named("raw_scores", p.scores)
    width = np.atleast_2d(p.end.coef_).shape[0] if p.family == "linear" else p.end.n_outputs_
    outputs = [*p.outputs, (raw, p.nodes.dtype, ["n", width])]
    file = assemble.main_model(type(p.end).__name__, p.nodes, p.inputs, outputs, p.weights)
    assemble.add_metadata(file, p.described, outputs[0][0], rate=False)
    loss = _loss_file(p.end, p.family, p.nodes.dtype, width, p.sample_weight)
    with tempfile.TemporaryDirectory(prefix="onnxtrain-") as folder:
        path = os.path.join(folder, "loss.onnx")
        with open(path, "wb") as f:
            f.write(loss)
        trained = linear.trained(p.end) if p.family == "linear" else list(p.weights)
        return prepare(load(file.encode()), loss=path, optimizer=optimizer, only=trained)


def _loss_file(end, family, dtype, width, sample_weight):
    g = Nodes(Names(), dtype)
    inputs = [(g.names.claim("raw_scores"), dtype, ["n", width]), (g.names.claim("y"), *_target_type(end, dtype))]
    weight = None
    if sample_weight:
        weight = g.names.claim("sample_weight")
        inputs.append((weight, dtype, ["n"]))
    made = linear.loss if family == "linear" else mlp.loss_of_scores
    value = g.named("loss", made(g, end, "raw_scores", "y", weight))
    return Model(g.graph("loss", inputs, [(value, dtype, [])])).encode()


def _target_type(e, dtype):
    if hasattr(e, "coefs_"):
        return mlp.target_type(e, dtype)
    if hasattr(e, "classes_"):
        return kind_of(e.classes_, None), ["n"]
    width = np.atleast_2d(e.coef_).shape[0]
    return dtype, ["n", width] if width > 1 else ["n"]
