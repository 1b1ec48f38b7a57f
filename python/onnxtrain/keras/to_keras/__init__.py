"""`to_keras`: a file as a compiled Keras model; `keras_weights`: its weights for `set_weights`."""

from .rebuild import keras_weights, to_keras

__all__ = ["keras_weights", "to_keras"]
