"""Weights in attributes of ai.onnx.ml operators: files of skl2onnx train, and come out as the same operators."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from skl2onnx import to_onnx
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

import onnxtrain as ot
from sk_cases import NUMBERS, TEXTS, TWO
from sk_cases import X as DOUBLES

X = DOUBLES.astype(np.float32)
Y = NUMBERS.astype(np.float32)
ONE_HOT = (TEXTS[:, None] == np.unique(TEXTS)).astype(np.float32)
TWO_HOT = (TWO[:, None] == np.unique(TWO)).astype(np.float32)
THREE_INDEX = ONE_HOT.argmax(1)

# name: (estimator, y, loss, target of the step)
FILES = {
    "linear regression": (LinearRegression(), Y, "auto", 2 * Y[:, None]),
    "two outputs": (LinearRegression(), np.c_[Y, -Y], "mse", np.c_[Y, -Y] + 1),
    "logistic, 3 classes": (LogisticRegression(), TEXTS, "auto", THREE_INDEX),
    "logistic, 2 classes": (LogisticRegression(), TWO, "auto", TWO),
    "scaled": (make_pipeline(StandardScaler(), LogisticRegression()), TEXTS, "auto", THREE_INDEX),
    "discriminant": (LinearDiscriminantAnalysis(), TEXTS, "auto", THREE_INDEX),
    "linear machine": (LinearSVC(), TEXTS, "cross_entropy", THREE_INDEX),
    "rbf regressor": (SVR(), Y, "auto", Y[:, None]),
    "linear kernel": (SVR(kernel="linear"), Y, "auto", Y[:, None]),
    "polynomial kernel": (SVR(kernel="poly", degree=2), Y, "auto", Y[:, None]),
    "rbf classifier": (SVC(), TWO, "cross_entropy", TWO),
    "forest": (RandomForestRegressor(4, max_depth=4, random_state=0), Y, "auto", Y[:, None]),
    "extra trees": (ExtraTreesRegressor(3, max_depth=3, random_state=0), Y, "mse", Y[:, None]),
    "boosting": (GradientBoostingRegressor(n_estimators=4), Y, "auto", Y[:, None]),
    "boosting, 3 classes": (GradientBoostingClassifier(n_estimators=3), TEXTS, "auto", THREE_INDEX),
    "boosting, 2 classes": (GradientBoostingClassifier(n_estimators=3), TWO, "auto", TWO),
    "forest, 3 classes": (RandomForestClassifier(4, max_depth=3, random_state=0), TEXTS, "mse", ONE_HOT),
    "forest, 2 classes": (RandomForestClassifier(4, max_depth=3, random_state=0), TWO, "mse", TWO_HOT),
}


def exported(e, y):
    e = e.fit(X, y)
    plain = not hasattr(e, "classes_") or isinstance(e, LinearSVC)
    return to_onnx(e, X[:1], options=None if plain else {"zipmap": False})


def in_onnxruntime(path):
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": X})))


def agree(got, want):
    for name, a in want.items():
        if a.dtype.kind == "f":
            assert np.abs(a - got[name]).max() <= 1e-5 * max(1, np.abs(a).max()), name
        else:
            assert (a != got[name]).sum() == 0, name


@pytest.mark.parametrize("name", FILES)
def test_trained_and_written_back(name, tmp_path):
    e, y, loss, target = FILES[name]
    file = exported(e, y)
    onnx.save(file, tmp_path / "before.onnx")
    slow = "kernel" in name or "rbf" in name
    trainer = ot.Trainer(ot.prepare(tmp_path / "before.onnx", loss=loss, optimizer=ot.SGD(lr=1e-4 if slow else 0.05)))
    agree(ot.Session(trainer.model()).run({"X": X}), in_onnxruntime(tmp_path / "before.onnx"))
    before = {n: np.copy(v) for n, v in trainer.state.items()}
    feeds = {"X": X, trainer.targets[0]: target}
    first = trainer.step(feeds).loss
    last = trainer.steps(feeds, 15).loss
    assert last < first
    assert any((trainer.state[n] != v).any() for n, v in before.items() if "." in n)
    trainer.export(tmp_path / "after.onnx")
    after = onnx.load(tmp_path / "after.onnx")
    onnx.checker.check_model(after)
    assert [n.op_type for n in after.graph.node] == [n.op_type for n in file.graph.node]
    assert [o.name for o in after.graph.output] == [o.name for o in file.graph.output]
    assert len(after.graph.initializer) == len(file.graph.initializer)
    agree(in_onnxruntime(tmp_path / "after.onnx"), ot.Session(trainer.model()).run({"X": X}))
    agree(ot.Session(tmp_path / "after.onnx").run({"X": X}), ot.Session(trainer.model()).run({"X": X}))


def attribute(path, name):
    node = onnx.load(path).graph.node[0]
    return np.array(next(onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name))


def test_two_rows_are_one_weight(tmp_path):
    file = exported(LogisticRegression(), TWO)
    onnx.save(file, tmp_path / "before.onnx")
    trainer = ot.Trainer(ot.prepare(tmp_path / "before.onnx", optimizer=ot.SGD(lr=0.5)))
    name = next(n for n in trainer.state if n.endswith("coefficients"))
    assert trainer.state[name].shape == (1, 6)
    trainer.steps({"X": X, trainer.targets[0]: TWO}, 30)
    trainer.export(tmp_path / "after.onnx")
    w = attribute(tmp_path / "after.onnx", "coefficients").reshape(2, 6)
    assert (w[0] == -w[1]).all() and (w[1] == trainer.state[name][0]).all()
    p = in_onnxruntime(tmp_path / "after.onnx")["probabilities"]
    assert np.abs(p.sum(1) - 1).max() < 1e-6


def test_logistic_regression_is_trained_as_scikit_learn_would():
    """From zero weights to the minimum without a penalty."""
    e = LogisticRegression(C=1e6, tol=1e-8, max_iter=2000).fit(X[:, :2], TWO)
    file = to_onnx(e, X[:1, :2], options={"zipmap": False})
    trainer = ot.Trainer(ot.prepare(file.SerializeToString(), optimizer=ot.SGD(lr=1.0)))
    for n in list(trainer.state)[:2]:
        trainer.state[n] = np.zeros_like(trainer.state[n])
    trainer.steps({"X": X[:, :2], trainer.targets[0]: TWO}, 3000)
    name = next(n for n in trainer.state if n.endswith("coefficients"))
    assert np.abs(trainer.state[name] - e.coef_).max() < 0.02 * np.abs(e.coef_).max()


@pytest.mark.parametrize("name", ["logistic, 3 classes", "rbf regressor", "boosting, 2 classes", "forest"])
def test_gradient_by_differences(name):
    e, y, loss, target = FILES[name]
    model = ot.prepare(exported(e, y).SerializeToString(), loss=loss, optimizer=ot.SGD(lr=1.0))
    names = [n for n in ot.Trainer(model).state if "." in n]

    def loss_at(values):
        trainer = ot.Trainer(model)
        for n, v in values.items():
            trainer.state[n] = v
        return trainer.step({"X": X, trainer.targets[0]: target}).loss

    trainer = ot.Trainer(model)
    start = {n: np.copy(trainer.state[n]) for n in names}
    trainer.step({"X": X, trainer.targets[0]: target})
    for n in names:
        gradient = start[n] - trainer.state[n]
        way = np.random.default_rng(0).normal(size=start[n].shape).astype(np.float32)
        step = (2e-3 if "vectors" in n else 1e-2) / np.abs(way).max() * max(0.1, np.abs(start[n]).max())
        up, down = (loss_at(start | {n: (start[n] + s * step * way).astype(np.float32)}) for s in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(float((gradient * way).sum()), rel=0.02, abs=1e-4), n


def test_two_classes_whose_leaves_change_their_signs(tmp_path):
    """One score for two classes: the signs of the leaves say how it becomes two."""
    for e, push in ((RandomForestClassifier(3, max_depth=2, random_state=0), -0.6),
                    (GradientBoostingClassifier(n_estimators=3), 5.0)):
        onnx.save(exported(e, TWO), tmp_path / "before.onnx")
        trainer = ot.Trainer(ot.prepare(tmp_path / "before.onnx", loss="mse"))
        name = next(n for n in trainer.state if n.endswith("leaves"))
        leaves = trainer.state[name]
        leaves[: len(leaves) // 2] += push
        trainer.state[name] = leaves if push < 0 else np.abs(leaves) + 1
        trainer.export(tmp_path / "after.onnx")
        agree(in_onnxruntime(tmp_path / "after.onnx"), ot.Session(trainer.model()).run({"X": X}))


def test_freeze_and_only_by_name():
    file = exported(LogisticRegression(), TEXTS).SerializeToString()
    trainer = ot.Trainer(ot.prepare(file, freeze="*.intercepts"))
    assert not any(n.endswith("intercepts") for n in trainer.state)


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("e", [LogisticRegression(), MLPClassifier((8,), max_iter=5, random_state=0),
                               RandomForestClassifier(4, max_depth=3, random_state=0)], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("y", [TEXTS, TWO], ids=["texts", "numbers"])
def test_classifier_takes_exported_files(e, y, zipmap):
    e = e.fit(X, y)
    file = to_onnx(e, X[:1], options={type(e): {"zipmap": zipmap}})
    c = ot.OnnxClassifier(file.SerializeToString(), epochs=3, optimizer=ot.SGD(lr=1e-3)).fit(X, y)
    assert (c.classes_ == e.classes_).all()
    p = c.predict_proba(X)
    assert p.shape == (400, len(e.classes_)) and np.abs(p.sum(1) - 1).max() < 0.05
    assert (c.predict(X) == e.classes_[p.argmax(1)]).mean() > 0.98
    assert c.score(X, y) >= e.score(X, y) - 0.03
    with pytest.raises(ot.DataError, match="none of the model's classes"):
        c.fit(X, np.where(np.arange(400) == 7, "new", "none"))


def test_classifier_takes_files_of_from_sklearn(tmp_path):
    e = SGDClassifier(loss="log_loss", alpha=0.1).fit(X, TEXTS)
    ot.from_sklearn(e).export(tmp_path / "e.onnx")
    c = ot.OnnxClassifier(tmp_path / "e.onnx", loss=ot.losses.CrossEntropy(output="scores"), epochs=2).fit(X, TEXTS)
    assert c.score(X, TEXTS) > 0.7 and list(c.classes_) == list(e.classes_)


def test_command_line(tmp_path):
    """info chooses the loss that train takes; the run's inference model has the operator again."""
    import pathlib
    import subprocess
    import sys

    cli = pathlib.Path(sys.executable).parent / "onnxtrain"
    onnx.save(to_onnx(LogisticRegression().fit(X, THREE_INDEX), X[:1]), tmp_path / "log.onnx")
    np.savez(tmp_path / "data.npz", X=X, label=THREE_INDEX)
    said = subprocess.run([cli, "info", "log.onnx"], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    assert "loss      cross_entropy" in said
    subprocess.run([cli, "train", "log.onnx", "--data", "data.npz", "--epochs", "1", "--out", "run"],
                   capture_output=True, text=True, cwd=tmp_path, check=True)
    trained = onnx.load(tmp_path / "run/model.onnx")
    assert "LinearClassifier" in [n.op_type for n in trained.graph.node]
