// StridedMatMul: a GEMM that reads permuted operands in place, writes a permuted result,
// and finishes it on the way (factor, bias, residual, activation, an activation's gradient). Made
// by the pass fuse_matmul after differentiation; never written to files.
//   inputs: A, B, bias [n]?, residual (as Y)?, saved (as Y)?    outputs: Y, pre-activation?
//   Y = permY( act( alpha * permA(A) permB(B) + bias + residual ) ) * grad'(saved)
#include "kernels/gemm/gemm.hpp"
#include "ops/linalg/matmul_packed.hpp"
#include "ops/linalg/matmul_shape.hpp"

namespace onnxtrain::ops {

namespace {

enum { kA, kB, kBias, kResidual, kSaved };

// A tensor as the GEMM sees it.
struct View {
  Shape dims, strides;
  View(const Shape& shape, std::vector<int64_t> perm) {
    Shape s(shape.size());
    int64_t step = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      s[d] = step;
      step *= shape[d];
    }
    if (perm.empty())
      for (size_t d = 0; d < shape.size(); ++d) perm.push_back(int64_t(d));
    for (int64_t d : perm) {
      dims.push_back(shape[size_t(d)]);
      strides.push_back(s[size_t(d)]);
    }
  }
  size_t rank() const { return dims.size(); }
};

void check_perm(const Node& n, const char* key, size_t rank) {
  std::vector<int64_t> p = n.ints(key);
  if (p.empty()) return;
  std::vector<char> seen(rank, 0);
  bool right = p.size() == rank;
  for (int64_t d : p) {
    right = right && d >= 0 && size_t(d) < rank && !seen[size_t(d)];
    if (right) seen[size_t(d)] = 1;
  }
  if (!right) model_error("OT1130", cat(key, " of StridedMatMul is no permutation of its operand"));
}

Shape plain_result(const Node& n, const Shape& a, const Shape& b) {
  if (a.size() < 2 || b.size() < 2)
    model_error("OT1132", "the operands of StridedMatMul need two dimensions or more");
  check_perm(n, "permA", a.size());
  check_perm(n, "permB", b.size());
  return matmul_shape_of(View(a, n.ints("permA")).dims, View(b, n.ints("permB")).dims);
}

void shape(ShapeCtx& c) {
  const Node& n = c.node();
  for (int k = 0; k < c.inputs(); ++k)
    if (c.has(k) && c.dtype(k) != DType::kFloat)
      model_error("OT1103", "StridedMatMul is only for float");
  Shape r = plain_result(n, c.shape(kA), c.shape(kB));
  check_perm(n, "permY", r.size());
  Shape y = View(r, n.ints("permY")).dims;
  if (c.has(kBias) && c.shape(kBias) != Shape{r.back()})
    model_error("OT1133", "the bias of StridedMatMul has another length than its rows");
  for (int k : {kResidual, kSaved})
    if (c.has(k) && c.shape(k) != y)
      model_error("OT1133",
                  cat("input ", k, " of StridedMatMul has another shape than its result"));
  c.set(0, DType::kFloat, y);
  if (c.outputs() > 1) c.set(1, DType::kFloat, y);
}

simd::Activation activation(const Node& n, const char* key) {
  using A = simd::Activation;
  const std::pair<const char*, A> names[] = {
      {"", A::kNone},           {"Relu", A::kRelu}, {"Gelu", A::kGelu}, {"GeluTanh", A::kGeluTanh},
      {"Sigmoid", A::kSigmoid}, {"Tanh", A::kTanh}, {"Silu", A::kSilu}};
  std::string s = n.s(key, "");
  for (const auto& [name, a] : names)
    if (s == name) return a;
  model_error("OT1134", cat(key, " of StridedMatMul is '", s, "'"));
}

// The strides of the result before permY: where element (batch..., i, j) goes.
Shape result_strides(const Shape& y, const std::vector<int64_t>& perm) {
  Shape own = View(y, {}).strides, s(y.size());
  for (size_t d = 0; d < y.size(); ++d) s[perm.empty() ? d : size_t(perm[d])] = own[d];
  return s;
}

// Offsets of all items of a batch; an operand of lower rank or with dimensions of 1 repeats.
CountedVector<int64_t> offsets(const Shape& batch, const Shape& dims, const Shape& strides) {
  int64_t n = num_elements(batch);
  CountedVector<int64_t> at(static_cast<size_t>(n), 0);
  const size_t lead = dims.size() - 2;
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i;
    for (size_t d = batch.size(); d-- > 0;) {
      int64_t index = rest % batch[d];
      rest /= batch[d];
      if (d + lead < batch.size()) continue;
      size_t own = d + lead - batch.size();
      if (dims[own] != 1) at[size_t(i)] += index * strides[own];
    }
  }
  return at;
}

