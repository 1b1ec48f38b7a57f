"""Loops, branches, sequences and mixup when a batch is cut into blocks of rows: whole batches give the same."""

import numpy as np
import pytest

import onnxtrain as ot
from blocks_of_rows import assert_blocks_agree, assert_not_cut

SCAN = """z = Constant<value = float[1,4] {0.0,0.0,0.0,0.0}>()
  n = Shape<start = 0, end = 1>(x)
  four = Constant<value = int64[1] {4}>()
  s = Concat<axis = 0>(n, four)
  start = Expand(z, s)
  last, all = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body = step
    (float[M,4] h0, float[M,3] xt) => (float[M,4] h1, float[M,4] ht) {
      a = MatMul(xt, wx)
      b = MatMul(h0, wh)
      c = Add(a, b)
      h1 = Tanh(c)
      ht = Identity(h1)
    }>(start, x)
"""
IF_BY_SUM_OF = """one = Constant<value = float {1.0}>()
  some = ReduceSum<keepdims = 0>(@)
  big = Greater(some, one)
  m = ReduceMean<axes = [1], keepdims = 0>(x)
  h = If<then_branch = a () => (float[M,4] p) { p = MatMul(m, wx) },
         else_branch = b () => (float[M,4] q) { q0 = MatMul(m, wx)
      q = Tanh(q0) }>(big)
  y = MatMul(h, wo)"""
# body between x [N,5,3] and y [N,2]
CASES = {
    "Scan over time": SCAN + "  y = MatMul(last, wo)",
    "Scan, stacked output": SCAN + "  m = ReduceMean<axes = [1], keepdims = 0>(all)\n  y = MatMul(m, wo)",
    "Loop over time": """z = Constant<value = float[4] {0.0,0.0,0.0,0.0}>()
  n = Shape<start = 0, end = 1>(x)
  four = Constant<value = int64[1] {4}>()
  s = Concat<axis = 0>(n, four)
  zero = Constant<value = float[1] {0.0}>()
  start = ConstantOfShape(s)
  five = Shape<start = 1, end = 2>(x)
  none = Constant<value = int64[0] {}>()
  trips = Reshape<allowzero = 1>(five, none)
  yes = Constant<value = bool {1}>()
  last, all = Loop<body = step (int64 i, bool go, float[M,4] h0) => (bool on, float[M,4] h1, float[M,4] ht) {
      on = Identity(go)
      xt = Gather<axis = 1>(x, i)
      a = MatMul(xt, wx)
      b = MatMul(h0, wh)
      c = Add(a, b)
      h1 = Tanh(c)
      ht = Identity(h1)
    }>(trips, yes, start)
  t = Transpose<perm = [1,0,2]>(all)
  m = ReduceMean<axes = [1], keepdims = 0>(t)
  u = Add(m, last)
  y = MatMul(u, wo)""",
    "If by a number of the file": IF_BY_SUM_OF.replace("@", "wo"),
    "If by a sum of the whole batch": IF_BY_SUM_OF.replace("@", "x"),
    "Dropout inside of a Scan": SCAN.replace("h1 = Tanh(c)", "t0 = Tanh(c)\n      r = Constant<value = float {0.5}>()\n"
                                             "      on = Constant<value = bool {1}>()\n      h1 = Dropout(t0, r, on)")
    + "  y = MatMul(last, wo)",
    "parts of a sequence": """s = Constant<value = int64 {2}>()
  q = SplitToSequence<axis = 1>(x, s)
  k = Constant<value = int64 {1}>()
  p = SequenceAt(q, k)
  time = Constant<value = int64[1] {1}>()
  m = ReduceSum<keepdims = 0>(p, time)
  h = MatMul(m, wx)
  y = MatMul(h, wo)""",
    "a sequence put together": """q = SplitToSequence<axis = 1, keepdims = 0>(x)
  k = Constant<value = int64 {3}>()
  p = SequenceAt(q, k)
  last = Constant<value = int64 {-1}>()
  r = SequenceAt(q, last)
  e = SequenceEmpty()
  e1 = SequenceInsert(e, p)
  e2 = SequenceInsert(e1, r)
  c = ConcatFromSequence<axis = 1, new_axis = 1>(e2)
  m = ReduceMax<axes = [1], keepdims = 0>(c)
  h = MatMul(m, wx)
  y = MatMul(h, wo)""",
}
REFUSED = {
    "a Scan from row to row": ("""z = Constant<value = float[5,3] {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}>()
  last, all = Scan<num_scan_inputs = 1, body = step (float[5,3] h0, float[5,3] xt) => (float[5,3] h1, float[5,3] ht) {
      h1 = Add(h0, xt)
      ht = Identity(h1)
    }>(z, x)
  m = ReduceMean<axes = [1], keepdims = 0>(all)
  h = MatMul(m, wx)
  y = MatMul(h, wo)""", "it goes from row to row"),
    "a mean over rows inside": (
        SCAN.replace("h1 = Tanh(c)", "t0 = Tanh(c)\n      m = ReduceMean<axes = [0], keepdims = 1>(t0)\n"
                     "      h1 = Sub(t0, m)") + "  y = MatMul(last, wo)", r"\(Scan\): node 'Sub_0'"),
    "a condition of trained rows": ("""m = ReduceMean<axes = [1], keepdims = 0>(x)
  some0 = MatMul(m, wx)
  some = ReduceSum<keepdims = 0>(some0)
  one = Constant<value = float {1.0}>()
  big = Greater(some, one)
  h = If<then_branch = a () => (float[M,4] p) { p = MatMul(m, wx) },
         else_branch = b () => (float[M,4] q) { q0 = MatMul(m, wx)
      q = Tanh(q0) }>(big)
  y = MatMul(h, wo)""", "applied to a sum over the rows"),
}


