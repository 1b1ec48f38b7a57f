"""ai.onnx.ml operators beside onnxruntime (where it is installed) or ONNX's reference evaluator."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

from onnxtrain.backend import OnnxtrainRep  # noqa: E402

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

RNG = np.random.default_rng(7)
X = RNG.normal(size=(7, 4)).astype(np.float32)
KIND = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE,
        np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32,
        np.dtype(object): TensorProto.STRING}


def make(op, inputs, outputs=1, version=3, domain="ai.onnx.ml", **attrs):
    names = [f"x{i}" for i in range(len(inputs))]
    outs = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, outs, domain=domain, **attrs)
    infos = [helper.make_tensor_value_info(n, KIND[x.dtype], x.shape) for n, x in zip(names, inputs)]
    graph = helper.make_graph([node], op, infos, [helper.make_empty_tensor_value_info(o) for o in outs])
    imports = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def run_model(model, inputs):
    return OnnxtrainRep(model).run(inputs)  # without onnx.checker, which wants shapes of outputs


def expected(model, inputs):
    feeds = {f"x{i}": x for i, x in enumerate(inputs)}
    if onnxruntime is not None:
        onnxruntime.set_default_logger_severity(3)
        return onnxruntime.InferenceSession(model.SerializeToString(),
                                            providers=["CPUExecutionProvider"]).run(None, feeds)
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)


def check(op, *inputs, **attrs):
    model = make(op, inputs, **attrs)
    got, want = run_model(model, list(inputs)), expected(model, inputs)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if isinstance(w, list):
            assert [list(m) for m in g] == [list(m) for m in w]
            for a, b in zip(g, w):
                np.testing.assert_allclose(list(a.values()), list(b.values()), rtol=1e-5)
            continue
        assert g.shape == w.shape
        if w.dtype == object or w.dtype.kind == "U":
            assert g.tolist() == w.tolist()
        else:
            assert g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=2e-4, atol=1e-5)


W = RNG.normal(size=(3, 4)).astype(np.float32)
B = RNG.normal(size=3).astype(np.float32)


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_linear(post):
    check("LinearRegressor", X, coefficients=W.ravel().tolist(), intercepts=B.tolist(), targets=3, post_transform=post,
          version=1)
    check("LinearClassifier", X, outputs=2, coefficients=W.ravel().tolist(), intercepts=B.tolist(),
          classlabels_ints=[3, 5, 9], post_transform=post, version=1)
    check("LinearClassifier", X, outputs=2, coefficients=W.ravel().tolist(), intercepts=B.tolist(),
          classlabels_strings=["a", "b", "c"], post_transform=post, version=1)


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_normalizer(norm):
    check("Normalizer", X, norm=norm, version=1)


def test_scaler_binarizer_imputer():
    check("Scaler", X, offset=[0.5, 1.0, -2.0, 3.0], scale=[2.0, 1.0, 0.25, -1.0], version=1)
    check("Scaler", X.astype(np.int64), offset=[0.5], scale=[2.0], version=1)
    check("Binarizer", X, threshold=0.25, version=1)
    holes = X.copy()
    holes[1, 2] = holes[3, 0] = np.nan
    check("Imputer", holes, imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float("nan"), version=1)
    check("Imputer", np.array([[1, -1], [-1, 4]], np.int64), imputed_value_int64s=[7], replaced_value_int64=-1,
          version=1)


def test_features():
    check("ArrayFeatureExtractor", X, np.array([3, 0, 0], np.int64), version=1)
    check("FeatureVectorizer", X, X[:, :2].astype(np.float32), inputdimensions=[4, 2], version=1)


def test_encoders():
    words = np.array([["a", "zz"], ["c", "a"]], dtype=object)
    check("LabelEncoder", words, keys_strings=["a", "c"], values_int64s=[5, 6], default_int64=9, version=2)
    check("LabelEncoder", np.array([1, 2, 7], np.int64), keys_int64s=[1, 2], values_strings=["x", "y"], version=2)
    check("LabelEncoder", np.array([1, 2, 7], np.int64), keys_int64s=[1, 2], values_floats=[0.5, 1.5],
          default_float=-3.0, version=2)
    check("CategoryMapper", words, cats_strings=["a", "c"], cats_int64s=[4, 8], version=1)
    check("OneHotEncoder", np.array([1, 5, 2], np.int64), cats_int64s=[1, 2], zeros=1, version=1)
    check("OneHotEncoder", words.ravel(), cats_strings=["a", "c"], zeros=1, version=1)


def test_zip_map():
    check("ZipMap", X[:2, :3], classlabels_int64s=[10, 20, 30], version=1)
    check("ZipMap", X[:2, :3], classlabels_strings=["a", "b", "c"], version=1)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm_regressor(kernel):
    sv = RNG.normal(size=(5, 4)).astype(np.float32)
    check("SVMRegressor", X, coefficients=RNG.normal(size=5).tolist(), support_vectors=sv.ravel().tolist(),
          n_supports=5, kernel_type=kernel, kernel_params=[0.3, 0.1, 3.0], rho=[0.2], version=1)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF"])
@pytest.mark.parametrize("proba", [False, True])
def test_svm_classifier(kernel, proba):
    sv = RNG.normal(size=(6, 4)).astype(np.float32)
    extra = {"prob_a": [-1.0, -2.0, -0.5], "prob_b": [0.1, 0.2, 0.3]} if proba else {}
    check("SVMClassifier", X, outputs=2, coefficients=RNG.normal(size=12).tolist(), support_vectors=sv.ravel().tolist(),
          vectors_per_class=[2, 3, 1], classlabels_ints=[0, 1, 2], kernel_type=kernel, kernel_params=[0.3, 0.0, 3.0],
          rho=[0.1, -0.2, 0.3], version=1, **extra)


def test_svm_linear_classifier():
    check("SVMClassifier", X, outputs=2, coefficients=W.ravel().tolist(), classlabels_ints=[0, 1, 2],
          kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], rho=[0.1, 0.1, 0.1], version=1)


def forest(trees, depth=3, features=4):
    """Complete trees with every kind of branch."""
    a = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
                         "missing_value_tracks_true")}
    leaves = []
    # BRANCH_NEQ of a missing value: the standard follows missing_value_tracks_true, onnxruntime does not
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ"]
    for t in range(trees):
        inner = 2 ** depth - 1
        for n in range(2 * inner + 1):
            leaf = n >= inner
            a["treeids"].append(t)
            a["nodeids"].append(n)
            a["featureids"].append(0 if leaf else int(RNG.integers(features)))
            a["modes"].append("LEAF" if leaf else modes[t % len(modes)])
            a["values"].append(0.0 if leaf else float(RNG.normal() * 0.5))
            a["truenodeids"].append(0 if leaf else 2 * n + 1)
            a["falsenodeids"].append(0 if leaf else 2 * n + 2)
            a["missing_value_tracks_true"].append(int(RNG.integers(2)))
            if leaf:
                leaves.append((t, n))
    return {f"nodes_{k}": v for k, v in a.items()}, leaves


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(aggregate):
    nodes, leaves = forest(5)
    holes = X.copy()
    holes[2, 1] = np.nan
    check("TreeEnsembleRegressor", holes, n_targets=2, aggregate_function=aggregate, base_values=[0.5, -1.0],
          target_treeids=[t for t, n in leaves for _ in range(2)],
          target_nodeids=[n for t, n in leaves for _ in range(2)], target_ids=[0, 1] * len(leaves),
          target_weights=RNG.normal(size=2 * len(leaves)).tolist(), **nodes)


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_tree_classifier(post):
    nodes, leaves = forest(4)
    check("TreeEnsembleClassifier", X, outputs=2, post_transform=post, classlabels_int64s=[3, 4, 7],
          class_treeids=[t for t, n in leaves], class_nodeids=[n for t, n in leaves],
          class_ids=[t % 3 for t, n in leaves], class_weights=RNG.normal(size=len(leaves)).tolist(),
          **nodes)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("positive", [False, True])
def test_tree_classifier_of_two(post, positive):
    nodes, leaves = forest(3)
    weights = RNG.normal(size=len(leaves))
    check("TreeEnsembleClassifier", X, outputs=2, post_transform=post, classlabels_strings=["no", "yes"],
          class_treeids=[t for t, n in leaves], class_nodeids=[n for t, n in leaves], class_ids=[0] * len(leaves),
          class_weights=(np.abs(weights) / 3 if positive else weights).tolist(), **nodes)


def test_bad_trees_are_refused():
    nodes, leaves = forest(1)
    nodes["nodes_truenodeids"][1] = 0  # back to the root
    model = make("TreeEnsembleRegressor", [X], n_targets=1, target_treeids=[0], target_nodeids=[7], target_ids=[0],
                 target_weights=[1.0], **nodes)
    with pytest.raises(Exception, match="cycle"):
        run_model(model, [X])
