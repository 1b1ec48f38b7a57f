"""A file or a running training back to the scikit-learn estimator from which it came."""


def to_sklearn(model_or_trainer):
    """The same class, fitted, with the current weights and state; preprocessing bit for bit as it was."""
    from .rebuild import rebuild

    return rebuild(model_or_trainer)
