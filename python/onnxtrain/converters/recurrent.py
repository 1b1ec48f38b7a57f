"""LSTM, GRU and RNN of a file: attributes and weights, as any framework needs them."""

from dataclasses import dataclass

ACTIVATIONS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}  # of one direction
_ALPHA = {"leakyrelu": 0.01, "elu": 1.0, "affine": 1.0, "thresholdedrelu": 1.0, "scaledtanh": 1.0, "hardsigmoid": 0.2}
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}


@dataclass
class Direction:
    """What one direction of a layer computes with; b and peepholes may be None."""

    backward: bool
    functions: list
    w: object
    r: object
    b: object
    peepholes: object


class RecurrentSettings:
    """Attributes of a node. `activation(name, alpha, beta)` gives the framework's function."""

    def __init__(self, n, activation):
        self.kind, self.hidden, self.direction = n.op, n.get("hidden_size"), n.get("direction", "forward")
        self.directions = 2 if self.direction == "bidirectional" else 1
        self.batch_first, self.clip = n.get("layout", 0), n.get("clip")
        self.names = [a.lower() for a in n.get("activations") or ACTIVATIONS[n.op] * self.directions]
        alphas, betas = list(n.get("activation_alpha") or []), list(n.get("activation_beta") or [])
        self.functions = [activation(name, _next(name, _ALPHA, alphas), _next(name, _BETA, betas))
                          for name in self.names]
        self.before_reset, self.input_forget = n.get("linear_before_reset", 0), n.get("input_forget", 0)

    def parts(self, w, r, b, peepholes):
        """The directions, each with its slice of the weights."""
        each = len(self.functions) // self.directions
        for d in range(self.directions):
            yield Direction(self.direction == "reverse" or d == 1, self.functions[d * each:(d + 1) * each], w[d], r[d],
                            None if b is None else b[d], None if peepholes is None else peepholes[d])


def _next(name, defaults, given):
    """A parameter of an activation: the next that the file gives, where this activation takes one."""
    if name not in defaults:
        return None
    return given.pop(0) if given else defaults[name]
