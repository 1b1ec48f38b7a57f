// RotaryEmbedding: rotates pairs of features by angles that depend on the position. Its gradient is
// the rotation by the opposite angle.
#include <algorithm>

#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

namespace {

struct Form {
  int64_t batch, heads, length, head,
      rotated;  // rotated: leading features of a head that are rotated
  bool packed;  // [batch, length, heads * head] instead of [batch, heads, length, head]
  bool ids, interleaved;
  int64_t positions;  // rows of the caches when ids choose them
};

Form form_of(const Node& n, const TensorType& x, const TensorType& cos, const TensorType& sin,
             const TensorType* ids) {
  if (x.dtype != DType::kDouble && x.dtype != DType::kFloat && x.dtype != DType::kFloat16 &&
      x.dtype != DType::kBFloat16)
    unsupported_dtype(x.dtype, "RotaryEmbedding");
  auto bad = [&](const std::string& what) {
    model_error("OT1136", cat("RotaryEmbedding: ", what));
  };
  Form f{};
  const Shape& s = x.shape;
  f.packed = s.size() == 3;
  if (s.size() != 3 && s.size() != 4)
    bad(cat("input of shape ", to_string(s), ", expected three or four dimensions"));
  f.batch = s[0];
  if (f.packed) {
    f.length = s[1];
    f.heads = n.i("num_heads", 0);
    if (f.heads < 1 || s[2] % f.heads)
      bad(cat("num_heads is ", f.heads, " for ", s[2], " features"));
    f.head = s[2] / f.heads;
  } else {
    f.heads = s[1];
    f.length = s[2];
    f.head = s[3];
  }
  f.interleaved = n.i("interleaved", 0) != 0;
  f.rotated = n.i("rotary_embedding_dim", 0);
  if (f.rotated == 0) f.rotated = f.head;
  if (f.rotated < 0 || f.rotated > f.head || f.rotated % 2)
    bad(cat(f.rotated, " of ", f.head, " features cannot be rotated"));
  f.ids = ids != nullptr;
  Shape want = {f.batch, f.length, f.rotated / 2};
  if (f.ids) {
    if (ids->dtype != DType::kInt64)
      unsupported_dtype(ids->dtype, "the positions of RotaryEmbedding");
    if (ids->shape != Shape{f.batch, f.length})
      bad(cat("position_ids of shape ", to_string(ids->shape)));
    if (cos.shape.size() != 2) bad(cat("cos_cache of shape ", to_string(cos.shape)));
    f.positions = cos.shape[0];
    want = {f.positions, f.rotated / 2};
  }
  if (cos.shape != want || sin.shape != want)
    bad(cat("caches of shapes ", to_string(cos.shape), " and ", to_string(sin.shape), ", expected ",
            to_string(want)));
  if (cos.dtype != x.dtype || sin.dtype != x.dtype)
    bad("the caches have another type than the input");
  return f;
}

void shape(ShapeCtx& c) {
  form_of(c.node(), c.in(0), c.in(1), c.in(2), c.has(3) ? &c.in(3) : nullptr);
  c.set(0, c.dtype(0), c.shape(0));
}

template <class T>
void rotate_row(const Form& f, const T* x, const T* cos, const T* sin, T* y) {
  int64_t half = f.rotated / 2;
  int64_t step = f.interleaved ? 2 : 1, apart = f.interleaved ? 1 : half;
  for (int64_t k = 0; k < half; ++k) {
    using C = compute_t<T>;
    C c = C(cos[k]), s = C(sin[k]), a = C(x[k * step]), b = C(x[k * step + apart]);
    y[k * step] = T(c * a - s * b);
    y[k * step + apart] = T(s * a + c * b);
  }
  std::copy(x + f.rotated, x + f.head, y + f.rotated);
}

Kernel make(Prepare& p) {
  Form f = form_of(p.node(), p.in(0), p.in(1), p.in(2), p.has(3) ? &p.in(3) : nullptr);
  int64_t rows = f.batch * f.heads * f.length, grain = std::max<int64_t>(1, 8192 / (f.head + 1));
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "RotaryEmbedding", [&]<class T>() -> Kernel {
        return [=](const Run& r) {
          const int64_t* ids = f.ids ? r.in<int64_t>(3) : nullptr;
          for (int64_t k = 0; ids && k < f.batch * f.length; ++k)
            if (ids[k] < 0 || ids[k] >= f.positions)
              data_error("OT2105", cat("position ", ids[k], " is outside the ", f.positions,
                                       " rows of the caches"));
          parallel_for(*r.pool, rows, grain, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {  // in memory order
              int64_t b, t;
              if (f.packed) {
                b = row / (f.length * f.heads);
                t = row / f.heads % f.length;
              } else {
                b = row / (f.heads * f.length);
                t = row % f.length;
              }
              int64_t at = (ids ? ids[b * f.length + t] : b * f.length + t) * (f.rotated / 2);
              rotate_row(f, r.in<T>(0) + row * f.head, r.in<T>(1) + at, r.in<T>(2) + at,
                         r.out<T>(0) + row * f.head);
            }
          });
        };
      });
}

