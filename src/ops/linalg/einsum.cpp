// Einsum. Two float operands become one batched GEMM; everything else is a plain loop.
#include <algorithm>
#include <map>
#include <memory>

#include "kernels/gemm/gemm.hpp"
#include "op/grad_builder.hpp"
#include "op/needs_shape.hpp"
#include "ops/common/cost.hpp"
#include "ops/common/strided_copy_kernel.hpp"
#include "ops/linalg/einsum_equation.hpp"

namespace onnxtrain::ops {

namespace {

EinsumTerms terms_of(const Node& n) { return EinsumTerms(n.s("equation", ""), n.inputs.size()); }

EinsumPlan plan_of(const Prepare& p) {
  std::vector<Shape> shapes;
  for (int k = 0; k < p.inputs(); ++k) shapes.push_back(p.in(k).shape);
  return EinsumPlan(terms_of(p.node()), shapes);
}

void shape(ShapeCtx& c) {
  std::vector<Shape> shapes;
  for (int k = 0; k < c.inputs(); ++k) {
    if (c.dtype(k) != c.dtype(0))
      model_error("OT1103", "the operands of Einsum have different types");
    shapes.push_back(c.shape(k));
  }
  c.set(0, c.dtype(0), EinsumPlan(terms_of(c.node()), shapes).out_shape);
}

Kernel make_ref(Prepare& p) {
  EinsumPlan e = plan_of(p);
  int64_t n = p.out(0).size(), operands = p.inputs(), inner = 1;
  for (size_t d = e.kept; d < e.dims.size(); ++d) inner *= e.dims[d];
  return dispatch<float, double, Half, BFloat16, int32_t, int64_t, uint32_t, uint64_t, int8_t,
                  uint8_t, int16_t, uint16_t>(p.in(0).dtype, "Einsum", [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    using A = typename std::conditional_t<std::is_integral_v<C>, std::make_unsigned<C>,
                                          std::type_identity<C>>::type;
    return [=](const Run& r) {
      T* y = r.out<T>(0);
      parallel_for(*r.pool, n, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, inner)),
                   [&](int64_t b, int64_t end) {
                     std::vector<int64_t> start(static_cast<size_t>(operands)), at(start.size()),
                         index(e.dims.size(), 0);
                     for (int64_t o = b; o < end; ++o) {
                       std::fill(start.begin(), start.end(), 0);
                       int64_t rest = o;
                       for (size_t d = e.kept; d-- > 0;) {
                         for (size_t k = 0; k < start.size(); ++k)
                           start[k] += rest % e.dims[d] * e.strides[k][d];
                         rest /= e.dims[d];
                       }
                       at = start;
                       A sum = 0;
                       for (int64_t i = 0; i < inner; ++i) {
                         A v = 1;
                         for (size_t k = 0; k < at.size(); ++k)
                           v = A(v * A(C(r.in<T>(int(k))[at[k]])));
                         sum = A(sum + v);
                         for (size_t d = e.dims.size(); d-- > e.kept;) {
                           for (size_t k = 0; k < at.size(); ++k) at[k] += e.strides[k][d];
                           if (++index[d] < e.dims[d]) break;
                           for (size_t k = 0; k < at.size(); ++k)
                             at[k] -= e.strides[k][d] * e.dims[d];
                           index[d] = 0;
                         }
                       }
                       y[o] = T(C(sum));
                     }
                   });
    };
  });
}

// ------------------------------------------------------------- as a GEMM
struct Split {
  std::vector<int> batch, m, n, k;
};

// Labels by where they occur; false when one is not of the four kinds.
bool split(const EinsumPlan& e, const Shape& a, const Shape& b, Split* s) {
  auto has = [](const std::vector<int>& v, int l) {
    return std::find(v.begin(), v.end(), l) != v.end();
  };
  for (int k : {0, 1}) {
    const Shape& x = k == 0 ? a : b;
    for (size_t d = 0; d < x.size(); ++d) {
      if (x[d] != e.dims[size_t(e.inputs[size_t(k)][d])]) return false;  // broadcast
      if (std::count(e.inputs[size_t(k)].begin(), e.inputs[size_t(k)].end(),
                     e.inputs[size_t(k)][d]) > 1)
        return false;
    }
  }
  for (int l = 0; l < int(e.dims.size()); ++l) {
    bool in_a = has(e.inputs[0], l), in_b = has(e.inputs[1], l), out = size_t(l) < e.kept;
    if (in_a && in_b)
      (out ? s->batch : s->k).push_back(l);
    else if (!out)
      return false;  // a sum over one operand alone
    else
      (in_a ? s->m : s->n).push_back(l);
  }
  return true;
}

