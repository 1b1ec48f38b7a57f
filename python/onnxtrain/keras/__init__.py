"""Keras and onnxtrain, both ways: `from_keras` carries a live Keras training into a file, `to_keras` takes it back.
`Checkpoint` is a callback that writes training files during `fit`. Nothing here imports Keras before it is called."""


def __getattr__(name):
    if name == "Checkpoint":
        from .callback import Checkpoint

        return Checkpoint
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
