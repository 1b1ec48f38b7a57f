// Shapes and batches of GEMMs.
#include "ops/linalg/matmul_shape.hpp"

namespace onnxtrain::ops {

namespace {

struct Parts {
  Shape a, b, batch;  // a, b at least rank 2
  bool a_vector, b_vector;
};

Parts parts_of(const Shape& a, const Shape& b) {
  if (a.empty() || b.empty())
    model_error("OT1132", cat("a matrix multiplication of ", to_string(a), " and ", to_string(b),
                              ": scalars are not allowed"));
  Parts p{a, b, {}, a.size() == 1, b.size() == 1};
  if (p.a_vector) p.a.insert(p.a.begin(), 1);
  if (p.b_vector) p.b.push_back(1);
  p.batch = broadcast(Shape(p.a.begin(), p.a.end() - 2), Shape(p.b.begin(), p.b.end() - 2));
  return p;
}

// offsets of the items of one operand
CountedVector<int64_t> offsets(const Shape& s, const Shape& batch) {
  Shape lead(s.begin(), s.end() - 2);
  int64_t size = s[s.size() - 2] * s[s.size() - 1];
  Shape strides = broadcast_strides(lead, batch);
  int64_t n = num_elements(batch);
  CountedVector<int64_t> at(static_cast<size_t>(n), 0);
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, o = 0;
    for (size_t d = batch.size(); d-- > 0;) {
      o += rest % batch[d] * strides[d];
      rest /= batch[d];
    }
    at[size_t(i)] = o * size;
  }
  return at;
}

}  // namespace

MatMulLayout::MatMulLayout(const Shape& sa, const Shape& sb, bool ta, bool tb) {
  Parts p = parts_of(sa, sb);
  trans_a = ta && !p.a_vector;
  trans_b = tb && !p.b_vector;
  int64_t a0 = p.a[p.a.size() - 2], a1 = p.a.back(), b0 = p.b[p.b.size() - 2], b1 = p.b.back();
  m = trans_a ? a1 : a0;
  k = trans_a ? a0 : a1;
  n = trans_b ? b0 : b1;
  int64_t kb = trans_b ? b1 : b0;
  if (k != kb)
    model_error("OT1132", cat("a matrix multiplication of ", to_string(sa), " and ", to_string(sb),
                              ": ", k, " and ", kb, " do not match"));
  out = p.batch;
  if (!p.a_vector) out.push_back(m);
  if (!p.b_vector) out.push_back(n);
  num_elements(out);
  // one matrix on the right for all: the batch is just more rows
  bool shared_b = num_elements(Shape(p.b.begin(), p.b.end() - 2)) == 1;
  batch = num_elements(p.batch);
  if (shared_b && !trans_a && num_elements(Shape(p.a.begin(), p.a.end() - 2)) == batch) {
    m *= batch;
    batch = 1;
    at_a = at_b = {0};
  } else {
    at_a = offsets(p.a, p.batch);
    at_b = offsets(p.b, p.batch);
  }
}

Shape matmul_shape_of(const Shape& a, const Shape& b, bool ta, bool tb) {
  return MatMulLayout(a, b, ta, tb).out;
}

}  // namespace onnxtrain::ops
