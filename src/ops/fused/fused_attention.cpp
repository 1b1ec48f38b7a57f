// FusedAttention: the chain softmax(scale * q k^T, masked) -> dropout -> times v, block by block.
// Made by recognise_operators before differentiation; never written to files.
//   inputs: q, k, v, mask?             outputs: y, stats [batch, heads, queries, 2]?
//   FusedAttentionGrad: dy, q, k, v, stats, mask? -> dq, dk, dv, dbias?
// Attributes: dims = batch, heads, key heads, queries, keys, width, value width; q_strides,
// k_strides, v_strides, y_strides = batch, head, row of a tensor that holds every element once;
// y_shape; scale; is_causal; ratio of dropout (always in training); empty = simd::EmptyRow; for a
// bool mask open_is and fill.
#include <algorithm>
#include <cmath>

#include "core/random.hpp"
#include "core/random_rows.hpp"
#include "ops/common/cost.hpp"
#include "ops/common/forward_outputs.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/nn/attention_lower.hpp"

namespace onnxtrain::ops {

namespace {

using kernels::AttentionShape;

[[noreturn]] void wrong(const Node& n, const char* what) {
  model_error("OT1180", cat(what, " of ", n.label(), " does not fit its operands"));
}

// Strides under which [batch, heads, rows, width] holds every element of a tensor once.
kernels::HeadStrides strides_of(const Node& n, const char* key, const Shape& dims, int64_t size) {
  std::vector<int64_t> s = n.ints(key);
  if (s.size() != 3 || num_elements(dims) != size) wrong(n, key);
  s.push_back(1);
  int64_t step = 1;
  std::vector<char> done(4, 0);
  for (int turn = 0; turn < 4; ++turn) {  // the dimension that comes next in memory
    size_t d = 0;
    while (d < 4 && (done[d] || (dims[d] != 1 && s[d] != step))) ++d;
    if (d == 4) wrong(n, key);
    done[d] = 1;
    step *= dims[d];
  }
  return {s[0], s[1], s[2]};
}

void set_mask(const Node& n, AttentionShape& s, const TensorType& m) {
  s.has_mask = true;
  s.mask_is_bool = m.dtype == DType::kBool;
  s.mask_keys = s.keys;
  const int64_t dims[4] = {s.batch, s.heads, s.queries, s.keys};
  if (m.shape.empty() || m.shape.size() > 4 || m.shape.back() != s.keys) wrong(n, "the mask");
  int64_t stride = 1;
  for (size_t d = 4, own = m.shape.size(); own-- > 0;) {
    --d;
    if (m.shape[own] != 1 && m.shape[own] != dims[d]) wrong(n, "the mask");
    s.mask_stride[d] = m.shape[own] == 1 ? 0 : stride;
    stride *= m.shape[own];
  }
}

// at, mask: where q and the mask are among the inputs.
template <class Ctx>
AttentionShape shape_of(const Ctx& c, int at, int mask) {
  const Node& n = c.node();
  std::vector<int64_t> d = n.ints("dims");
  if (d.size() != 7 || *std::min_element(d.begin(), d.end()) < 1 || d[1] % d[2] != 0)
    wrong(n, "dims");
  AttentionShape s;
  s.batch = d[0], s.heads = d[1], s.kv_heads = d[2], s.queries = d[3], s.keys = d[4];
  s.width = d[5], s.value_width = d[6];
  const DType type = c.in(at).dtype;
  if (c.in(at + 1).dtype != type || c.in(at + 2).dtype != type) wrong(n, "the type");
  s.q = strides_of(n, "q_strides", {s.batch, s.heads, s.queries, s.width}, c.in(at).size());
  s.k = strides_of(n, "k_strides", {s.batch, s.kv_heads, s.keys, s.width}, c.in(at + 1).size());
  s.v =
      strides_of(n, "v_strides", {s.batch, s.kv_heads, s.keys, s.value_width}, c.in(at + 2).size());
  const Shape y = n.ints("y_shape");
  if (y.empty() || *std::min_element(y.begin(), y.end()) < 1) wrong(n, "y_shape");
  s.y = strides_of(n, "y_strides", {s.batch, s.heads, s.queries, s.value_width}, num_elements(y));
  s.scale = double(n.f("scale", 1));
  s.causal = n.i("is_causal", 0) != 0;
  if (s.causal && s.queries != s.keys) wrong(n, "is_causal");
  s.ratio = n.f("ratio", 0);
  const int64_t empty = n.i("empty", 0);
  if (!(s.ratio >= 0 && s.ratio < 1)) wrong(n, "ratio");
  if (empty < 0 || empty > 2) wrong(n, "empty");
  s.empty = simd::EmptyRow(empty);
  s.open_is = n.i("open_is", 1) != 0;
  s.fill = double(n.f("fill", -INFINITY));
  if (c.has(mask)) {
    if (c.in(mask).dtype != DType::kBool && c.in(mask).dtype != type) wrong(n, "the mask");
    set_mask(n, s, c.in(mask));
  }
  return s;
}

Shape stats_shape(const AttentionShape& s) { return {s.batch, s.heads, s.queries, 2}; }

void shape(ShapeCtx& c) {
  AttentionShape s = shape_of(c, 0, 3);
  c.set(0, c.dtype(0), c.node().ints("y_shape"));
  c.set(1, c.dtype(0), stats_shape(s));
}

void grad_shape(ShapeCtx& c) {
  AttentionShape s = shape_of(c, 1, 5);
  if (c.shape(0) != c.node().ints("y_shape") || c.dtype(0) != c.dtype(1))
    wrong(c.node(), "the gradient");
  if (c.shape(4) != stats_shape(s) || c.dtype(4) != c.dtype(1)) wrong(c.node(), "stats");
  for (int i = 0; i < 3; ++i) c.set(i, c.dtype(i + 1), c.shape(i + 1));
  c.set(3, c.dtype(1), {s.batch, s.heads, s.queries, s.keys});
}

// Where the numbers of the first probability stand, when the batch is a block of rows.
int64_t first_number(const RandomPlaces& places) { return int64_t(places.here().at(0)); }

RandomPlaces places_of(const Prepare& p, const AttentionShape& s) {
  return {{s.batch, s.heads, s.queries, s.keys}, p.node().i("row_axis", -1)};
}

struct Forward {
  template <class T>
  static Kernel make(Prepare& p) {
    AttentionShape s = shape_of(p, 0, 3);
    s.trim = s.causal;
    auto plan = std::make_shared<kernels::AttentionPlan<T>>(s, p.pool().threads());
    p.workspace = plan->workspace();
    const bool mask = p.has(3), stats = p.wants(1);
    return [=, stream = p.stream(), places = places_of(p, s)](const Run& r) {
      plan->run({r.in<T>(0),
                 r.in<T>(1),
                 r.in<T>(2),
                 mask ? r.inputs[3] : nullptr,
                 nullptr,
                 r.out<T>(0),
                 nullptr,
                 {r.seed, stream, r.step, first_number(places)},
                 stats ? r.out<T>(1) : nullptr},
                r.workspace, *r.pool);
    };
  }
};

struct Backward {
  template <class T>
  static Kernel make(Prepare& p) {
    AttentionShape s = shape_of(p, 1, 5);
    s.trim = s.causal && !p.wants(3);
    auto plan = std::make_shared<kernels::AttentionPlan<T>>(s, p.pool().threads());
    p.workspace = plan->grad_workspace();
    const bool mask = p.has(5);
    const int outputs = p.outputs();
    return [=, stream = p.stream(), places = places_of(p, s)](const Run& r) {
      auto out = [&](int i) { return i < outputs ? r.out<T>(i) : nullptr; };
      plan->grad({r.in<T>(0),
                  r.in<T>(1),
                  r.in<T>(2),
                  r.in<T>(3),
                  mask ? r.inputs[5] : nullptr,
                  nullptr,
                  out(0),
                  out(1),
                  out(2),
                  out(3),
                  {r.seed, stream, r.step, first_number(places)},
                  r.in<T>(4)},
                 r.workspace, *r.pool);
    };
  }
};

std::vector<ValueId> grad(GradBuilder& b) {
  const bool mask = b.has(3), wants_mask = mask && b.wants(3) && b.dtype(b.x(3)) != DType::kBool;
  const Node& n = b.node();
  std::vector<int64_t> d = n.ints("dims");
  const ValueId stats = ensure_output(
      b, 1, TypeInfo::tensor(b.dtype(b.x(0)), Shape{d.at(0), d.at(1), d.at(3), 2}), "stats");
  std::vector<ValueId> g =
      b.own_n("FusedAttentionGrad", {b.dy(), b.x(0), b.x(1), b.x(2), stats, mask ? b.x(3) : kNone},
              wants_mask ? 4 : 3, n.attrs);
  // the same numbers again
  b.graph().nodes.back().random_stream =
      n.random_stream ? n.random_stream : hash64(n.name.data(), n.name.size(), 1);
  if (wants_mask) g[3] = b.sum_to_shape_of(g[3], b.x(3));
  g.resize(size_t(b.inputs()), kNone);
  return g;
}

Cost score_cost(const Prepare& p, const AttentionShape& s, double columns) {
  return cost_of(p, 2 * (s.causal ? 0.5 : 1) * columns * double(s.batch * s.heads) *
                        double(s.queries) * double(s.keys));
}
Cost cost(const Prepare& p) {
  AttentionShape s = shape_of(p, 0, 3);
  return score_cost(p, s, double(s.width + s.value_width));
}
Cost grad_cost(const Prepare& p) {
  AttentionShape s = shape_of(p, 1, 5);
  return score_cost(p, s, double(3 * s.width + 2 * s.value_width));
}

}  // namespace

void register_fused_attention(OpTable& t) {
  t.add({.name = "FusedAttention",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"blocks", nullptr, float_or_double<Forward>}},
         .grad = grad,
         .random = true,
         .cost = cost});
  t.add({.name = "FusedAttentionGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"blocks", nullptr, float_or_double<Backward>}},
         .no_grad = "a graph with second derivatives keeps the chain",
         .random = true,
         .cost = grad_cost});
}

}  // namespace onnxtrain::ops
