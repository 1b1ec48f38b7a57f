"""scikit-learn estimators over ONNX models. They follow its protocol and need nothing of it.

    ot.OnnxClassifier("mlp.onnx", epochs=20).fit(X, y).score(Xt, yt)
"""

import dataclasses
import inspect
import json
import warnings

import numpy as np

from .attributes import Closed
from .data import array, by_name, column_names
from .errors import DataError, NoLossError, UsageError
from .exported_classifier import exported
from .model import Model, all_rows, as_model, load
from .predictions import sigmoid, softmax
from .prepared import prepare
from .recipe import Term


class _Estimator(Closed):
    """Parameters as scikit-learn wants them: what the constructor got is stored untouched; `fit` makes names with _."""

    _attributes = ("model", "loss", "optimizer", "epochs", "batch_size", "valid", "patience", "schedule", "clip_norm",
                  "freeze", "only", "reset", "bn_variance", "seed", "threads",
                  "model_", "history_", "classes_", "n_features_in_", "feature_names_in_")

    def __init__(self, model, *, loss="auto", optimizer=None, epochs=10, batch_size=32, valid=0.0, patience=0,
                 schedule=None, clip_norm=None, freeze=(), only=None, reset=False, bn_variance="torch", seed=0,
                 threads=0):
        self.model, self.loss, self.optimizer, self.epochs, self.batch_size = model, loss, optimizer, epochs, batch_size
        self.valid, self.patience, self.schedule, self.clip_norm = valid, patience, schedule, clip_norm
        self.freeze, self.only, self.reset, self.seed, self.threads = freeze, only, reset, seed, threads
        self.bn_variance = bn_variance

    @classmethod
    def _names(cls):
        return [n for n in inspect.signature(cls.__init__).parameters if n != "self"]

    def get_params(self, deep=True):
        """Constructor arguments; deep: those of the optimizer too, as `optimizer__lr`."""
        params = {n: getattr(self, n) for n in self._names()}
        if deep and dataclasses.is_dataclass(self.optimizer):
            params.update({f"optimizer__{f.name}": getattr(self.optimizer, f.name)
                           for f in dataclasses.fields(self.optimizer)})
        return params

    def set_params(self, **params):
        known = self.get_params(deep=True)
        for name in params:
            if name not in known:
                raise ValueError(f"there is no parameter '{name}' of {type(self).__name__}; there are "
                                 f"{', '.join(known)}")
        for name, value in params.items():  # whole objects first
            if "__" not in name:
                setattr(self, name, value)
        nested = {n.split("__", 1)[1]: v for n, v in params.items() if "__" in n}
        if nested:
            self.optimizer = dataclasses.replace(self.optimizer, **nested)
        return self

    def __repr__(self):
        defaults = {n: p.default for n, p in inspect.signature(type(self).__init__).parameters.items()}
        shown = [f"{n}={v!r}" for n, v in self.get_params(deep=False).items()
                 if n == "model" or v is not defaults[n] and v != defaults[n]]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _train(self, X, target, loss):
        source = as_model(self.model)
        model = load(source.proto())  # the given one stays as it is
        if model.trainable:
            if self.loss != "auto" or self.optimizer is not None:
                raise UsageError("this model carries its own training: another loss or optimizer does not apply",
                                 "OT0004")
            model.compile()
        else:
            model.compile(loss=loss if self.loss == "auto" else self.loss, optimizer=self.optimizer,
                          schedule=self.schedule, clip_norm=self.clip_norm, freeze=self.freeze, only=self.only,
                          reset=self.reset, seed=self.seed, bn_variance=self.bn_variance)
        self.history_ = model.fit(X, target, valid=self.valid or None, epochs=self.epochs, batch_size=self.batch_size,
                                  patience=self.patience, seed=self.seed, threads=self.threads)
        self.model_ = Model(load(model.proto())._m)  # without the trainer's memory
        return self

    def _rows(self, X, y=None):
        names = column_names(X)
        if y is not None:
            self._feature_names = names
        elif names is not None and getattr(self, "_feature_names", None):
            X = by_name(X, self._feature_names, ["X"])
        X = array(X, "X")
        if y is not None:
            y = np.asarray(y)
            if len(X) != len(y):
                raise DataError(f"X has {len(X)} rows, y has {len(y)}", "OT2103")
            self.n_features_in_ = X.shape[1] if X.ndim > 1 else 1
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
        return X, y

    def _output(self, X):
        if not hasattr(self, "model_"):
            raise UsageError(f"this {type(self).__name__} is not fitted yet", "OT1159", "estimator.fit(X, y)")
        return np.asarray(self.model_.predict(self._rows(X)[0]), dtype=np.float64)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "model_")

    def _tags(self, **kind):
        from sklearn.utils import InputTags, Tags, TargetTags  # only scikit-learn asks for tags

        return Tags(estimator_type=self._estimator_type, target_tags=TargetTags(required=True),
                    input_tags=InputTags(three_d_array=True), **kind)


