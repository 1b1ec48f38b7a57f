"""Operators in front of and behind weights when a batch is cut into blocks of rows: whole batches give the same."""

import numpy as np
import pytest

import onnxtrain as ot
from blocks_of_rows import assert_blocks_agree, assert_not_cut

# body between x [N,6], ids [N,2] and h [N,6]; the layer behind it is trained, w6 is its neighbour
CASES = {
    "Imputer": "h = ai.onnx.ml.Imputer<imputed_value_floats = [1.0,2.0,3.0,4.0,5.0,6.0], "
               "replaced_value_float = 0.0>(x)",
    "Scaler": "h = ai.onnx.ml.Scaler<offset = [1.0,2.0,3.0,4.0,5.0,6.0], scale = [2.0]>(x)",
    "Binarizer": "b = ai.onnx.ml.Binarizer<threshold = 0.2>(x)\n  h = MatMul(b, w6)",
    "Normalizer": "h = ai.onnx.ml.Normalizer<norm = \"L2\">(x)",
    "OneHotEncoder": "o = ai.onnx.ml.OneHotEncoder<cats_int64s = [0,1,2]>(ids)\n"
                     "  s = Constant<value = int64[2] {-1,6}>()\n  h = Reshape(o, s)",
    "LabelEncoder": "e = ai.onnx.ml.LabelEncoder<keys_int64s = [0,1,2], values_floats = [0.5,-1.0,2.0]>(ids)\n"
                    "  h = MatMul(e, w26)",
    "FeatureVectorizer": "f = Cast<to = 1>(ids)\n  v = ai.onnx.ml.FeatureVectorizer<inputdimensions = [6, 2]>(x, f)\n"
                         "  h = MatMul(v, w86)",
    "ArrayFeatureExtractor": "c = Constant<value = int64[3] {5,0,2}>()\n  a = ai.onnx.ml.ArrayFeatureExtractor(x, c)\n"
                             "  h = Concat<axis = 1>(a, a)",
    "LinearRegressor": "r = ai.onnx.ml.LinearRegressor<coefficients = [1.0,2.0,-1.0,0.5,0.1,0.3], targets = 1>(x)\n"
                       "  h = Mul(x, r)",
    "Einsum rows stay": "h = Einsum<equation = \"ni,ij->nj\">(x, w6)",
    "Einsum of rows": "d = Einsum<equation = \"ni,ni->n\">(x, x)\n  u = Constant<value = int64[1] {1}>()\n"
                      "  du = Unsqueeze(d, u)\n  h = Mul(x, du)",
    "Einsum without arrow": "h = Einsum<equation = \"ab,bz\">(x, w6)",
    "GatherND": "u = Constant<value = int64[1] {2}>()\n  i = Unsqueeze(ids, u)\n  g = GatherND<batch_dims = 1>(x, i)\n"
                "  h = MatMul(g, w26)",
    "ScatterElements": "f = Constant<value = float[1,1] {1.0}>()\n  n = Shape(ids)\n  up = Expand(f, n)\n"
                       "  h = ScatterElements<axis = 1>(x, ids, up)",
    "ReverseSequence": "z = Constant<value = int64 {0}>()\n  l = Gather<axis = 1>(ids, z)\n"
                       "  o = Constant<value = int64 {1}>()\n  lo = Add(l, o)\n"
                       "  h = ReverseSequence<batch_axis = 0, time_axis = 1>(x, lo)",
    "Det": "c = Constant<value = int64[3] {-1,2,3}>()\n  m = Reshape(x, c)\n  mt = Transpose<perm = [0,2,1]>(m)\n"
           "  q = MatMul(m, mt)\n  d = Det(q)\n  u = Constant<value = int64[1] {1}>()\n  du = Unsqueeze(d, u)\n"
           "  h = Mul(x, du)",
    "CenterCropPad": "c = Constant<value = int64[1] {4}>()\n  p = CenterCropPad<axes = [1]>(x, c)\n"
                     "  h = MatMul(p, w46)",
}
REFUSED = {
    "MaxUnpool": ("c = Constant<value = int64[4] {-1,1,1,6}>()\n  i = Reshape(x, c)\n"
                  "  p, at = MaxPool<kernel_shape = [1,2], strides = [1,2]>(i)\n"
                  "  v = MaxUnpool<kernel_shape = [1,2], strides = [1,2]>(p, at)\n"
                  "  e = Constant<value = int64[2] {-1,6}>()\n  h = Reshape(v, e)", "count over the whole batch"),
    "Einsum pairs": ("q = Einsum<equation = \"ni,mi->nm\">(x, x)\n  h = MatMul(q, x)",
                     "pairs every row with every row"),
    "GatherND rows": ("z = Constant<value = int64[1,1] {0}>()\n  g = GatherND(x, z)\n  h = Add(x, g)",
                      "picks rows by their numbers"),
    "DynamicQuantizeLinear": ("q, s, z = DynamicQuantizeLinear(x)\n  h = DequantizeLinear(q, s, z)",
                              "scale is that of the whole batch"),
}
WEIGHTS = {"w6": (6, 6), "w26": (2, 6), "w86": (8, 6), "w46": (4, 6), "w": (6, 3)}


