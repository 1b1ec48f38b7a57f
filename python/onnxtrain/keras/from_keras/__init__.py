"""`from_keras`: a live Keras training as a file. conversion.py has the stages in order."""


def from_keras(model, inputs=None, targets=None, *, sample_weight=None, loss=None, optimizer=None, semantics="auto"):
    """A compiled Keras model, with its loss, optimizer, state and schedule as they stand now, as an ot.Model.

    inputs, targets: examples as `fit` takes them; random where the model knows their shapes. sample_weight: an example
    (or True) adds an input of that name to the step. loss, optimizer: in the place of the compiled ones. semantics:
    "tensorflow", "dense" (JAX, PyTorch), "auto" for the backend in use. The file is compared with Keras before it is
    returned; nothing of the model changes.
    """
    from .conversion import convert

    return convert(model, inputs, targets, sample_weight, loss, optimizer, semantics)
