"""An estimator or pipeline of scikit-learn to a training ONNX file."""


def from_sklearn(estimator, *, sample_weight=False, optimizer=None, X=None, loss_curve=8192):
    """The fitted estimator as an ot.Model: preprocessing frozen, one step = one partial_fit of the rows in order.

    sample_weight: the step reads weights of its rows too. optimizer: for estimators whose solver leaves no state
    (LogisticRegression, Ridge, LinearSVC, ...), as `ot.prepare` takes it. X: rows for the self-check, where the
    estimator does not take random ones. loss_curve: how many losses of an MLP's steps the file keeps for `loss_curve_`.
    """
    from .conversion import convert

    return convert(estimator, sample_weight, optimizer, X, loss_curve)
