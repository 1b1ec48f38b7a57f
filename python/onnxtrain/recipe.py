"""Losses, optimizers, schedules: plain descriptions that `prepare` turns into graph.

Optimizers have PyTorch's argument names and mathematics.
"""

import json
import os
from dataclasses import dataclass, field, make_dataclass, replace

from . import _native
from .attributes import Closed
from .errors import UsageError

# PyTorch's arguments that are pairs, and the two settings that they are made of
_PAIRS = {"betas": ("beta1", "beta2"), "etas": ("eta_minus", "eta_plus"), "step_sizes": ("step_min", "step_max")}


class _Optimizer(Closed):
    """What the optimizers have in common. Their classes are made from the library's records (`_optimizer_class`)."""

    kind = ""
    defaults = {}  # style -> {argument: value}, where Keras' differ from PyTorch's

    def __post_init__(self):
        for key, value in self.defaults.get(getattr(self, "style", None), {}).items():
            if getattr(self, key) is None:
                setattr(self, key, value)

    def spec(self):
        s = {"kind": self.kind}
        for key, value in vars(self).items():
            if key in _PAIRS:
                s.update(zip(_PAIRS[key], value))
            elif key == "overrides":
                s["overrides"] = [dict(v, glob=g) for g, v in (value or {}).items()]
            elif value is not None:
                s[key] = value
        return s


def _optimizer_class(record, made):
    """The dataclass of one optimizer: PyTorch's arguments in its order, `style` where Keras differs, `overrides`."""
    settings = {s["name"]: s for s in record["settings"]}
    arguments, differing = {}, {}
    first, second = ({names[i]: key for key, names in _PAIRS.items()} for i in range(2))
    for name, s in settings.items():
        if name in first:
            arguments[first[name]] = tuple(settings[part]["value"] for part in _PAIRS[first[name]])
        elif name not in second:
            arguments[name] = None if "keras" in s else s["value"]
            if "keras" in s:
                differing[name] = (s["value"], s["keras"])
    if record["has_keras_style"]:
        arguments["style"] = "torch"
    arguments["overrides"] = None
    if "no_decay_on_bias_and_norm" in arguments:  # it came last
        arguments["no_decay_on_bias_and_norm"] = arguments.pop("no_decay_on_bias_and_norm")
    note = ", ".join(f"{k} {torch:g}, Keras {keras:g}" for k, (torch, keras) in differing.items())
    doc = record["help"] + (f' `style="keras"` where Keras differs ({note}).' if note else "")
    defaults = {style: {k: v[i] for k, v in differing.items()} for i, style in enumerate(("torch", "keras"))}
    return make_dataclass(
        record["class_name"],
        [(n, type(v) if v is not None else object, field(default=v)) for n, v in arguments.items()],
        bases=(made.get(record["base_class"], _Optimizer),),
        namespace={"__doc__": doc, "__module__": __name__, "kind": record["kind"], "defaults": defaults})


def _optimizer_classes():
    made = {}
    records = [r for r in json.loads(_native.optimizers()) if r["class_name"]]
    for record in sorted(records, key=lambda r: r["base_class"] != ""):  # bases first
        made[record["class_name"]] = _optimizer_class(record, made)
    return made


OPTIMIZERS = _optimizer_classes()  # class name -> class
globals().update(OPTIMIZERS)


class _OnnxOptimizer(_Optimizer):
    """An optimizer operator of ai.onnx.preview.training with its own attribute names; `t0` is the first value of the
    counter T (Adam: 1; 0 means no bias correction in the first step; the others: 0)."""

    def spec(self):
        attributes = {k: v for k, v in vars(self).items() if k not in ("lr", "t0", "mode")}
        s = {"kind": self.kind, "lr": self.lr, "attributes": attributes}
        if hasattr(self, "mode"):
            if self.mode not in ("standard", "nesterov"):
                raise UsageError(f"mode of ONNX's Momentum is 'standard' or 'nesterov', not '{self.mode}'", "OT1154")
            s["nesterov"] = self.mode == "nesterov"
        if self.t0 is not None:
            s["t0"] = self.t0
        return s


@dataclass
class OnnxAdam(_OnnxOptimizer):
    """The standard's Adam operator."""

    lr: float = 1e-3
    alpha: float = 0.9
    beta: float = 0.999
    epsilon: float = 1e-6
    norm_coefficient: float = 0.0
    norm_coefficient_post: float = 0.0
    t0: int = None
    kind = "onnx_adam"


@dataclass
class OnnxMomentum(_OnnxOptimizer):
    """The standard's Momentum operator."""

    lr: float = 1e-2
    alpha: float = 0.9
    beta: float = 1.0
    mode: str = "standard"
    norm_coefficient: float = 0.0
    t0: int = None
    kind = "onnx_momentum"


@dataclass
class OnnxAdagrad(_OnnxOptimizer):
    """The standard's Adagrad operator."""

    lr: float = 1e-2
    decay_factor: float = 0.0
    epsilon: float = 1e-6
    norm_coefficient: float = 0.0
    t0: int = None
    kind = "onnx_adagrad"


@dataclass
class Term(Closed):
    """One weighted loss term on a named output."""

    kind: str = "auto"
    output: str = None
    label: str = None
    weight: float = 1.0
    reduction: str = "mean"
    class_weights: list = None
    ignore_index: int = None
    label_smoothing: float = 0.0
    delta: float = 1.0

    def spec(self):
        return {k: v for k, v in vars(self).items() if v is not None}

    def __mul__(self, factor):
        """`0.3 * ot.losses.MSE(output="aux")` is that term with weight 0.3."""
        return replace(self, weight=self.weight * float(factor))

    __rmul__ = __mul__


