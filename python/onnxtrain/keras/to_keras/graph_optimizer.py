"""An optimizer that computes what the file's own update nodes say; its state is Keras variables."""

import keras
import numpy as np
from keras import ops

from ...converters.training_section import GRADIENT
from ...graph import needed
from . import ops as table
from .values import Values


class GraphOptimizer(keras.optimizers.Optimizer):
    def __init__(self, graphs, parts, weights):
        super().__init__(learning_rate=_rate(graphs), name="graph")
        self._graphs, self._parts, self._weights = graphs, parts, weights
        self._section = graphs.sections[0]
        self._rate_name = graphs.metadata.get("onnxtrain.rate")
        self._state = {}

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        own = self._section.algorithm.constants
        for name in self._section.update:
            if name in own and name != self._rate_name:
                array = np.asarray(own[name])
                v = self.add_variable(shape=array.shape, dtype=array.dtype.name, name=name.replace("/", "."))
                v.assign(array)
                self._state[name] = v

    def apply(self, grads, trainable_variables=None):
        variables = list(trainable_variables) if trainable_variables is not None else self._trainable_variables
        if not self.built:
            self.build(variables)
        by_variable = {id(v): g for v, g in zip(variables, grads)}
        stored = {n: (lambda v=v: ops.convert_to_tensor(v)) for n, v in {**self._weights, **self._state}.items()}
        if self._rate_name:
            stored[self._rate_name] = lambda: ops.convert_to_tensor(self._learning_rate)
        for g in (self._section.algorithm, self._graphs.main):
            for name in g.constants:
                stored.setdefault(name, lambda g=g, name=name: np.asarray(g.constants[name]))
        v = Values(stored)
        given = []
        for gradient, name in self._parts.gradients.items():
            value = by_variable.get(id(self._weights[name]))
            v.set(gradient, value if value is not None else ops.zeros(self._weights[name].shape))
            given.append(gradient)
        update = self._parts.after_update
        nodes = [n for n in self._section.algorithm.nodes if n.kind != GRADIENT]
        table.run(v, needed(nodes, update.values(), [*given, *stored]), True)
        new = {key: v[value] for key, value in update.items()}
        for key, value in new.items():
            target = self._weights.get(key) if key in self._weights else self._state.get(key)
            if key == self._rate_name:
                target = self._learning_rate
            if target is not None:
                target.assign(ops.cast(value, target.dtype))
        self._iterations.assign_add(1)

    def update_step(self, gradient, variable, learning_rate):
        raise NotImplementedError("all weights are updated together")


def _rate(graphs):
    name = graphs.metadata.get("onnxtrain.rate")
    own = graphs.sections[0].algorithm.constants
    return float(np.asarray(own[name])) if name in own else 0.0
