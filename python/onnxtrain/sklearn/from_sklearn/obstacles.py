"""What is refused before anything is written, and which family an estimator belongs to."""

from ..shared import classes
from . import linear, sgd

_OTHERS = {
    "SVC": "its weights are support vectors, which no optimizer here moves",
    "SVR": "its weights are support vectors, which no optimizer here moves",
    "NuSVC": "its weights are support vectors, which no optimizer here moves",
    "NuSVR": "its weights are support vectors, which no optimizer here moves",
    "OneClassSVM": "its weights are support vectors, which no optimizer here moves",
    "GridSearchCV": "a search holds many estimators", "RandomizedSearchCV": "a search holds many estimators",
    "MultiOutputRegressor": "it holds one estimator per output",
    "MultiOutputClassifier": "it holds one estimator per output",
    "OneVsRestClassifier": "it holds one estimator per class",
    "TransformedTargetRegressor": "it changes the target, which has no form here",
    "PassiveAggressiveClassifier": "its learning rates pa1 and pa2 are not among those of SGDClassifier",
    "PassiveAggressiveRegressor": "its learning rates pa1 and pa2 are not among those of SGDRegressor",
}
_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "RandomForestClassifier", "RandomForestRegressor",
          "ExtraTreesClassifier", "ExtraTreesRegressor", "GradientBoostingClassifier", "GradientBoostingRegressor")
_BEFORE = "transform the rows before they are fed, and give the estimator behind it"
_HINTS = {
    **{name: "skl2onnx, then ot.prepare: the values of the leaves are trained" for name in _TREES},
    "SVC": "LinearSVC; or skl2onnx, then ot.prepare", "SVR": "LinearSVR; or skl2onnx, then ot.prepare",
    "MultiOutputRegressor": "MLPRegressor takes several outputs; or one file for each of estimator.estimators_",
    "MultiOutputClassifier": "one file for each of estimator.estimators_",
    "OneVsRestClassifier": "SGDClassifier takes several classes; or one file for each of estimator.estimators_",
    "TransformedTargetRegressor": "ot.from_sklearn(estimator.regressor_), with the target changed before",
    "GridSearchCV": "ot.from_sklearn(search.best_estimator_)",
    "RandomizedSearchCV": "ot.from_sklearn(search.best_estimator_)",
}


def _is_own_subclass(cls):
    """Someone's own class on top of one that is known; scikit-learn's own classes derive from each other too."""
    return not cls.__module__.startswith("sklearn.") and any(classes.is_known(c) for c in cls.__mro__[1:])


def family(e, who):
    """"mlp", "sgd" or "linear"; anything else is refused."""
    kind = type(e).__name__
    if not classes.is_known(type(e)):
        if _is_own_subclass(type(e)):
            who.refuse("it is a subclass of its own, whose rules this converter cannot know",
                       "give the estimator of scikit-learn itself")
        who.refuse(_OTHERS.get(kind, "its training has no form here" if hasattr(e, "coef_") else
                               "this estimator has no weights that a gradient trains"), _HINTS.get(kind, ""))
    _is_fitted(e, who)
    if getattr(e, "early_stopping", False):
        who.refuse("early_stopping=True: scikit-learn's own partial_fit refuses it",
                   "fit it with early_stopping=False")
    if kind in ("MLPClassifier", "MLPRegressor"):
        return "lbfgs" if e.solver == "lbfgs" else _mlp(e, who)
    if hasattr(getattr(e, "coef_", None), "toarray"):
        who.refuse("its coefficients are sparse", "estimator.densify()")
    if kind in ("SGDClassifier", "SGDRegressor", "Perceptron"):
        sgd.obstacles(e, who)
        return "sgd"
    if kind in linear.CLASSIFIERS or kind in linear.REGRESSORS:
        linear.obstacles(e, who)
        return "linear"
    who.refuse("the last step must be an estimator that predicts", "a pipeline that ends in one")


def _mlp(e, who):
    if not hasattr(e, "_optimizer"):
        who.refuse("it has no optimizer: it was not fitted by this solver", "estimator.partial_fit(X, y)")
    if e.best_loss_ is None:
        who.refuse("it was fitted with early_stopping=True: scikit-learn's own partial_fit cannot go on",
                   "fit it with early_stopping=False")
    kind = "AdamOptimizer" if e.solver == "adam" else "SGDOptimizer"
    if type(e._optimizer).__name__ != kind:
        who.refuse(f"solver={e.solver!r} was set after it was fitted: its state is that of another solver",
                   "estimator.fit(X, y)")
    return "mlp"


def _is_fitted(e, who):
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(e)
    except NotFittedError:
        who.refuse("it is not fitted", "estimator.fit(X, y)")
    except TypeError:
        pass  # steps without anything to fit


def check_steps(e, who):
    """Every step of a pipeline: known classes alone."""
    for name, step in getattr(e, "steps", ()):
        part = who.part(step, name)
        if isinstance(step, str) or step is None:
            continue
        if not classes.is_known(type(step)):
            part.refuse("it is a subclass of its own, whose rules this converter cannot know"
                        if _is_own_subclass(type(step))
                        else _OTHERS.get(type(step).__name__, "this class is not known here"),
                        _HINTS.get(type(step).__name__, _BEFORE))
        check_steps(step, part)


def first(e):
    """The first step that reads the columns."""
    while type(e).__name__ == "Pipeline":
        e = next(s for _, s in e.steps if s is not None and not isinstance(s, str))
    return e


def features_of(e):
    """How many columns an estimator or pipeline takes."""
    e = first(e)
    n = getattr(e, "n_features_in_", None)
    if n is None and type(e).__name__ == "FeatureUnion":
        n = next(features_of(t) for _, t in e.transformer_list if not isinstance(t, str))
    return int(n)