std::string refuses(const Prepare& p) {
  if (p.in(0).dtype != DType::kFloat) return "only for float";
  if (p.inputs() != 2) return "only for two operands";
  EinsumPlan e = plan_of(p);
  Split s;
  if (!split(e, p.in(0).shape, p.in(1).shape, &s)) return "not a matrix multiplication";
  return p.out(0).size() == 0 ? "empty" : "";
}

int64_t size_of(const EinsumPlan& e, const std::vector<int>& labels) {
  int64_t n = 1;
  for (int l : labels) n *= e.dims[size_t(l)];
  return n;
}

// Strides for reading or writing memory whose dimensions are `have` (sizes by label) as `want`.
Shape strides_for(const EinsumPlan& e, const std::vector<int>& have, const std::vector<int>& want) {
  std::map<int, int64_t> stride;
  int64_t at = 1;
  for (size_t d = have.size(); d-- > 0;) {
    stride[have[d]] = at;
    at *= e.dims[size_t(have[d])];
  }
  Shape s;
  for (int l : want) s.push_back(stride[l]);
  return s;
}

std::vector<int> joined(std::initializer_list<std::vector<int>> parts) {
  std::vector<int> v;
  for (const auto& p : parts) v.insert(v.end(), p.begin(), p.end());
  return v;
}

// A copy that brings `have` into the order `want`; null when it is there already.
std::shared_ptr<StridedCopy> reorder(const EinsumPlan& e, const std::vector<int>& have,
                                     const std::vector<int>& want) {
  if (have == want) return nullptr;
  Shape dims;
  for (int l : want) dims.push_back(e.dims[size_t(l)]);
  return std::make_shared<StridedCopy>(DType::kFloat, dims, strides_for(e, have, want),
                                       strides_of(dims));
}

Kernel make_simd(Prepare& p) {
  EinsumPlan e = plan_of(p);
  Split s;
  split(e, p.in(0).shape, p.in(1).shape, &s);
  simd::GemmDesc d;
  d.batch = size_of(e, s.batch);
  d.m = size_of(e, s.m);
  d.n = size_of(e, s.n);
  d.k = size_of(e, s.k);
  // either order of the inner two groups suits the GEMM; copy only when neither is there
  d.trans_a = e.inputs[0] == joined({s.batch, s.k, s.m}) && !s.k.empty();
  d.trans_b = e.inputs[1] == joined({s.batch, s.n, s.k});
  auto copy_a = d.trans_a ? nullptr : reorder(e, e.inputs[0], joined({s.batch, s.m, s.k}));
  auto copy_b = d.trans_b ? nullptr : reorder(e, e.inputs[1], joined({s.batch, s.k, s.n}));
  auto copy_y = reorder(e, joined({s.batch, s.m, s.n}), e.output);
  d.stride_a = d.m * d.k;
  d.stride_b = d.k * d.n;
  d.stride_c = d.m * d.n;
  auto plan = simd::GemmPlan::make(d);
  auto floats = [](int64_t n) { return size_t((n + 15) / 16 * 16); };
  size_t a = copy_a ? floats(d.batch * d.stride_a) : 0,
         b = copy_b ? floats(d.batch * d.stride_b) : 0;
  size_t y = copy_y ? floats(d.batch * d.stride_c) : 0;
  p.workspace = (a + b + y) * 4 + plan.workspace_bytes();
  return [=](const Run& r) {
    float *wa = static_cast<float*>(r.workspace), *wb = wa + a, *wy = wb + b;
    if (copy_a) copy_a->run(*r.pool, r.inputs[0], wa);
    if (copy_b) copy_b->run(*r.pool, r.inputs[1], wb);
    plan.run(*r.pool, {.a = copy_a ? wa : r.in<float>(0),
                       .b = copy_b ? wb : r.in<float>(1),
                       .c = copy_y ? wy : r.out<float>(0),
                       .workspace = wy + y});
    if (copy_y) copy_y->run(*r.pool, wy, r.outputs[0]);
  };
}