class losses:
    """Loss descriptions: `ot.losses.CrossEntropy(label_smoothing=0.1)`."""

    @staticmethod
    def CrossEntropy(weight=None, ignore_index=None, label_smoothing=0.0, reduction="mean", output=None, label=None):
        return Term("cross_entropy", output, label, 1.0, reduction, _list(weight), ignore_index, label_smoothing)

    @staticmethod
    def NLL(weight=None, ignore_index=None, reduction="mean", output=None, label=None):
        return Term("nll", output, label, 1.0, reduction, _list(weight), ignore_index)

    @staticmethod
    def MSE(reduction="mean", output=None, label=None):
        return Term("mse", output, label, 1.0, reduction)

    @staticmethod
    def L1(reduction="mean", output=None, label=None):
        return Term("l1", output, label, 1.0, reduction)

    @staticmethod
    def Huber(delta=1.0, reduction="mean", output=None, label=None):
        return Term("huber", output, label, 1.0, reduction, delta=delta)

    @staticmethod
    def BCE(reduction="mean", output=None, label=None):
        return Term("bce", output, label, 1.0, reduction)

    @staticmethod
    def BCELogits(reduction="mean", output=None, label=None):
        return Term("bce_logits", output, label, 1.0, reduction)

    @staticmethod
    def KL(reduction="mean", output=None, label=None):
        return Term("kl", output, label, 1.0, reduction)

    @staticmethod
    def Hinge(reduction="mean", output=None, label=None):
        return Term("hinge", output, label, 1.0, reduction)


def loss_names():
    """Names of losses, as recipes have them."""
    return [make().kind for make in vars(losses).values() if isinstance(make, staticmethod)]


def _list(x):
    return None if x is None else [float(v) for v in x]


@dataclass
class Schedule(Closed):
    """A learning-rate schedule: kind and its numbers (see docs/recipe.md)."""

    kind: str = "constant"
    numbers: dict = field(default_factory=dict)
    milestones: list = field(default_factory=list)

    def spec(self):
        return {"kind": self.kind, "numbers": self.numbers, "milestones": list(self.milestones)}


_BY_KIND = {c.kind: c for c in OPTIMIZERS.values()}


def optimizer_spec(o):
    if o is None:
        return _BY_KIND["adamw"]().spec()
    if isinstance(o, os.PathLike):
        o = os.fspath(o)
    if isinstance(o, str):
        if o in ("momentum", "nesterov"):
            return _BY_KIND["sgd"](momentum=0.9, nesterov=o == "nesterov").spec()
        return _BY_KIND[o]().spec() if o in _BY_KIND else {"kind": o}
    if isinstance(o, type) or not hasattr(o, "spec"):
        name = o.__name__ if isinstance(o, type) else type(o).__name__
        ours = name if any(c.__name__ == name for c in _BY_KIND.values()) else "AdamW"
        raise UsageError(f"an optimizer is a name, a path of an ONNX graph or ot.{ours}(...), not "
                         f"{'the class ' if isinstance(o, type) else ''}{name}", "OT1154",
                         f"optimizer=ot.{ours}(lr=1e-3)")
    return o.spec()


def _term(t):
    """A name, a path, `ot.losses...`, a dict, or (weight, one of them) -> spec."""
    if isinstance(t, tuple):
        if len(t) == 2 and not isinstance(t[0], (int, float)):
            t = t[::-1]
        if len(t) != 2 or not isinstance(t[0], (int, float)):
            raise UsageError("a weighted loss term is (weight, term)", "OT1154", 'loss=[(1.0, "mse"), (0.1, "l1")]')
        s = _term(t[1])
        return dict(s, weight=s.get("weight", 1.0) * float(t[0]))
    if isinstance(t, dict):
        s = _term(t.get("loss", t.get("kind", "auto")))
        return s | {k: v for k, v in t.items() if k not in ("loss", "kind")}
    if callable(t) and getattr(losses, getattr(t, "__name__", ""), None) is t:
        t = t()  # ot.losses.MSE without brackets
    if isinstance(t, (str, os.PathLike)):
        t = Term(os.fspath(t))
    if not hasattr(t, "spec"):
        raise UsageError(f"a loss is a name, a path of an ONNX graph, ot.losses.MSE() or a list of such terms, "
                         f"not {type(t).__name__}", "OT1154", 'loss="auto", or loss=ot.losses.MSE()')
    return t.spec()


def loss_specs(loss, label=None):
    """One term, a (weight, term), or a list of them."""
    if isinstance(loss, _Optimizer) or (isinstance(loss, type) and issubclass(loss, _Optimizer)):
        name = loss.__name__ if isinstance(loss, type) else type(loss).__name__
        raise UsageError(f"{name} is an optimizer, not a loss", "OT1154", f"optimizer=ot.{name}(lr=1e-3)")
    specs = [_term(t) for t in (loss if isinstance(loss, list) else [loss])]
    if label is not None and len(specs) == 1 and "label" not in specs[0]:
        specs[0]["label"] = label
    return specs


def schedule_spec(s):
    if s is None:
        return {"kind": "constant"}
    if isinstance(s, str):
        return {"kind": s}
    return dict(s) if isinstance(s, dict) else s.spec()
