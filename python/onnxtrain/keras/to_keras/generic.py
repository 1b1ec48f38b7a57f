"""A keras.Model over any file's graph: weights under the file's names, its training form and loss, its optimizer."""

import keras
import numpy as np
from keras import ops

from ...converters.training_section import GRADIENT, take_apart
from ...errors import ModelError, UsageError
from ...graph import needed, read_graphs
from . import onnx_optimizers  # noqa: F401 - it adds to the table
from . import ops as table
from .graph_optimizer import GraphOptimizer
from .values import Values, to_first


def build(source, data_format):
    if data_format not in ("channels_last", "channels_first"):
        raise UsageError(f"data_format='{data_format}' is neither channels_last nor channels_first", "OT1606")
    graphs = read_graphs(source, [*table.kinds(), GRADIENT])
    _refuse(graphs)
    model = GraphModel(graphs, data_format)
    model.build_weights()
    if graphs.sections:
        model.compile(optimizer=model.graph_optimizer(), loss=None)
        model.optimizer.build(model.trainable_variables)
    return model


def _refuse(graphs):
    """Every operator that keras.ops has no form for, at once."""
    known = {*table.TABLE, GRADIENT}
    if len(graphs.sections) > 1:
        raise ModelError(f"the file has {len(graphs.sections)} training sections: a Keras model has one loss", "OT1712",
                         "ot.to_torch or ot.to_tf, which keep them apart")
    nodes = [*graphs.main.nodes, *[n for s in graphs.sections for n in s.algorithm.nodes]]
    missing = [n for n in nodes if n.kind not in known]
    if missing:
        listed = "\n".join(f"  {n.label}" for n in missing[:40])
        raise ModelError(f"{len(missing)} nodes have no form in keras.ops:\n{listed}", "OT1711")


def safe(name):
    """A name that Keras takes."""
    return name.replace("/", ".") or "value"


@keras.saving.register_keras_serializable(package="onnxtrain")
class GraphModel(keras.Model):
    """Call it with the inputs in the file's order. With training=True it computes the file's training form."""

    def __init__(self, graphs, data_format):
        super().__init__(name=safe(graphs.main.name) if graphs.main.name else "graph")
        self._graphs, self._data_format = graphs, data_format
        self._parts = take_apart(graphs, 0) if graphs.sections else None
        self._trained = set(self._parts.gradients.values()) if self._parts else set()
        self._own, self._env = {}, None
        self._seed = keras.random.SeedGenerator(0)

    def build_weights(self):
        for name, array in self._graphs.main.constants.items():
            array = np.asarray(array)
            state = bool(self._graphs.sections) and name in self._graphs.sections[0].update
            trained = name in self._trained or not self._graphs.sections
            if array.dtype.kind == "f" and array.ndim and (state or trained):
                v = self.add_weight(shape=array.shape, dtype=array.dtype.name, name=safe(name), trainable=trained)
                v.assign(array)
                self._own[name] = v
        self.built = True

    @property
    def file_names(self):
        """Weight -> its name in the file."""
        return {v.path: n for n, v in self._own.items()}

    def _values(self):
        stored = {}
        graphs = [self._graphs.main, *[s.algorithm for s in self._graphs.sections]]
        for g in graphs:
            for name in g.constants:
                v = self._own.get(name)
                stored[name] = (lambda v=v: ops.convert_to_tensor(v)) if v is not None else (
                    lambda g=g, name=name: np.asarray(g.constants[name]))
        made = Values(stored)
        made.seed = self._seed
        return made

    def call(self, inputs, training=False):
        names = self._graphs.main.inputs
        given = [inputs[n] for n in names] if isinstance(inputs, dict) else keras.tree.flatten(inputs)
        v = self._values()
        for name, x in zip(names, given):
            if len(x.shape) > 3 and self._data_format == "channels_last":
                v.set_image(name, x)
            else:
                v.set(name, x)
        parts = self._parts
        if training and parts is not None:
            wanted = [*parts.outputs, *parts.loss.reads, *parts.forward_update.values()]
            table.run(v, needed(parts.nodes, wanted), True)
            for key, value in parts.forward_update.items():
                if key in self._own:
                    self._own[key].assign(v[value])
            outputs = parts.outputs
        else:
            outputs = self._graphs.main.outputs
            read = [n for n in parts.loss.reads_in_eval if n] if parts is not None else []
            table.run(v, needed(self._graphs.main.nodes, [*outputs, *read]), False)
        self._env = v
        made = [self._output(v, n) for n in outputs]
        return made[0] if len(made) == 1 else made

    def _output(self, v, name):
        if self._data_format == "channels_last" and name in v.last:
            return v.last[name]
        return v[name] if name not in v.last else to_first(v.last[name])

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The file's own loss, from what the last call computed; without training that of the inference form."""
        parts, v = self._parts, self._env
        if sample_weight is not None:
            raise UsageError("the loss of the file takes no sample_weight and no class_weight", "OT1606",
                             "weigh the rows in the file's own loss (docs/recipe.md)")
        if v is None:
            self(x, training=training)
            v = self._env
        if not training:
            self._read_inference(v)
        targets = [y[n] for n in parts.loss.targets] if isinstance(y, dict) else keras.tree.flatten(y)
        for name, t in zip(parts.loss.targets, targets):
            dtype = self._graphs.sections[0].algorithm.types.get(name)
            t = ops.convert_to_tensor(t)
            v.set(name, ops.cast(t, table._TYPES[dtype.dtype]) if dtype is not None else t)
        table.run(v, parts.loss.nodes, True)
        self._env = None
        return v[parts.loss_value]

    def _read_inference(self, v):
        """What the loss reads, from the inference form."""
        for name, there in zip(self._parts.loss.reads, self._parts.loss.reads_in_eval):
            if there is None:
                raise UsageError(f"the loss of the file reads '{name}', which its inference form does not compute",
                                 "OT1712", "model.predict, and a loss of your own on what it gives")
            if v.is_image(there):
                v.set_image(name, v.image(there))
            else:
                v.set(name, v[there])

    def graph_optimizer(self):
        return GraphOptimizer(self._graphs, self._parts, self._own)

    def get_config(self):
        raise UsageError("a model over a file's graph is saved as the file: trainer.save('model.train.onnx')", "OT1715",
                         "model.export('folder') writes a SavedModel of its inference")