// ------------------------------------------------------------- gradient
// A diagonal in the operand: every further occurrence of a label gets a new letter, tied to the
// first by an identity matrix.
std::string separated(GradBuilder& b, ValueId x, std::string term, std::string used,
                      std::vector<std::string>& terms, std::vector<ValueId>& values) {
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.' || term.find(term[i]) == i) continue;
    char fresh = 'A';
    while (used.find(fresh) != std::string::npos) fresh = fresh == 'Z' ? 'a' : char(fresh + 1);
    used += fresh;
    if (!b.shape_known(x))
      needs_shape("OT1205", "the gradient of a diagonal in Einsum needs the operand's shape");
    int64_t rank = int64_t(b.shape(x).size()), letters = 0, before = 0;
    for (size_t j = 0; j < term.size(); ++j) {
      letters += term[j] != '.';
      before += j < i && term[j] != '.';
    }
    bool after_dots = term.find('.') != std::string::npos && term.find('.') < i;
    int64_t n = b.shape(x)[size_t(before + (after_dots ? rank - letters : 0))];
    Tensor eye = dispatch<float, double, Half, BFloat16>(b.dtype(x), "Einsum", [&]<class T>() {
      std::vector<T> v(size_t(n * n), T(compute_t<T>(0)));
      for (int64_t k = 0; k < n; ++k) v[size_t(k * n + k)] = T(compute_t<T>(1));
      return Tensor::vector<T>(v).reshaped({n, n});
    });
    terms.push_back(std::string{term[i], fresh});
    values.push_back(b.tensor(eye));
    term[i] = fresh;
  }
  return term;
}

std::vector<ValueId> rule(GradBuilder& b) {
  EinsumTerms t = terms_of(b.node());
  std::string used;
  for (const auto& term : t.inputs) used += term;
  std::vector<ValueId> g(t.inputs.size(), kNone);
  for (size_t k = 0; k < t.inputs.size(); ++k) {
    if (!b.wants(int(k))) continue;
    ValueId x = b.x(int(k));
    std::vector<std::string> terms = {t.output};
    std::vector<ValueId> values = {b.dy()};
    std::string seen = t.output;
    for (size_t j = 0; j < t.inputs.size(); ++j) {
      if (j == k) continue;
      terms.push_back(t.inputs[j]);
      values.push_back(b.x(int(j)));
      seen += t.inputs[j];
    }
    bool alone = false;  // a label that only this operand has: it was summed over
    for (char c : t.inputs[k]) alone |= seen.find(c) == std::string::npos;
    if (alone) {
      terms.push_back(t.inputs[k]);
      values.push_back(b.ones_like(x));
    }
    std::string target = separated(b, x, t.inputs[k], used, terms, values);
    std::string equation;
    for (size_t j = 0; j < terms.size(); ++j) equation += (j ? "," : "") + terms[j];
    // the dots of an operand without them are summed away
    bool dots = equation.find('.') != std::string::npos,
         keeps = target.find('.') != std::string::npos;
    ValueId d = b.call("Einsum", values,
                       {{"equation", equation + "->" + (dots && !keeps ? "..." : "") + target}});
    // a label may be 1 here and longer there, and the other way round
    if (!b.shape_known(d) || !b.shape_known(x) || b.shape(d) != b.shape(x))
      d = b.add(d, b.zeros_like(x));
    g[k] = b.sum_to_shape_of(d, x);
  }
  return g;
}

// One product per operand for every combination of labels.
Cost cost(const Prepare& p) {
  std::vector<Shape> shapes;
  for (int i = 0; i < p.inputs(); ++i) shapes.push_back(p.in(i).shape);
  EinsumPlan plan(EinsumTerms(p.node().s("equation", ""), shapes.size()), shapes);
  double flops = double(shapes.size());
  for (int64_t d : plan.dims) flops *= double(d);
  return cost_of(p, flops);
}

}  // namespace

void register_einsum(OpTable& t) {
  t.add({.name = "Einsum",
         .shape = shape,
         .impls = {{"simd", refuses, make_simd}, {"ref", nullptr, make_ref}},
         .grad = rule,
         .cost = cost});
}

}  // namespace onnxtrain::ops
