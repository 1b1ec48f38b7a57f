// Attention (opset 23 to 25) with masks, caches, grouped queries, windows and softcap; and
// AttentionGrad(dy, q, k, v, mask, lengths) -> dq, dk, dv, dbias, where k and v include the past.
#include <algorithm>
#include <cmath>

#include "op/needs_shape.hpp"
#include "ops/common/cost.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/nn/attention_lower.hpp"

namespace onnxtrain::ops {

namespace {

using kernels::AttentionShape;

enum { kQ, kK, kV, kMask, kPastK, kPastV, kLengths };  // inputs of Attention
enum { kGDy, kGQ, kGK, kGV, kGMask, kGLengths };       // inputs of AttentionGrad

// Reads [batch, heads, rows, width] or [batch, rows, heads * width].
kernels::HeadStrides strides_for(bool packed, int64_t heads, int64_t rows, int64_t width) {
  if (packed) return {rows * heads * width, width, heads * width};
  return {heads * rows * width, rows * width, width};
}

// `past` keys were put in front: then k and v are [batch, heads, rows, width] whatever q is.
AttentionShape attention_of(const Node& n, const Shape& q, const Shape& k, const Shape& v,
                            bool full, int64_t past) {
  AttentionShape s;
  bool packed = q.size() == 3;
  bool kv_packed = packed && !full;
  if ((q.size() != 3 && q.size() != 4) || k.size() != (kv_packed ? 3u : 4u) || v.size() != k.size())
    model_error("OT1180",
                cat("Attention of ", to_string(q), ", ", to_string(k), " and ", to_string(v)));
  s.batch = q[0];
  s.heads = packed ? n.i("q_num_heads", 0) : q[1];
  s.kv_heads = kv_packed ? n.i("kv_num_heads", 0) : k[1];
  if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0 ||
      (packed && q[2] % s.heads != 0) ||
      (kv_packed && (k[2] % s.kv_heads != 0 || v[2] % s.kv_heads != 0)))
    model_error("OT1180", cat("Attention with ", s.heads, " query heads and ", s.kv_heads,
                              " key heads over ", to_string(q)));
  s.queries = packed ? q[1] : q[2], s.width = packed ? q[2] / s.heads : q[3];
  s.keys = kv_packed ? k[1] : k[2];
  int64_t k_width = kv_packed ? k[2] / s.kv_heads : k[3], v_rows = kv_packed ? v[1] : v[2];
  s.value_width = kv_packed ? v[2] / s.kv_heads : v[3];
  if (k_width != s.width || v_rows != s.keys || k[0] != s.batch || v[0] != s.batch ||
      (!kv_packed && v[1] != s.kv_heads))
    model_error("OT1180", cat("keys ", to_string(k), " and values ", to_string(v),
                              " do not fit queries ", to_string(q)));
  s.q = strides_for(packed, s.heads, s.queries, s.width);
  s.k = strides_for(kv_packed, s.kv_heads, s.keys, s.width);
  s.v = strides_for(kv_packed, s.kv_heads, s.keys, s.value_width);
  s.y = strides_for(packed, s.heads, s.queries, s.value_width);
  s.past = past;
  s.scale = n.has("scale") ? double(n.f("scale", 1))
                           : 1 / std::sqrt(double(std::max<int64_t>(1, s.width)));
  s.softcap = double(n.f("softcap", 0));
  s.causal = n.i("is_causal", 0) != 0;
  s.left = n.i("left_window_size", -1), s.right = n.i("right_window_size", -1);
  s.mode = int(n.i("qk_matmul_output_mode", 0));
  if (s.left < -1 || s.right < -1 || s.left > (int64_t(1) << 40) || s.right > (int64_t(1) << 40) ||
      s.mode < 0 || s.mode > 3)
    model_error("OT1180", cat("attributes of ", n.label(), " are out of range"));
  return s;
}

void set_mask(AttentionShape& s, const TensorType& m, DType q_type) {
  s.has_mask = true;
  s.mask_is_bool = m.dtype == DType::kBool;
  if (!s.mask_is_bool && m.dtype != q_type)
    model_error("OT1180", "the attention mask is neither bool nor of the queries' type");
  if (m.shape.empty() || m.shape.size() > 4)
    model_error("OT1180", cat("an attention mask of shape ", to_string(m.shape)));
  s.mask_keys = m.shape.back() == 1 ? s.keys : m.shape.back();
  int64_t dims[4] = {s.batch, s.heads, s.queries, s.mask_keys}, stride = 1;
  size_t lead = 4 - m.shape.size();
  for (size_t d = 4; d-- > lead;) {
    int64_t size = m.shape[d - lead];
    if (size != 1 && size != dims[d])
      model_error("OT1180",
                  cat("an attention mask of shape ", to_string(m.shape), " does not fit"));
    s.mask_stride[d] = size == 1 ? 0 : stride;
    stride *= size;
  }
  if (s.mask_keys > s.keys)
    model_error("OT1180", cat("an attention mask of ", s.mask_keys, " keys, there are ", s.keys));
}

// Key and value with the past in front: [batch, heads, past + rows, width].
Shape present_shape(const Node& n, const Shape& x, const Shape& past) {
  int64_t heads = x.size() == 3 ? n.i("kv_num_heads", 0) : x[1];
  if (heads < 1 || (x.size() == 3 && x[2] % heads != 0) || (x.size() != 3 && x.size() != 4))
    model_error("OT1180", cat("kv_num_heads is ", heads, " for keys of shape ", to_string(x)));
  int64_t rows = x.size() == 3 ? x[1] : x[2], width = x.size() == 3 ? x[2] / heads : x[3];
  if (!past.empty() &&
      (past.size() != 4 || past[0] != x[0] || past[1] != heads || past[3] != width))
    model_error("OT1180", cat("a past of shape ", to_string(past), " does not fit ", to_string(x)));
  return {x[0], heads, rows + (past.empty() ? 0 : past[2]), width};
}

template <class Ctx, class TypeOf>
AttentionShape forward_shape_of(const Ctx& c, TypeOf type, Shape& pk, Shape& pv) {
  bool has_past = c.has(kPastK);
  if (has_past != c.has(kPastV)) model_error("OT1180", "past_key and past_value come together");
  Shape none;
  pk = present_shape(c.node(), type(kK).shape, has_past ? type(kPastK).shape : none);
  pv = present_shape(c.node(), type(kV).shape, has_past ? type(kPastV).shape : none);
  if (c.has(kLengths) && (has_past || type(kLengths).shape != Shape{type(kQ).shape[0]} ||
                          type(kLengths).dtype != DType::kInt64))
    model_error("OT1180", "nonpad_kv_seqlen needs one int64 per batch item and no past");
  AttentionShape s =
      attention_of(c.node(), type(kQ).shape, has_past ? pk : type(kK).shape,
                   has_past ? pv : type(kV).shape, has_past, has_past ? type(kPastK).shape[2] : 0);
  if (c.has(kMask)) set_mask(s, type(kMask), type(kQ).dtype);
  return s;
}

void shape(ShapeCtx& c) {
  Shape pk, pv;
  AttentionShape s = forward_shape_of(
      c, [&](int i) { return c.in(i); }, pk, pv);
  bool packed = c.rank(kQ) == 3;
  c.set(0, c.dtype(kQ),
        packed ? Shape{s.batch, s.queries, num_elements({s.heads, s.value_width})}
               : Shape{s.batch, s.heads, s.queries, s.value_width});
  c.set(1, c.dtype(kK), pk);
  c.set(2, c.dtype(kV), pv);
  c.set(3, c.dtype(kQ), {s.batch, s.heads, s.queries, s.keys});
}

// Copies [past; x] into to, [batch, heads, rows, width].
template <class T>
void join(const T* past, const T* x, bool packed, const Shape& to_shape, int64_t past_rows, T* to,
          ThreadPool& pool) {
  int64_t heads = to_shape[1], rows = to_shape[2], width = to_shape[3], fresh = rows - past_rows;
  kernels::HeadStrides from = strides_for(packed, heads, fresh, width);
  pool.run(to_shape[0] * heads, [&](int64_t task) {
    int64_t b = task / heads, h = task % heads;
    T* at = to + task * rows * width;
    if (past_rows) std::copy_n(past + task * past_rows * width, past_rows * width, at);
    for (int64_t r = 0; r < fresh; ++r)
      std::copy_n(x + from.at(b, h, r), width, at + (past_rows + r) * width);
  });
}

struct Forward {
  template <class T>
  static Kernel make(Prepare& p) {
    Shape pk, pv;
    AttentionShape s = forward_shape_of(
        p, [&](int i) { return p.in(i); }, pk, pv);
    s.trim = s.causal && !p.has(kLengths) && !p.has(kMask) && !p.wants(3);
    auto plan = std::make_shared<kernels::AttentionPlan<T>>(s, p.pool().threads());
    bool packed = p.in(kQ).shape.size() == 3, past = p.has(kPastK), mask = p.has(kMask),
         lengths = p.has(kLengths);
    bool want_k = p.wants(1), want_v = p.wants(2), want_scores = p.wants(3);
    size_t k_bytes = past && !want_k ? (size_t(num_elements(pk)) * sizeof(T) + 63) / 64 * 64 : 0;
    size_t v_bytes = past && !want_v ? (size_t(num_elements(pv)) * sizeof(T) + 63) / 64 * 64 : 0;
    p.workspace = plan->workspace() + k_bytes + v_bytes;
    int64_t past_rows = s.past, y_size = p.out(0).size();
    return [=](const Run& r) {
      char* base = static_cast<char*>(r.workspace);
      const T *k = r.in<T>(kK), *v = r.in<T>(kV);
      if (past || want_k) {
        T* to = want_k ? r.out<T>(1) : reinterpret_cast<T*>(base);
        join(past ? r.in<T>(kPastK) : nullptr, k, packed, pk, past_rows, to, *r.pool);
        if (past) k = to;
      }
      if (past || want_v) {
        T* to = want_v ? r.out<T>(2) : reinterpret_cast<T*>(base + k_bytes);
        join(past ? r.in<T>(kPastV) : nullptr, v, packed, pv, past_rows, to, *r.pool);
        if (past) v = to;
      }
      if (s.keys == 0) return void(std::fill_n(r.out<T>(0), y_size, T(0)));
      plan->run({r.in<T>(kQ), k, v, mask ? r.inputs[kMask] : nullptr,
                 lengths ? r.in<int64_t>(kLengths) : nullptr, r.out<T>(0),
                 want_scores ? r.out<T>(3) : nullptr},
                base + k_bytes + v_bytes, *r.pool);
    };
  }
};

// ---------------------------------------------------------------- gradient
template <class Ctx, class TypeOf>
AttentionShape grad_shape_of(const Ctx& c, TypeOf type) {
  const Shape &q = type(kGQ).shape, &k = type(kGK).shape;
  AttentionShape s = attention_of(c.node(), q, k, type(kGV).shape, k.size() == 4 && q.size() == 3,
                                  c.node().i("past", 0));
  if (c.has(kGMask)) set_mask(s, type(kGMask), type(kGQ).dtype);
  return s;
}

void grad_shape(ShapeCtx& c) {
  AttentionShape s = grad_shape_of(c, [&](int i) { return c.in(i); });
  for (int i = 0; i < 3; ++i) c.set(i, c.dtype(i + 1), c.shape(i + 1));
  c.set(3, c.dtype(kGQ), {s.batch, s.heads, s.queries, s.keys});
}

struct Backward {
  template <class T>
  static Kernel make(Prepare& p) {
    AttentionShape s = grad_shape_of(p, [&](int i) { return p.in(i); });
    s.trim = s.causal && !p.has(kGLengths) && !p.has(kGMask) && !p.wants(3);
    auto plan = std::make_shared<kernels::AttentionPlan<T>>(s, p.pool().threads());
    p.workspace = plan->grad_workspace();
    bool mask = p.has(kGMask), lengths = p.has(kGLengths);
    int outputs = p.outputs();
    int64_t q_size = p.in(kGQ).size();
    return [=](const Run& r) {
      auto out = [&](int i) { return i < outputs ? r.out<T>(i) : nullptr; };
      if (s.keys == 0) {
        if (out(0)) std::fill_n(out(0), q_size, T(0));
        return;
      }
      plan->grad({r.in<T>(kGDy), r.in<T>(kGQ), r.in<T>(kGK), r.in<T>(kGV),
                  mask ? r.inputs[kGMask] : nullptr, lengths ? r.in<int64_t>(kGLengths) : nullptr,
                  out(0), out(1), out(2), out(3)},
                 r.workspace, *r.pool);
    };
  }
};

// Gradients of past and new part of a present tensor.
void split_present(GradBuilder& b, ValueId d, int input, int past_input, std::vector<ValueId>& g) {
  int64_t rows = b.shape(b.x(past_input))[2];
  auto part = [&](int64_t from, int64_t to) {
    return b.call("Slice",
                  {d, b.constant_ints({from}), b.constant_ints({to}), b.constant_ints({2})});
  };
  if (b.wants(past_input)) g[size_t(past_input)] = part(0, rows);
  if (b.wants(input)) g[size_t(input)] = to_input_layout(b, part(rows, INT64_MAX), b.x(input));
}

ValueId mask_grad(GradBuilder& b, ValueId dbias) {
  ValueId mask = b.x(kMask);
  if (!b.shape_known(mask) || !b.shape_known(dbias))
    needs_shape("OT1205", "the gradient of an attention mask needs known shapes");
  int64_t keys = b.shape(mask).back();
  if (keys != 1 && keys < b.shape(dbias).back())
    dbias = b.call("Slice",
                   {dbias, b.constant_ints({0}), b.constant_ints({keys}), b.constant_ints({3})});
  return b.sum_to_shape_of(dbias, mask);
}

std::vector<ValueId> grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  bool past = b.has(kPastK), mask = b.has(kMask),
       wants_mask = mask && b.wants(kMask) && dtype_is_differentiable(b.dtype(b.x(kMask)));
  ValueId k = b.x(kK), v = b.x(kV);
  GradBuilder::Attrs a = b.node().attrs;
  if (past) {
    if (!b.shape_known(b.x(kPastK)) || !b.shape_known(b.x(kPastV)) || !b.shape_known(k) ||
        !b.shape_known(v))
      needs_shape("OT1205", cat("the gradient of ", b.node().label(), " needs known shapes"));
    auto whole = [&](ValueId x, ValueId before) {
      Shape s = b.shape(x), p = b.shape(before);
      if (s.size() == 3)
        x = b.transpose(b.call("Reshape", {x, b.constant_ints({s[0], s[1], p[1], p[3]})}),
                        {0, 2, 1, 3});
      return b.call("Concat", {before, x}, {{"axis", int64_t(2)}});
    };
    k = whole(k, b.x(kPastK));
    v = whole(v, b.x(kPastV));
    a["past"] = b.shape(b.x(kPastK))[2];
  }
  std::vector<ValueId> d{kNone, kNone, kNone, kNone};
  ValueId lengths = b.has(kLengths) ? b.x(kLengths) : kNone;
  if (b.has_dy(3)) {
    // the scores are an output: they exist as a whole anyway
    for (ValueId v_known : {b.x(kQ), k, v})
      if (!b.shape_known(v_known))
        needs_shape("OT1205", cat("the gradient of ", b.node().label(), " needs known shapes"));
    auto type = [&](ValueId x) { return TensorType{b.dtype(x), b.shape(x)}; };
    AttentionShape s = attention_of(b.node(), b.shape(b.x(kQ)), b.shape(k), b.shape(v),
                                    b.shape(k).size() == 4 && b.shape(b.x(kQ)).size() == 3,
                                    past ? b.shape(b.x(kPastK))[2] : 0);
    if (mask) set_mask(s, type(b.x(kMask)), b.dtype(b.x(kQ)));
    d = attention_gradient(b, s,
                           {b.x(kQ), k, v, mask ? b.x(kMask) : kNone, lengths,
                            b.has_dy(0) ? b.dy(0) : kNone, b.dy(3)});
  } else if (b.has_dy(0)) {
    d = b.own_n("AttentionGrad", {b.dy(0), b.x(kQ), k, v, mask ? b.x(kMask) : kNone, lengths},
                wants_mask ? 4 : 3, a);
    d.resize(4, kNone);
  }
  g[kQ] = d[0];
  // what arrives at the present outputs goes to key and value directly
  for (int i : {kK, kV}) {
    ValueId sum = d[size_t(i)];
    if (b.has_dy(i)) {
      ValueId direct = past ? b.dy(i) : to_input_layout(b, b.dy(i), b.x(i));
      sum = sum == kNone ? direct : b.add(sum, direct);
    }
    if (sum == kNone) continue;
    if (past)
      split_present(b, sum, i, i == kK ? kPastK : kPastV, g);
    else
      g[size_t(i)] = sum;
  }
  if (wants_mask && d[3] != kNone) g[kMask] = mask_grad(b, d[3]);
  return g;
}

