"""Files of skl2onnx and onnxmltools: estimators, pipelines, trees of LightGBM and XGBoost."""

import numpy as np

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(120, 5)).astype(np.float32)
CLASSES = (X[:, 0] + X[:, 1] > 0).astype(np.int64) + (X[:, 2] > 1)
WORDS = np.array(["low", "mid", "top"])[CLASSES]
VALUES = (X @ np.arange(1, 6) + 0.1 * DRAW.normal(size=120)).astype(np.float32)


def estimators():
    """{name: (estimator, its targets)}"""
    import sklearn.calibration as cal
    import sklearn.cluster as clu
    import sklearn.discriminant_analysis as dis
    import sklearn.ensemble as ens
    import sklearn.gaussian_process as gp
    import sklearn.linear_model as lin
    import sklearn.mixture as mix
    import sklearn.multiclass as mul
    import sklearn.naive_bayes as nb
    import sklearn.neighbors as nei
    import sklearn.neural_network as nn
    import sklearn.svm as svm
    import sklearn.tree as tree

    logistic = lin.LogisticRegression()
    return {
        "logistic": (logistic, CLASSES), "logistic_words": (lin.LogisticRegression(), WORDS),
        "logistic_binary": (lin.LogisticRegression(), CLASSES > 0),
        "linear": (lin.LinearRegression(), VALUES), "ridge_two": (lin.Ridge(), np.stack([VALUES, -VALUES], 1)),
        "sgd": (lin.SGDClassifier(loss="log_loss"), CLASSES), "perceptron": (lin.Perceptron(), CLASSES),
        "poisson": (lin.PoissonRegressor(), np.abs(VALUES)), "ransac": (lin.RANSACRegressor(), VALUES),
        "linear_svc": (svm.LinearSVC(), CLASSES), "svc": (svm.SVC(), CLASSES), "svr": (svm.SVR(), VALUES),
        "nu_svc_poly": (svm.NuSVC(kernel="poly", nu=0.2), CLASSES), "one_class": (svm.OneClassSVM(), None),
        "tree": (tree.DecisionTreeClassifier(max_depth=4), CLASSES),
        "forest": (ens.RandomForestClassifier(8, max_depth=4), WORDS),
        "extra_trees": (ens.ExtraTreesRegressor(8, max_depth=4), VALUES),
        "gradient_boosting": (ens.GradientBoostingClassifier(n_estimators=6), CLASSES),
        "hist_boosting": (ens.HistGradientBoostingRegressor(max_iter=6), VALUES),
        "ada_boost": (ens.AdaBoostClassifier(n_estimators=5), CLASSES), "bagging": (ens.BaggingRegressor(), VALUES),
        "isolation_forest": (ens.IsolationForest(n_estimators=6), None),
        "voting": (ens.VotingClassifier([("a", logistic), ("b", nb.GaussianNB())], voting="soft",
                                        flatten_transform=False), CLASSES),
        "stacking": (ens.StackingRegressor([("a", lin.Ridge()), ("b", lin.LinearRegression())]), VALUES),
        "neighbors": (nei.KNeighborsClassifier(3), CLASSES), "neighbors_values": (nei.KNeighborsRegressor(3), VALUES),
        "outliers": (nei.LocalOutlierFactor(novelty=True), None),
        "gaussian_nb": (nb.GaussianNB(), CLASSES), "bernoulli_nb": (nb.BernoulliNB(), CLASSES),
        "mlp": (nn.MLPClassifier(hidden_layer_sizes=(8, 8), max_iter=30), CLASSES),
        "mlp_tanh_values": (nn.MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", max_iter=30), VALUES),
        "gaussian_process": (gp.GaussianProcessRegressor(), VALUES),
        "k_means": (clu.KMeans(3, n_init=2), None), "mixture": (mix.GaussianMixture(2), None),
        "lda": (dis.LinearDiscriminantAnalysis(), CLASSES), "qda": (dis.QuadraticDiscriminantAnalysis(), CLASSES),
        "one_vs_rest": (mul.OneVsRestClassifier(lin.LogisticRegression()), CLASSES),
        "calibrated": (cal.CalibratedClassifierCV(svm.LinearSVC()), CLASSES),
    }


def pipelines():
    import sklearn.decomposition as dec
    import sklearn.linear_model as lin
    import sklearn.preprocessing as pre
    from sklearn.feature_selection import SelectKBest, VarianceThreshold
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline, make_union

    def ending():
        return lin.LogisticRegression()

    return {
        "scaled": make_pipeline(pre.StandardScaler(), ending()),
        "min_max_polynomial": make_pipeline(pre.MinMaxScaler(), pre.PolynomialFeatures(2), ending()),
        "pca": make_pipeline(pre.RobustScaler(), dec.PCA(3), ending()),
        "imputed": make_pipeline(SimpleImputer(), pre.MaxAbsScaler(), ending()),
        "power": make_pipeline(pre.PowerTransformer(), ending()),
        "quantile": make_pipeline(pre.QuantileTransformer(n_quantiles=20), ending()),
        "bins": make_pipeline(pre.KBinsDiscretizer(4, encode="ordinal"), ending()),
        "union": make_pipeline(make_union(dec.TruncatedSVD(2), pre.Normalizer()), ending()),
        "selected": make_pipeline(VarianceThreshold(), SelectKBest(k=3), ending()),
    }


def of_estimator(model, y, target_opset=18, **options):
    import skl2onnx

    model.fit(X) if y is None else model.fit(X, y)
    options = {id(model): {"zipmap": False}} if options.get("tensors") and hasattr(model, "predict_proba") else None
    return skl2onnx.to_onnx(model, X[:1], target_opset={"": target_opset, "ai.onnx.ml": 3 if target_opset > 13 else 1},
                            options=options)


def text_columns():
    import pandas
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": DRAW.choice(["a", "Bonn", "Ulm"], 120)})
    columns = ColumnTransformer([("n", StandardScaler(), ["a", "b"]),
                                 ("c", OneHotEncoder(handle_unknown="ignore"), ["city"])])
    model = make_pipeline(columns, LogisticRegression()).fit(frame, CLASSES)
    kinds = [*((n, FloatTensorType([None, 1])) for n in "ab"), ("city", StringTensorType([None, 1]))]
    return skl2onnx.convert_sklearn(model, initial_types=kinds, target_opset=18, options={"zipmap": False})


def tf_idf():
    import skl2onnx
    from skl2onnx.common.data_types import StringTensorType
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = [" ".join(DRAW.choice(["a", "cat", "dog", "sat", "ran", "far"], 6)) for _ in range(120)]
    model = make_pipeline(TfidfVectorizer(token_pattern="[a-z]+"), LogisticRegression()).fit(texts, CLASSES)
    return skl2onnx.convert_sklearn(model, initial_types=[("text", StringTensorType([None]))], target_opset=18)


def boosted(kind, target):
    from onnxmltools.convert.common.data_types import FloatTensorType

    kinds = [("x", FloatTensorType([None, 5]))]
    y = CLASSES if target == "classes" else (CLASSES > 0).astype(int) if target == "binary" else VALUES
    if kind == "lightgbm":
        import lightgbm
        from onnxmltools import convert_lightgbm

        made = lightgbm.LGBMRegressor if target == "values" else lightgbm.LGBMClassifier
        return convert_lightgbm(made(n_estimators=6, verbose=-1).fit(X, y), initial_types=kinds, target_opset=15)
    import xgboost
    from onnxmltools import convert_xgboost

    made = xgboost.XGBRegressor if target == "values" else xgboost.XGBClassifier
    return convert_xgboost(made(n_estimators=6).fit(X, y), initial_types=kinds, target_opset=15)


def files():
    """(name, function that makes the model)"""
    for name, (model, y) in estimators().items():
        yield f"sklearn_{name}", lambda m=model, y=y: of_estimator(m, y)
    for name, pipeline in pipelines().items():
        yield f"sklearn_pipeline_{name}", lambda m=pipeline: of_estimator(m, CLASSES)
    more = estimators()
    for opset in (9, 11, 13, 21):
        yield f"sklearn_logistic_opset_{opset}", lambda o=opset: of_estimator(more["logistic"][0], CLASSES, o)
        yield f"sklearn_mlp_opset_{opset}", lambda o=opset: of_estimator(more["mlp"][0], CLASSES, o)
        yield f"sklearn_forest_opset_{opset}", lambda o=opset: of_estimator(more["forest"][0], WORDS, o)
    for name in ("logistic", "mlp", "forest", "lda"):
        yield f"sklearn_{name}_tensors", lambda n=name: of_estimator(more[n][0], more[n][1], tensors=True)
    yield "sklearn_text_columns", text_columns
    yield "sklearn_tf_idf", tf_idf
    for kind in ("lightgbm", "xgboost"):
        for target in ("classes", "binary", "values"):
            yield f"{kind}_{target}", lambda k=kind, t=target: boosted(k, t)
