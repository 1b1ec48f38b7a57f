"""What cannot be converted is refused by name and reason; a hostile file makes nothing but an error."""

import json

import numpy as np
import onnx
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, SplineTransformer, StandardScaler
from sklearn.svm import SVC

import onnxtrain as ot
from sk_cases import TEXTS, TWO, X


class Own(SGDClassifier):
    pass


class OwnScaler(StandardScaler):
    pass


def cases():
    sgd = SGDClassifier().fit(X, TEXTS)
    early = MLPClassifier(early_stopping=True, max_iter=2).fit(X, TWO)
    return {
        "support vectors": (SVC().fit(X, TEXTS), "SVC cannot be converted: its weights are support vectors"),
        "unfitted": (SGDClassifier(), "SGDClassifier cannot be converted: it is not fitted"),
        "unfitted step": (make_pipeline(StandardScaler(), LogisticRegression()), "'logisticregression'.*not fitted"),
        "a class": (SGDClassifier, "is not an estimator"),
        "early stopping": (early, "early_stopping=True"),
        "early stopping, later unset": (early.set_params(early_stopping=False), "early_stopping=True"),
        "sparse": (SGDClassifier().fit(X, TEXTS).sparsify(), "sparse"),
        "subclass": (Own().fit(X, TEXTS), "Own cannot be converted: it is a subclass"),
        "subclass of a step": (make_pipeline(OwnScaler(), SGDClassifier()).fit(X, TEXTS), "'ownscaler'.*subclass"),
        "transformer": (make_pipeline(SplineTransformer(), SGDClassifier()).fit(X, TEXTS), "'splinetransformer'"),
        "code": (make_pipeline(FunctionTransformer(lambda v: v + 1), SGDClassifier()).fit(X, TEXTS), "<lambda>"),
        "search": (GridSearchCV(LogisticRegression(), {}).fit(X, TEXTS), "search.best_estimator_"),
        "forest": (RandomForestClassifier(2).fit(X, TEXTS), "no weights that a gradient trains\n.*the leaves"),
        "average with l1": (SGDClassifier(average=True, penalty="l1").fit(X, TEXTS), "average with penalty='l1'"),
        "balanced": (SGDClassifier(class_weight="balanced").fit(X, TEXTS), "balanced"),
        "scaler alone": (StandardScaler().fit(X), "must be an estimator that predicts"),
        "other solver": (MLPClassifier(max_iter=2).fit(X, TEXTS).set_params(solver="sgd"), "solver='sgd' was set"),
        "its own optimizer": (sgd, "its own optimizer and state"),
    }


@pytest.mark.parametrize("name", cases())
def test_refused(name):
    e, words = cases()[name]
    with pytest.raises(ot.UsageError, match=words) as error:
        ot.from_sklearn(e, **({"optimizer": ot.SGD(lr=1)} if name == "its own optimizer" else {}))
    assert error.value.code == "OT1760"


def test_file_without_an_estimator(path):
    with pytest.raises(ot.ModelError, match="does not come from scikit-learn"):
        ot.to_sklearn(path)


def test_file_without_its_training(tmp_path):
    ot.from_sklearn(SGDClassifier().fit(X, TEXTS)).export(tmp_path / "e.onnx")
    with pytest.raises(ot.ModelError, match="no state variable 't_'") as error:
        ot.to_sklearn(tmp_path / "e.onnx")
    assert "trainer.save" in error.value.hint


def tampered(change):
    """A file whose metadata was changed."""
    proto = onnx.load_from_string(ot.from_sklearn(SGDClassifier().fit(X, TEXTS)).proto())
    entry = next(p for p in proto.metadata_props if p.key == "onnxtrain.sklearn")
    entry.value = change(entry.value)
    return ot.load(proto.SerializeToString())


def edited(change):
    def edit(text):
        j = json.loads(text)
        change(j)
        return json.dumps(j)
    return edit


def deep(j):
    inner = []
    for _ in range(90):
        inner = [inner]
    j["estimator"]["is"]["x"] = inner


HOSTILE = {
    "no JSON": lambda text: text[:100],
    "a list": lambda text: "[1, 2]",
    "another format": edited(lambda j: j.update(format=7)),
    "a class that is not listed": edited(lambda j: j["estimator"].update({"class": "Popen"})),
    "a module": edited(lambda j: j["estimator"].update({"class": "os.system"})),
    "a function": edited(lambda j: j["estimator"]["is"].update(x={"function": "eval"})),
    "a form that does not exist": edited(lambda j: j["estimator"]["is"].update(x={"new_array": 1})),
    "an array of objects": edited(lambda j: j["arrays"].append({"type": "|O", "shape": [1], "bytes": "AAAA"})
                                  or j["estimator"]["is"].update(x={"array": len(j["arrays"]) - 1})),
    "a wrong number of bytes": edited(lambda j: j["arrays"].append({"type": "<f8", "shape": [9], "bytes": "AAAA"})
                                      or j["estimator"]["is"].update(x={"array": len(j["arrays"]) - 1})),
    "no such array": edited(lambda j: j["estimator"]["is"].update(x={"array": 10**9})),
    "texts of a gigabyte": edited(lambda j: j["arrays"].append({"type": "<U1000000000", "shape": [1], "items": ["a"]})
                                  or j["estimator"]["is"].update(x={"array": len(j["arrays"]) - 1})),
    "another number of columns": edited(lambda j: j["estimator"]["is"].update(n_features_in_=7)),
    "too deep": edited(deep),
    "no estimator": edited(lambda j: j.pop("estimator")),
    "another family": edited(lambda j: j.update(family="mlp")),
    "no family": edited(lambda j: j.pop("family")),
    "another shape of the weights": edited(
        lambda j: j["estimator"]["is"]["coef_"].update(trained=[10**6, 6])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_metadata(name):
    with pytest.raises(ot.ModelError):
        ot.to_sklearn(tampered(HOSTILE[name]))


def test_no_pickle_in_the_file():
    data = ot.from_sklearn(make_pipeline(StandardScaler(), SGDClassifier()).fit(X, TEXTS)).proto()
    assert b"\x80\x04\x95" not in data and b"pickle" not in data
    assert np.__name__  # numpy objects are written as their bytes
