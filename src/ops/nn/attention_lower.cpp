// Scores, probabilities and their gradients, one operator at a time.
#include "ops/nn/attention_lower.hpp"

#include <cmath>

namespace onnxtrain::ops {

namespace {

using kernels::AttentionShape;

struct Lower {
  GradBuilder& b;
  AttentionShape s;
  bool open;
  using V = ValueId;

  // to [batch, heads, rows, width]; laid out as `like`
  V heads_of(V v, int64_t heads, int64_t rows, int64_t width, V like) {
    if (b.need_rank(like) == 4) return v;
    if (!open) {
      V shape = b.constant_ints({s.batch, rows, heads, width});
      return b.transpose(b.call("Reshape", {v, shape}), {0, 2, 1, 3});
    }
    V shape = b.constant_ints({0, 0, heads, width});  // the first two as they are
    return b.transpose(b.call("Reshape", {v, shape}, {{"allowzero", int64_t(0)}}), {0, 2, 1, 3});
  }
  V like(V v, V shape) { return to_input_layout(b, v, shape); }
  // key heads repeated for their group of query heads
  V repeated(V v, int64_t width) {
    int64_t group = s.heads / s.kv_heads;
    if (group == 1) return v;
    V wide = b.call("Expand", {b.unsqueeze(v, {2}), b.constant_ints({1, 1, group, 1, 1})});
    return b.call("Reshape", {wide, open ? b.constant_ints({0, s.heads, -1, width})
                                         : b.constant_ints({s.batch, s.heads, s.keys, width})});
  }
  V summed(V v, int64_t width) {
    int64_t group = s.heads / s.kv_heads;
    if (group == 1) return v;
    V split =
        b.call("Reshape", {v, open ? b.constant_ints({0, s.kv_heads, group, -1, width})
                                   : b.constant_ints({s.batch, s.kv_heads, group, s.keys, width})});
    return b.reduce_sum(split, {2}, false);
  }
  V turned(V v) { return b.transpose(v, {0, 1, 3, 2}); }
};

// Constant part of the bias: causal frontier and window.
Tensor allowed_table(const AttentionShape& s) {
  Tensor t(DType::kBool, {s.queries, s.keys});
  for (int64_t i = 0; i < s.queries; ++i)
    for (int64_t j = 0; j < s.keys; ++j) {
      int64_t at = i + s.past;
      t.as<bool>()[i * s.keys + j] = (!s.causal || j <= at) && (s.left < 0 || at - j <= s.left) &&
                                     (s.right < 0 || j - at <= s.right);
    }
  return t;
}

// The same with the number of valid keys per batch item known only at run time: [batch, 1, queries,
// keys].
ValueId allowed_by_lengths(GradBuilder& b, const AttentionShape& s, ValueId lengths) {
  ValueId n = b.call("Reshape", {lengths, b.constant_ints({s.batch, 1, 1, 1})});
  // distance from query i to key j when all queries are the last ones
  auto table = [&](int64_t shift, bool only_key) {
    Tensor t(DType::kInt64, {s.queries, s.keys});
    for (int64_t i = 0; i < s.queries; ++i)
      for (int64_t j = 0; j < s.keys; ++j)
        t.as<int64_t>()[i * s.keys + j] = only_key ? j : j - i + s.queries + shift;
    return b.tensor(t);
  };
  ValueId ok = b.call("Greater", {n, table(0, true)});
  auto both = [&](ValueId v) { ok = b.call("And", {ok, v}); };
  auto no_more = [&](ValueId x, ValueId y) { return b.call("Not", {b.call("Greater", {x, y})}); };
  if (s.causal) both(no_more(table(0, false), n));
  if (s.left >= 0) both(no_more(n, table(s.left, false)));
  if (s.right >= 0) both(no_more(table(-s.right, false), n));
  return ok;
}

// Either of them by the sizes of q and k, [batch, heads, rows, width], at run time.
ValueId allowed_at_run_time(GradBuilder& b, const AttentionShape& s, ValueId lengths, ValueId q,
                            ValueId k) {
  auto size = [&](ValueId v) { return b.call("Gather", {b.shape_of(v), b.constant_int(2)}); };
  auto count = [&](ValueId n, int64_t axis) {
    return b.unsqueeze(b.call("Range", {b.constant_int(0), n, b.constant_int(1)}), {axis});
  };
  ValueId key = count(size(k), 0), ok = kNone, query = count(size(q), 1), first = kNone;
  auto both = [&](ValueId v) { ok = ok == kNone ? v : b.call("And", {ok, v}); };
  auto no_more = [&](ValueId x, ValueId y) { return b.call("Not", {b.call("Greater", {x, y})}); };
  if (lengths == kNone) {
    first = b.constant_int(s.past);  // where the first query stands
  } else {
    ValueId n = b.call("Reshape", {lengths, b.constant_ints({-1, 1, 1, 1})});
    both(b.call("Greater", {n, key}));
    first = b.sub(n, size(q));
  }
  ValueId at = b.add(query, first);
  if (s.causal) both(no_more(key, at));
  if (s.left >= 0) both(no_more(b.sub(at, key), b.constant_int(s.left)));
  if (s.right >= 0) both(no_more(b.sub(key, at), b.constant_int(s.right)));
  return ok;
}

// What is added to the scores: the mask, and -infinity where no key may be seen; kNone: nothing.
ValueId bias_of(GradBuilder& b, const AttentionShape& s, const AttentionValues& x, ValueId q,
                ValueId k) {
  DType type = b.dtype(x.q);
  ValueId zero = b.scalar(0, type), no = b.scalar(-INFINITY, type), bias = kNone;
  if (x.mask != kNone) {
    bias = s.mask_is_bool ? b.call("Where", {x.mask, zero, no}) : x.mask;
    int64_t short_by = s.keys - s.mask_keys, rank = b.need_rank(x.mask);
    if (short_by > 0) {
      std::vector<int64_t> pads(size_t(2 * rank), 0);
      pads.back() = short_by;
      bias = b.call("Pad", {bias, b.constant_ints(pads), no});
    }
  }
  bool lengths = x.lengths != kNone;
  if (lengths || s.causal || s.left >= 0 || s.right >= 0) {
    ValueId allowed = x.open    ? allowed_at_run_time(b, s, x.lengths, q, k)
                      : lengths ? allowed_by_lengths(b, s, x.lengths)
                                : b.tensor(allowed_table(s));
    ValueId table = b.call("Where", {allowed, zero, no});
    bias = bias == kNone ? table : b.add(bias, table);
  }
  return bias;
}

}  // namespace

ValueId to_input_layout(GradBuilder& b, ValueId present, ValueId like) {
  if (b.need_rank(like) == 4) return present;
  return b.reshape_like(b.transpose(present, {0, 2, 1, 3}), like);
}

std::vector<ValueId> attention_gradient(GradBuilder& b, const AttentionShape& s,
                                        const AttentionValues& a) {
  using V = ValueId;
  Lower l{b, s, a.open};
  V q = l.heads_of(a.q, s.heads, s.queries, s.width, a.q),
    k = l.repeated(l.heads_of(a.k, s.kv_heads, s.keys, s.width, a.k), s.width),
    v = l.repeated(l.heads_of(a.v, s.kv_heads, s.keys, s.value_width, a.v), s.value_width);
  DType type = b.dtype(a.q);
  V scale = b.scalar(s.scale, type), zero = b.scalar(0, type), cap = kNone;
  V x = b.mul(b.call("MatMul", {q, l.turned(k)}), scale), tanh = kNone;
  if (s.softcap > 0) {
    cap = b.scalar(s.softcap, type);
    tanh = b.call("Tanh", {b.div(x, cap)});
    x = b.mul(tanh, cap);
  }
  V bias = bias_of(b, s, a, q, k), seen = kNone;
  if (bias != kNone) {
    // a row without any key has probability zero everywhere; it must not meet its infinities
    V most = b.opset() >= 18 ? b.call("ReduceMax", {bias, b.constant_ints({-1})})
                             : b.call("ReduceMax", {bias}, {{"axes", std::vector<int64_t>{-1}}});
    seen = b.call("Greater", {most, b.scalar(-INFINITY, type)});
    x = b.add(x, b.call("Where", {seen, bias, zero}));
  }
  V p = b.call("Softmax", {x}, {{"axis", int64_t(-1)}});
  if (seen != kNone) p = b.call("Where", {seen, p, zero});
  V dp = kNone,
    dy = a.dy == kNone ? kNone : l.heads_of(a.dy, s.heads, s.queries, s.value_width, a.q);
  auto plus = [&](V sum, V more) { return sum == kNone ? more : b.add(sum, more); };
  if (dy != kNone) dp = b.call("MatMul", {dy, l.turned(v)});
  if (a.dscores != kNone && s.mode == 3) dp = plus(dp, a.dscores);
  V ds = kNone;
  if (dp != kNone) ds = b.mul(p, b.sub(dp, b.reduce_sum(b.mul(p, dp), {3}, true)));
  if (a.dscores != kNone && s.mode == 2) ds = plus(ds, a.dscores);
  std::vector<V> out(4, kNone);
  out[3] = ds == kNone ? b.zeros_like(x) : ds;
  if (a.dscores != kNone && s.mode == 1) ds = plus(ds, a.dscores);
  if (tanh != kNone && ds != kNone) ds = b.mul(ds, b.sub(b.scalar(1, type), b.mul(tanh, tanh)));
  if (a.dscores != kNone && s.mode == 0) ds = plus(ds, a.dscores);
  ds = b.mul(ds, scale);
  out[0] = l.like(b.call("MatMul", {ds, k}), a.q);
  out[1] = l.like(l.summed(b.call("MatMul", {l.turned(ds), q}), s.width), a.k);
  out[2] = dy == kNone ? b.zeros_like(a.v)
                       : l.like(l.summed(b.call("MatMul", {l.turned(p), dy}), s.value_width), a.v);
  return out;
}

}  // namespace onnxtrain::ops