def training(body):
    rng = np.random.default_rng(2)
    made = ", ".join(f"float[{a},{b}] {n} = {{{', '.join(f'{v:.4f}' for v in rng.normal(size=a * b) * 0.4)}}}"
                     for n, (a, b) in WEIGHTS.items() if n == "w" or f"{n})" in body or f"{n}," in body)
    text = f"""<ir_version: 10, opset_import: ["": 18, "ai.onnx.ml": 3]>
g (float[N,6] x, int64[N,2] ids) => (float[N,3] y) <{made}>
{{
  {body}
  t = Tanh(h)
  y = MatMul(t, w)
}}"""
    return ot.prepare(ot.parse(text), loss="mse", optimizer=ot.SGD(lr=0.05), label="target")


def feeds(rows, rng):
    x = rng.normal(size=(rows, 6)).astype("f4")
    x[rng.random((rows, 6)) < 0.1] = 0
    return {"x": x, "ids": np.stack([rng.permutation(3)[:2] for _ in range(rows)]),
            "target": rng.normal(size=(rows, 3)).astype("f4")}


@pytest.mark.parametrize("name", CASES)
def test_blocks_give_what_whole_batches_give(name):
    assert_blocks_agree(training(CASES[name]), feeds)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_cut_is_named(name):
    body, why = REFUSED[name]
    assert_not_cut(training(body), feeds, why)


def test_a_sum_of_products_over_the_rows():
    """What Einsum adds over the rows is added over the blocks."""
    loss = ot.parse("""<ir_version: 8, opset_import: ["": 17]>
        l (float[N,3] y, float[N,3] target) => (float loss)
        {
          d = Sub(y, target)
          s = Einsum<equation = "ni,nj->ij">(d, d)
          loss = ReduceSum<keepdims = 0>(s)
        }""")
    model = ot.parse("""<ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,3] y) <float[2,3] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }""")
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        loss.save(f"{folder}/loss.onnx")
        file = ot.prepare(model, loss=f"{folder}/loss.onnx", optimizer=ot.SGD(lr=1e-3))
    rng = np.random.default_rng(0)
    one, many = ot.Trainer(file, threads=1), ot.Trainer(file, threads=1, micro_blocks=3)
    for rows in (7, 2):
        batch = {"x": rng.normal(size=(rows, 2)).astype("f4"), "target": rng.normal(size=(rows, 3)).astype("f4")}
        assert many.step(batch).loss == pytest.approx(one.step(batch).loss, rel=2e-6)
    np.testing.assert_allclose(one.state["w"], many.state["w"], rtol=1e-5)