// Batch, queries and keys may be open: 1 stands for them, in q, k and v alike. Heads and widths are
// part of the model.
AttentionShape open_shape(GradBuilder& b) {
  const auto refuse = [&](ValueId v) {
    needs_shape("OT1206", cat("the gradient of Attention in standard operators needs heads and "
                              "widths as numbers; one of its inputs is ",
                              to_string(b.type(v))));
  };
  const auto dims = [&](int i) {
    const TypeInfo& t = b.type(b.x(i));
    if (!t.is_tensor() || !t.shape || (t.shape->size() != 3 && t.shape->size() != 4))
      refuse(b.x(i));
    Shape s;
    for (const Dim& d : *t.shape) s.push_back(d.value);
    const size_t rows = s.size() - 2;
    s[0] = s[rows] = 1;
    if (std::any_of(s.begin(), s.end(), [](int64_t n) { return n < 0; })) refuse(b.x(i));
    return s;
  };
  const Shape q = dims(kGQ), k = dims(kGK);
  AttentionShape s = attention_of(b.node(), q, k, dims(kGV), k.size() == 4 && q.size() == 3,
                                  b.node().i("past", 0));
  if (!b.has(kGMask)) return s;
  // shorter masks are filled up: their keys must be known to be as many
  const TypeInfo &mask = b.type(b.x(kGMask)), &key = b.type(b.x(kGK));
  const Dim &have = (*key.shape)[k.size() - 2], none{},
            &got =
                mask.is_tensor() && mask.shape && !mask.shape->empty() ? mask.shape->back() : none;
  const bool equal = (have.known() && have.value == got.value) ||
                     (!have.symbol.empty() && have.symbol == got.symbol);
  if (!equal && got.value != 1) refuse(b.x(kGMask));
  s.has_mask = true;
  s.mask_is_bool = mask.elem == DType::kBool;
  s.mask_keys = s.keys;
  return s;
}

