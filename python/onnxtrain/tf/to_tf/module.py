"""The tf.Module over a file: variables under their names, and functions that TensorFlow can save.

    made(x)                      the inference form
    made.train_step(x=..., label=...)   one step of the file's training: {"loss": ..., outputs}
    made.initialize()            runs the file's initialization
    made.save(folder)            a SavedModel that trains on without onnxtrain
"""

import inspect
import os
import tempfile

import tensorflow as tf

from ..shared.names import distinct, identifier

FILE = "model.train.onnx"  # its name in a SavedModel


class OnnxModule(tf.Module):
    """Made by `ot.to_tf`.

    parameters: {name in the file: trainable tf.Variable}; state: the same of everything else that is stored (optimizer
    state, running statistics, frozen weights); renamed: {name in the file: name of the variable} where they differ.
    """

    def __init__(self):
        super().__init__(name="onnx_model")
        self.parameters, self.state, self.renamed = {}, {}, {}
        self.input_names, self.output_names = [], []

    def variable(self, name):
        """The variable that holds a tensor of the file."""
        return self.parameters[name] if name in self.parameters else self.state[name]

    @property
    def stored(self):
        """{name in the file: tf.Variable} of everything."""
        return {**self.parameters, **self.state}

    def save(self, folder):
        """A SavedModel. `tf.saved_model.load(folder)` can be called, and has train_step (train_step_0, ... of several
        training sections) and initialize. The file lies in it too: `ot.from_tf(folder)` gives it back with the state
        that the variables have then."""
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, FILE)
            self.model().save(path)
            self.onnx_file = tf.saved_model.Asset(path)
            try:
                self._save(folder)
            finally:
                self.onnx_file = None

    def _save(self, folder):
        functions = {"serving_default": type(self).__call__, "train_step": getattr(self, "train_step", None)}
        signatures = {k: f.get_concrete_function() for k, f in functions.items() if f is not None and _flat(f)}
        tf.saved_model.save(self, str(folder), signatures=signatures or None)


def callable_module(call):
    """An OnnxModule that is called as `call`, a tf.function: SavedModels keep functions of the class."""
    return type("OnnxModule", (OnnxModule,), {"__call__": staticmethod(call), "__doc__": OnnxModule.__doc__})


def _flat(function):
    """Signatures take and return plain tensors."""
    concrete = function.get_concrete_function()
    specs = [*tf.nest.flatten(concrete.structured_input_signature), *tf.nest.flatten(concrete.structured_outputs)]
    return all(isinstance(v, (tf.Tensor, tf.TensorSpec)) for v in specs)


def traced(body, specs):
    """A tf.function of arguments with the names of a file. body(values by name) -> results; specs: {name: TensorSpec}.

    Arguments have names that Python takes (`names.identifier`)."""
    names = distinct(list(specs), identifier)
    parameters = [inspect.Parameter(a, inspect.Parameter.POSITIONAL_OR_KEYWORD) for a in names.values()]

    def call(*args, **kwargs):
        given = dict(zip(names.values(), args))
        given.update(kwargs)
        return body({n: given[a] for n, a in names.items()})

    call.__signature__ = inspect.Signature(parameters)
    signature = [_named(specs[n], a) for n, a in names.items()]
    return tf.function(call, input_signature=signature, autograph=False)


def _named(spec, name):
    return tf.TensorSpec(spec.shape, spec.dtype, name) if isinstance(spec, tf.TensorSpec) else spec