def training(body, output="float[N,2] y"):
    rng = np.random.default_rng(2)
    made = ", ".join(f"float[{a},{b}] {n} = {{{', '.join(f'{v:.4f}' for v in rng.normal(size=a * b) * 0.4)}}}"
                     for n, (a, b) in {"wx": (3, 4), "wh": (4, 4), "wo": (4, 2)}.items() if f"{n})" in body)
    text = f"""<ir_version: 8, opset_import: ["": 17]>
g (float[N,5,3] x) => ({output}) <{made}>
{{
  {body}
}}"""
    return ot.prepare(ot.parse(text), loss="mse", optimizer=ot.SGD(lr=0.05), label="target")


def feeds(rows, rng):
    return {"x": rng.normal(size=(rows, 5, 3)).astype("f4"), "target": rng.normal(size=(rows, 2)).astype("f4")}


@pytest.mark.parametrize("name", CASES)
def test_blocks_give_what_whole_batches_give(name):
    assert_blocks_agree(training(CASES[name]), feeds)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_cut_is_named(name):
    body, why = REFUSED[name]
    assert_not_cut(training(body), feeds, why)


IMAGES = """<ir_version: 10, opset_import: ["": 21]>
g (float[N,1,6,6] image) => (float[N,3] y) <float[36,3] w = {WEIGHTS}>
{
  f = Flatten(image)
  y = MatMul(f, w)
}"""


@pytest.mark.parametrize("loss", [ot.losses.CrossEntropy(), ot.losses.CrossEntropy(weight=[1, 2, 0.5], ignore_index=1),
                                  ot.losses.CrossEntropy(reduction="sum")], ids=["mean", "weights", "sum"])
def test_mixup_takes_rows_of_the_next_block(loss):
    weights = ", ".join(f"{v:.4f}" for v in np.random.default_rng(0).normal(size=108))
    file = ot.prepare(ot.parse(IMAGES.replace("WEIGHTS", weights)), loss=loss, optimizer=ot.SGD(lr=0.05),
                      label="label", augment="flip,crop:1,mixup:0.4")
    one, rng = ot.Trainer(file, threads=1), np.random.default_rng(1)
    cut = {k: ot.Trainer(file, threads=1, micro_blocks=k) for k in (2, 5)}
    for rows in (12, 5, 1, 3, 2):
        batch = {"image": rng.normal(size=(rows, 1, 6, 6)).astype("f4"), "label": rng.integers(0, 3, rows)}
        whole = one.step(batch).loss
        for t in cut.values():
            assert t.step(batch).loss == pytest.approx(whole, rel=2e-6)
    for t in cut.values():
        np.testing.assert_allclose(one.state["w"], t.state["w"], rtol=1e-5, atol=1e-6)