// Can the dimensions before the last one be walked with one stride?
bool one_stride(const Shape& dims, const Shape& strides) {
  for (size_t d = 0; d + 2 < dims.size(); ++d)
    if (dims[d] != 1 && strides[d] != strides[d + 1] * dims[d + 1]) return false;
  return true;
}

struct Layout {
  simd::GemmDesc d;
  CountedVector<int64_t> at_a, at_b, at_c;
};

// "" when it could be described.
std::string describe(const Node& n, const Shape& sa, const Shape& sb, const Shape& y, Layout& l) {
  View a(sa, n.ints("permA")), b(sb, n.ints("permB"));
  Shape r = matmul_shape_of(a.dims, b.dims), rs = result_strides(y, n.ints("permY"));
  simd::GemmDesc& d = l.d;
  d.m = r[r.size() - 2];
  d.n = r.back();
  d.k = a.dims.back();
  auto matrix = [](const View& v, bool& trans, int64_t& ld) {
    int64_t rows = v.dims[v.rank() - 2], cols = v.dims.back();
    int64_t by_row = v.strides[v.rank() - 2], by_col = v.strides.back();
    if (by_col == 1 || cols == 1) {
      trans = false;
      ld = rows == 1 ? std::max<int64_t>(cols, by_row) : by_row;
      return cols == 1 || by_row >= cols || rows == 1;
    }
    trans = true;
    ld = by_col;
    return by_row == 1 || rows == 1;
  };
  if (!matrix(a, d.trans_a, d.lda) || !matrix(b, d.trans_b, d.ldb))
    return "no dimension of an operand is contiguous";
  if (rs.back() != 1 && d.n != 1) return "the rows of the result are not contiguous";
  d.ldc = rs[rs.size() - 2];
  Shape batch(r.begin(), r.end() - 2);
  int64_t items = num_elements(batch), b_items = 1, a_items = 1;
  for (size_t k = 0; k + 2 < b.rank(); ++k) b_items *= b.dims[k];
  for (size_t k = 0; k + 2 < a.rank(); ++k) a_items *= a.dims[k];
  // one matrix on the right for all: the batch is just more rows
  if (items > 1 && b_items == 1 && a_items == items && !d.trans_a &&
      one_stride(a.dims, a.strides) && one_stride(r, rs)) {
    d.m *= items;
    items = 1;
  }
  d.batch = items;
  if (items != 1) {
    l.at_a = offsets(batch, a.dims, a.strides);
    l.at_b = offsets(batch, b.dims, b.strides);
    l.at_c = offsets(batch, r, rs);
    d.offsets_a = l.at_a.data();
    d.offsets_b = l.at_b.data();
    d.offsets_c = l.at_c.data();
  }
  return {};
}

std::string refuses(const Prepare& p) {
  if (p.out(0).size() == 0) return {};
  Layout l;
  return describe(p.node(), p.in(kA).shape, p.in(kB).shape, p.out(0).shape, l);
}

Kernel make(Prepare& p) {
  if (p.out(0).size() == 0) return [](const Run&) {};
  auto l = std::make_shared<Layout>();
  describe(p.node(), p.in(kA).shape, p.in(kB).shape, p.out(0).shape, *l);
  simd::GemmDesc& d = l->d;
  d.alpha = p.node().f("alpha", 1);
  d.act = activation(p.node(), "act");
  d.grad = activation(p.node(), "grad");
  if (p.has(kBias)) d.bias = simd::BiasAxis::kColumn;
  d.residual = p.has(kResidual);
  d.store_pre = p.wants(1);
  PackedPlan gemm = plan_gemm(p, d, kB);
  const int inputs = p.inputs();
  const bool pre = d.store_pre;
  return [l, gemm, inputs, pre](const Run& r) {
    auto in = [&](int k) { return k < inputs ? r.in<float>(k) : nullptr; };
    gemm.plan.run(*r.pool, {.a = in(kA),
                            .b = gemm.b(in(kB)),
                            .c = r.out<float>(0),
                            .bias = in(kBias),
                            .residual = in(kResidual),
                            .pre = pre ? r.out<float>(1) : nullptr,
                            .saved = in(kSaved),
                            .workspace = r.workspace});
  };
}

Cost cost(const Prepare& p) {
  double bytes = 0, k = double(View(p.in(kA).shape, p.node().ints("permA")).dims.back());
  for (int i = 0; i < p.inputs(); ++i)
    if (p.has(i)) bytes += 4.0 * double(p.in(i).size());
  for (int o = 0; o < p.outputs(); ++o)
    if (p.wants(o)) bytes += 4.0 * double(p.out(o).size());
  return {2.0 * k * double(p.out(0).size()), bytes};
}

}  // namespace

void register_strided_matmul(OpTable& t) {
  t.add({.name = "StridedMatMul",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"simd", refuses, make}},
         .no_grad = "it is made after differentiation",
         .cost = cost});
}

}  // namespace onnxtrain::ops