class OnnxClassifier(_Estimator):
    """A model with one score per class ([N,K] scores or probabilities), or one for two classes ([N,1]); also what
    scikit-learn's exporters write: a label, and probabilities beside it."""

    _estimator_type = "classifier"

    def __sklearn_tags__(self):
        from sklearn.utils import ClassifierTags

        return self._tags(classifier_tags=ClassifierTags())

    def fit(self, X, y):
        X, y = self._rows(X, y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise DataError(f"y has shape {list(y.shape)}: a classifier wants one label per row", "OT2112")
        source = as_model(self.model)
        self._exported = exported(source)
        if self._exported is not None:
            return self._fit_exported(X, y, source)
        self.classes_, index = np.unique(y, return_inverse=True)
        scores = self._scores_of(source)
        if scores == 1:
            return self._train(X, self._two(index).astype(np.float32)[:, None], "bce_logits")
        labelled = "classes" in source.info and not source.trainable
        ready = prepare(source, loss="cross_entropy") if labelled else source
        labels = ready.info.get("classes")  # that the graph itself writes
        if labels is not None and set(map(str, self.classes_.tolist())) <= set(labels):
            self._columns = np.array([labels.index(str(c)) for c in self.classes_.tolist()])
            return self._train(X, y if self.classes_.dtype.kind in "iu" else self._columns[index], "cross_entropy")
        inside = self.classes_.dtype.kind in "iu" and (scores is None or 0 <= self.classes_.min()
                                                       and self.classes_.max() < scores)
        self._columns = self.classes_.astype(np.int64) if inside else np.arange(len(self.classes_))
        if scores is not None and len(self.classes_) > scores:
            raise DataError(f"y has {len(self.classes_)} classes, the model's output has room for {scores}", "OT2104",
                            f"a model with {len(self.classes_)} outputs, or rows of {scores} classes")
        if len(self.classes_) == 1:
            warnings.warn(f"[OT3120] every row has the class {str(self.classes_[0])!r}: there is nothing to tell apart",
                          stacklevel=3)
        target = self._columns[index]
        if labels is not None and all(c.lstrip("-").isdigit() for c in labels) and len(labels) >= len(self.classes_):
            target = np.array([int(c) for c in labels])[target]  # numbers are taken for the graph's labels
        return self._train(X, target, "cross_entropy")

    def _fit_exported(self, X, y, source):
        """A file that says itself which class each column of its scores is."""
        self.classes_ = self._exported.classes
        same = y[:, None] == self.classes_[None]
        if not same.any(1).all():
            known = ", ".join(map(repr, self.classes_.tolist()))
            raise DataError(f"y has {y[~same.any(1)][0]!r}, which is none of the model's classes {known}", "OT2104")
        if source.trainable:
            return self._train(X, y, "auto")
        term = Term("auto", self._exported.scores)
        try:
            ready = prepare(source, loss=term)
        except NoLossError:  # probabilities that no Softmax makes: the logarithmic loss of every class
            return self._train(X, same.astype(np.float32), Term("bce", self._exported.scores))
        # numbers are taken for the labels that the graph still writes
        # numbers are matched with the labels that the graph writes, texts that are numbers too
        by_value = "classes" in ready.info and all(str(c).lstrip("-").isdigit() and str(int(c)) == str(c)
                                                   for c in self.classes_)
        values = np.array([int(c) for c in self.classes_]) if by_value else np.arange(len(self.classes_))
        return self._train(X, values[same.argmax(1)], term)

    @staticmethod
    def _scores_of(model):
        """Scores per row; None: not known before it runs."""
        shape = model._description["outputs"][0].get("shape")
        if not shape or len(shape) == 1:
            return None if shape is None else 1
        return shape[1] if isinstance(shape[1], int) else None

    def _two(self, index):
        if len(self.classes_) > 2:
            raise DataError(f"y has {len(self.classes_)} classes, the model has one score, which tells two apart",
                            "OT2104", f"a model with {len(self.classes_)} outputs, or ot.OnnxRegressor for numbers")
        self._columns = None
        return index

    def _positive(self, z):
        """Probabilities from the output, whatever form it has; rows need not add up to one yet."""
        name = self.model_.outputs[0]
        found = json.loads(self.model_._m.output_meaning(name, list(z.shape), len(self.classes_)))
        are_probabilities = found["probabilities"] == "none"
        if self._columns is None:
            p = z.reshape(len(z))
            p = p if are_probabilities else sigmoid(p)
            return np.column_stack([1 - p, p])
        z = z[:, self._columns]
        return z if are_probabilities else softmax(z)

    def predict_proba(self, X):
        """[rows, classes], in the order of `classes_`."""
        if getattr(self, "_exported", None) is not None:
            return self._exported_output(X, self._exported.output)
        p = self._positive(self._output(X))[:, : len(self.classes_)]
        return p / p.sum(1, keepdims=True)

    def _exported_output(self, X, name):
        """What the file itself says."""
        got = all_rows(self.model_, self._rows(X)[0], name)
        return self._exported.table(got).astype(np.float64)

    def predict(self, X):
        if getattr(self, "_exported", None) is not None:
            return np.asarray(all_rows(self.model_, self._rows(X)[0], self.model_.outputs[0])).reshape(-1)
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def score(self, X, y):
        """Accuracy."""
        return float((self.predict(X) == np.asarray(y).reshape(len(X))).mean())


class OnnxRegressor(_Estimator):
    """A model whose first output is the prediction."""

    _estimator_type = "regressor"

    def __sklearn_tags__(self):
        from sklearn.utils import RegressorTags

        return self._tags(regressor_tags=RegressorTags())

    def fit(self, X, y):
        X, y = self._rows(X, y)
        self._flat = y.ndim == 1
        return self._train(X, y, "mse")

    def predict(self, X):
        z = self._output(X)
        return z.reshape(len(z)) if self._flat and z.size == len(z) else z

    def score(self, X, y):
        """R squared; the mean over outputs."""
        y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        left = ((y - self.predict(X).reshape(len(y), -1)) ** 2).sum(0)
        whole = ((y - y.mean(0)) ** 2).sum(0)
        return float(np.where(whole > 0, 1 - left / np.where(whole > 0, whole, 1),
                              np.where(left == 0, 1.0, 0.0)).mean())