ROLLS = {"up": ("1", "9223372036854775807", "0", "1"), "down": ("-1", "9223372036854775807", "0", "-1")}


@pytest.mark.parametrize("way", ROLLS)
def test_rolled_rows(way):
    """torch.roll of the data by one row is cut, of what is trained it is refused."""
    a, b, c, d = ROLLS[way]
    roll = f"""a = Constant<value = int64[1] {{{a}}}>()
  b = Constant<value = int64[1] {{{b}}}>()
  c = Constant<value = int64[1] {{{c}}}>()
  d = Constant<value = int64[1] {{{d}}}>()
  o = Constant<value = int64[1] {{0}}>()
  one = Slice(SOURCE, a, b, o)
  two = Slice(SOURCE, c, d, o)
  r = Concat<axis = 0>(one, two)
"""
    fine = roll.replace("SOURCE", "x") + "  e = Sub(x, r)\n  m = ReduceMean<axes = [1], keepdims = 0>(e)\n" \
        "  h = MatMul(m, wx)\n  y = MatMul(h, wo)"
    trained = "m = ReduceMean<axes = [1], keepdims = 0>(x)\n  h = MatMul(m, wx)\n  " + roll.replace("SOURCE", "h") \
        + "  y = MatMul(r, wo)"
    rng = np.random.default_rng(4)
    one, many = ot.Trainer(training(fine), threads=1), ot.Trainer(training(fine), threads=1, micro_blocks=3)
    for rows in (8, 4, 2, 1):
        batch = feeds(rows, rng)
        assert many.step(batch).loss == pytest.approx(one.step(batch).loss, rel=2e-6)
    with pytest.raises(ot.ModelError, match="OT5010"):
        ot.Trainer(training(trained), threads=1, micro_blocks=3).step(batch)


def test_rolled_by_a_remainder():
    """PyTorch's newer exporter writes 1 mod N, which is 0 in a block of one row."""
    body = """n = Shape<start = 0, end = 1>(x)
  one = Constant<value = int64[1] {1}>()
  k = Mod(one, n)
  o = Constant<value = int64[1] {0}>()
  first = Slice(x, o, k, o)
  others = Slice(x, k, n, o)
  r = Concat<axis = 0>(others, first)
  e = Sub(x, r)
  m = ReduceMean<axes = [1], keepdims = 0>(e)
  h = MatMul(m, wx)
  y = MatMul(h, wo)"""
    rng = np.random.default_rng(4)
    one, many = ot.Trainer(training(body), threads=1), ot.Trainer(training(body), threads=1, micro_blocks=3)
    for rows in (8, 4, 2):
        batch = feeds(rows, rng)
        assert many.step(batch).loss == pytest.approx(one.step(batch).loss, rel=2e-6)


def test_an_input_that_has_the_rows_twice():
    """Targets [N,N] beside every pair of rows: a batch of another size does not fit together."""
    body = "m = ReduceMean<axes = [1], keepdims = 0>(x)\n  h = MatMul(m, wx)\n  z = MatMul(h, wo)\n" \
        "  t = Transpose(z)\n  y = MatMul(z, t)"
    file, rng = training(body, "float[N,N] y"), np.random.default_rng(4)
    batch = {"x": rng.normal(size=(6, 5, 3)).astype("f4"), "target": rng.normal(size=(6, 6)).astype("f4")}
    assert np.isfinite(ot.Trainer(file, threads=1).step(batch).loss)
    with pytest.raises(ot.ModelError, match="does not fit together") as e:
        ot.Trainer(file, threads=1, micro_blocks=2).step(batch)
    assert e.value.code == "OT5010"