std::vector<ValueId> grad_lower(GradBuilder& b) {
  bool open = false;
  for (int i : {kGDy, kGQ, kGK, kGV, kGMask}) open |= b.has(i) && !b.shape_known(b.x(i));
  auto type = [&](int i) { return TensorType{b.dtype(b.x(i)), b.shape(b.x(i))}; };
  struct Ctx {
    GradBuilder& b;
    const Node& node() const { return b.node(); }
    bool has(int i) const { return b.has(i); }
  } ctx{b};
  std::vector<ValueId> out =
      attention_gradient(b, open ? open_shape(b) : grad_shape_of(ctx, type),
                         {b.x(kGQ), b.x(kGK), b.x(kGV), b.has(kGMask) ? b.x(kGMask) : kNone,
                          b.has(kGLengths) ? b.x(kGLengths) : kNone, b.x(kGDy), kNone, open});
  out.resize(std::max<size_t>(3, b.node().outputs.size()));
  return out;
}

// Multiply-adds over the scores that are looked at, per column of an operand.
Cost score_cost(const Prepare& p, const AttentionShape& s, double columns) {
  double part = s.causal && s.queries == s.keys ? 0.5 : 1;
  return cost_of(
      p, 2 * part * columns * double(s.batch * s.heads) * double(s.queries) * double(s.keys));
}
Cost cost(const Prepare& p) {
  Shape pk, pv;
  AttentionShape s = forward_shape_of(
      p, [&](int i) { return p.in(i); }, pk, pv);
  return score_cost(p, s, double(s.width + s.value_width));
}
Cost grad_cost(const Prepare& p) {
  AttentionShape s = grad_shape_of(p, [&](int i) { return p.in(i); });
  return score_cost(p, s, double(3 * s.width + 2 * s.value_width));
}

}  // namespace

void register_attention(OpTable& t) {
  t.add({.name = "Attention",
         .since = 23,
         .shape = shape,
         .impls = {{"blocks", nullptr, float_or_double<Forward>}},
         .grad = grad,
         .cost = cost});
  t.add({.name = "AttentionGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"blocks", nullptr, float_or_double<Backward>}},
         .no_grad = "a second derivative of Attention is made from its standard operators",
         .cost = grad_cost,
         .lower = grad_lower});
}

}  // namespace onnxtrain::ops