// The same in standard operators.
ValueId composed(GradBuilder& b, ValueId x, ValueId cos, ValueId sin, ValueId ids) {
  const Node& n = b.node();
  int64_t rank = b.need_rank(b.x(0)), rotated = n.i("rotary_embedding_dim", 0);
  bool interleaved = n.i("interleaved", 0) != 0;
  ValueId t = rank == 4 ? b.transpose(x, {0, 2, 1, 3})
                        : b.call("Reshape", {x, b.constant_ints({0, 0, n.i("num_heads", 0), -1})});
  auto slice = [&](ValueId v, int64_t from, int64_t to, int64_t step) {
    return b.call("Slice", {v, b.constant_ints({from}), b.constant_ints({to}), b.constant_ints({3}),
                            b.constant_ints({step})});
  };
  ValueId rot = rotated ? slice(t, 0, rotated, 1) : t;
  if (ids != kNone) {
    cos = b.call("Gather", {cos, ids});
    sin = b.call("Gather", {sin, ids});
  }
  cos = b.unsqueeze(cos, {2});
  sin = b.unsqueeze(sin, {2});
  ValueId first, second;
  if (interleaved) {
    first = slice(rot, 0, INT64_MAX, 2);
    second = slice(rot, 1, INT64_MAX, 2);
  } else {
    GradBuilder::Attrs attrs = {{"axis", int64_t(3)}};
    if (b.opset() >= 18) attrs["num_outputs"] = int64_t(2);
    std::vector<ValueId> halves = b.call_n("Split", {rot}, 2, attrs);
    first = halves[0];
    second = halves[1];
  }
  ValueId real = b.sub(b.mul(cos, first), b.mul(sin, second)),
          imag = b.add(b.mul(sin, first), b.mul(cos, second));
  ValueId y;
  if (interleaved) {
    ValueId pairs =
        b.call("Concat", {b.unsqueeze(real, {4}), b.unsqueeze(imag, {4})}, {{"axis", int64_t(4)}});
    y = b.call("Reshape", {pairs, b.constant_ints({0, 0, 0, -1})});
  } else {
    y = b.call("Concat", {real, imag}, {{"axis", int64_t(3)}});
  }
  if (rotated) y = b.call("Concat", {y, slice(t, rotated, INT64_MAX, 1)}, {{"axis", int64_t(3)}});
  return rank == 4 ? b.transpose(y, {0, 2, 1, 3})
                   : b.call("Reshape", {y, b.constant_ints({0, 0, -1})});
}

std::vector<ValueId> lower(GradBuilder& b) {
  return {composed(b, b.x(0), b.x(1), b.x(2), b.has(3) ? b.x(3) : kNone)};
}

std::vector<ValueId> grad(GradBuilder& b) {
  std::vector<ValueId> out(size_t(b.inputs()), kNone);
  if (b.wants(1) || b.wants(2)) {
    // learned caches: through the composition, on copies, so that only this node is differentiated
    std::vector<ValueId> copies;
    for (int k = 0; k < 3; ++k) copies.push_back(b.call("Identity", {b.x(k)}));
    ValueId y = composed(b, copies[0], copies[1], copies[2], b.has(3) ? b.x(3) : kNone);
    std::vector<ValueId> grads = b.differentiate(b.graph(), {y}, {b.dy()}, copies);
    std::copy(grads.begin(), grads.end(), out.begin());
    return out;
  }
  std::vector<ValueId> in = {b.dy(), b.x(1), b.neg(b.x(2))};
  if (b.has(3)) in.push_back(b.x(3));
  out[0] = b.own("RotaryEmbedding", in, b.node().attrs);
  return out;
}

}  // namespace

void register_rotary_embedding(OpTable& t) {
  t.add({.name = "RotaryEmbedding",
         .since = 23,
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = grad});
  t.add({.name = "RotaryEmbedding",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = grad,
         .lower = lower});
}

}  // namespace onnxtrain::ops
