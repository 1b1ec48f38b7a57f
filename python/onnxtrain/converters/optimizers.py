"""The optimizer operators that a file may hold, and how their nodes are read back: which parameter each one updates,
from which gradient, with which state, learning rate and counter.

`from_*` converters write these operators, `to_*` converters recognise them. What their attributes are called in a
framework is that converter's own table.
"""

from dataclasses import dataclass

from ..graph import OWN, TRAINING

_MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class UpdateOperator:
    """Inputs: the scalars, then parameter, gradient and state of every parameter; outputs: parameter and state."""

    scalars: str  # in order: R learning rate, T step counter, B the momentum (or beta1) of this step
    state: tuple = ()  # names of the state, as PyTorch calls it
    counts_finished: bool = False  # T is the number of finished steps; else that of the current one


def _rms(centered, buffered, cycled=False):
    state = ("square_avg",) + ("grad_avg",) * centered + ("momentum_buffer",) * buffered
    return UpdateOperator("RB" if cycled else "R", state)


OPERATORS = {
    (OWN, "Sgd"): UpdateOperator("R"),
    (OWN, "Adam"): UpdateOperator("RT", _MOMENTS),
    (OWN, "AdamAms"): UpdateOperator("RT", (*_MOMENTS, "max_exp_avg_sq")),
    (OWN, "RMSprop"): _rms(False, False),
    (OWN, "RMSpropCentered"): _rms(True, False),
    (OWN, "RMSpropMomentum"): _rms(False, True),
    (OWN, "RMSpropCenteredMomentum"): _rms(True, True),
    (OWN, "RMSpropMomentumCycled"): _rms(False, True, True),
    (OWN, "RMSpropCenteredMomentumCycled"): _rms(True, True, True),
    (OWN, "NAdam"): UpdateOperator("RT", (*_MOMENTS, "mu_product")),
    (OWN, "RAdam"): UpdateOperator("RT", _MOMENTS),
    (OWN, "Adamax"): UpdateOperator("RT", ("exp_avg", "exp_inf")),
    (OWN, "Adadelta"): UpdateOperator("R", ("square_avg", "acc_delta")),
    (OWN, "Adagrad"): UpdateOperator("RT", ("sum",), True),
    (OWN, "Rprop"): UpdateOperator("", ("prev", "step_size")),
    (OWN, "MomentumCycled"): UpdateOperator("RTB", ("momentum_buffer",), True),
    (OWN, "NesterovCycled"): UpdateOperator("RTB", ("momentum_buffer",), True),
    (TRAINING, "Momentum"): UpdateOperator("RT", ("momentum_buffer",), True),
    (TRAINING, "Adagrad"): UpdateOperator("RT", ("sum",), True),
}
for _plain, _decoupled in (("Adam", "AdamW"), ("AdamAms", "AdamWAms"), ("NAdam", "NAdamW"), ("RAdam", "RAdamW")):
    OPERATORS[OWN, _decoupled] = OPERATORS[OWN, _plain]
for _name in ("Adam", "AdamAms", "AdamW", "AdamWAms", "NAdam", "NAdamW", "RAdam", "RAdamW", "Adamax"):
    OPERATORS[OWN, _name + "Cycled"] = UpdateOperator("RTB", OPERATORS[OWN, _name].state)


@dataclass(frozen=True)
class Update:
    """One parameter's update as a node of the file does it. rate, counter and beta are values of the file, or None."""

    kind: tuple  # (domain, operator)
    attrs: dict
    parameter: str
    gradient: str
    state: dict  # name of the state -> state variable of the file
    rate: str | None = None
    counter: str | None = None
    beta: str | None = None

    @property
    def operator(self):
        return OPERATORS[self.kind]


def read_updates(section, gradients):
    """A list of Updates that covers everything assigned after the gradient, or None when some of it is a rule of its
    own. gradients: {gradient: parameter}."""
    algorithm = section.algorithm
    maker = {o: n for n in algorithm.nodes for o in n.outputs if o}
    bound = {_origin(v, maker): k for k, v in section.update.items()}
    found = []
    for n in algorithm.nodes:
        if n.kind in OPERATORS:
            made = _read(n, bound)
            if made is None:
                return None
            found += made
    covered = {u.parameter for u in found} | {v for u in found for v in u.state.values()}
    if not found or {u.parameter for u in found} != set(gradients.values()):
        return None
    return found if _only_scalars_left(section, covered) else None


def _only_scalars_left(section, covered):
    """Other state of the algorithm must be counters and learning rates: anything else is a rule of its own."""
    own = section.algorithm
    return all(_is_scalar(own, k) for k in section.update if k in own.constants and k not in covered)


def _is_scalar(graph, name):
    return all(n == 1 for n in graph.types[name].shape)


def _origin(value, maker):
    while value in maker and maker[value].op == "Identity":
        value = maker[value].inputs[0]
    return value


def _read(n, bound):
    """The Updates of one node, or None when it assigns something else than what it read."""
    operator = OPERATORS[n.kind]
    scalars = dict(zip(operator.scalars, n.inputs))
    rest = list(n.inputs)[len(operator.scalars):]
    columns = 2 + len(operator.state)
    count = len(rest) // columns
    if count * columns != len(rest):
        return None
    out = []
    for k in range(count):
        x, g, *state = rest[k::count]
        if [bound.get(v) for v in n.outputs[k::count]] != [x, *state]:
            return None
        out.append(Update(n.kind, n.attrs, x, g, dict(zip(operator.state, state)), scalars.get("R"), scalars.get("T"),
                          scalars.get("B")))
    return out
