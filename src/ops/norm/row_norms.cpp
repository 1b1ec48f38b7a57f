// LayerNormalization, RMSNormalization, GroupNormalization, InstanceNormalization and their common
// gradient, RowNormGrad.
#include <cmath>

#include "kernels/norm/rows.hpp"
#include "kernels/reduce/reduce.hpp"
#include "ops/common/cost.hpp"
#include "ops/common/forward_outputs.hpp"
#include "ops/common/wide.hpp"
#include "ops/norm/row_norm_shape.hpp"

namespace onnxtrain::ops {

namespace {

using Grads = std::vector<ValueId>;

bool takes_bias(const std::string& kind) { return kind != "RMSNormalization"; }

void shape(ShapeCtx& c) {
  const std::string& kind = c.node().op;
  bool bias = takes_bias(kind) && c.has(2);
  if (!bias && kind != "RMSNormalization" && kind != "LayerNormalization")
    c.in(2);  // reports it missing
  row_norm(kind, c.node(), c.version(), c.shape(0), c.shape(1), bias ? &c.shape(2) : nullptr);
  c.set(0, c.dtype(0), c.shape(0));
  if (kind != "LayerNormalization") return;
  int64_t stash = c.node().i("stash_type", 1);
  if (stash != 1 && stash != int64_t(DType::kBFloat16) && stash != int64_t(DType::kDouble) &&
      stash != int64_t(DType::kFloat16))
    model_error("OT1134", cat("stash_type of LayerNormalization is ", stash));
  DType stat = DType(stash);
  c.set(1, stat, row_statistics_shape(c.node(), c.shape(0)));
  c.set(2, stat, row_statistics_shape(c.node(), c.shape(0)));
}

// RowNormGrad(dy, x, scale, dmean?, dinv?, mean?, inv?): the last two are the forward statistics,
// for kernels that want them. Attributes of the forward node plus kind and opset.
void grad_shape(ShapeCtx& c) {
  const Node& n = c.node();
  if (c.shape(0) != c.shape(1))
    model_error("OT1133", "RowNormGrad: dy and x have different shapes");
  RowNorm g = row_norm(n.s("kind", ""), n, int(n.i("opset", 1)), c.shape(1), c.shape(2), nullptr);
  for (int i : {3, 4, 5, 6})
    if (c.has(i) && c.in(i).size() != g.rows)
      model_error("OT1133", "RowNormGrad: statistics have another shape");
  c.set(0, c.dtype(1), c.shape(1));
  c.set(1, c.dtype(2), c.shape(2));
  c.set(2, c.dtype(2), c.shape(2));
}
// ------------------------------------------------------------- float rows with a parameter per
// column
simd::RowNorm simd_norm(const RowNorm& g) {
  simd::RowNorm r;
  r.rows = g.rows;
  r.n = g.n;
  r.epsilon = g.epsilon;
  r.rms = !g.centred;
  return r;
}

RowNorm forward_norm(const Prepare& p) {
  const std::string& kind = p.node().op;
  const Shape* bias = takes_bias(kind) && p.has(2) ? &p.in(2).shape : nullptr;
  return row_norm(kind, p.node(), p.version(), p.in(0).shape, p.in(1).shape, bias);
}
RowNorm backward_norm(const Prepare& p) {
  const Node& n = p.node();
  return row_norm(n.s("kind", ""), n, int(n.i("opset", 1)), p.in(1).shape, p.in(2).shape, nullptr);
}

Kernel make(Prepare& p) { return make_row_norm(p, forward_norm(p)); }
Kernel make_grad(Prepare& p) { return make_row_norm_grad(p, backward_norm(p)); }

std::string refuses_simd(const Prepare& p) {
  for (int i = 0; i < p.inputs(); ++i)
    if (p.has(i) && p.in(i).dtype != DType::kFloat) return "only for float";
  for (int o : {1, 2})
    if (p.wants(o) && p.out(o).dtype != DType::kFloat) return "only for float statistics";
  RowNorm g = forward_norm(p);
  if (!g.scale.columns() || (g.bias_size && !g.bias.columns()))
    return "not one parameter per column";
  return g.rows * g.n == 0 ? "empty" : "";
}

Kernel make_simd(Prepare& p) {
  RowNorm g = forward_norm(p);
  simd::RowNorm norm = simd_norm(g);
  bool bias = g.bias_size != 0, mean = p.wants(1), inv = p.wants(2);
  return [=](const Run& r) {
    simd::RowNorm n = norm;
    n.scale = r.in<float>(1);
    n.bias = bias ? r.in<float>(2) : nullptr;
    simd::row_norm(*r.pool, n, r.in<float>(0), r.out<float>(0), mean ? r.out<float>(1) : nullptr,
                   inv ? r.out<float>(2) : nullptr);
  };
}

std::string refuses_simd_grad(const Prepare& p) {
  if (p.in(1).dtype != DType::kFloat || p.in(2).dtype != DType::kFloat) return "only for float";
  if (p.has(3) || p.has(4)) return "the statistics have a gradient";
  if (!p.wants(0)) return "dx is not wanted";
  RowNorm g = backward_norm(p);
  if (!g.scale.columns()) return "not one parameter per column";
  if (g.centred &&
      !(p.has(5) && p.has(6) && p.in(5).dtype == DType::kFloat && p.in(6).dtype == DType::kFloat))
    return "without saved float statistics";
  return g.rows * g.n == 0 ? "empty" : "";
}

Kernel make_simd_grad(Prepare& p) {
  RowNorm g = backward_norm(p);
  simd::RowNorm norm = simd_norm(g);
  size_t rows = (size_t(g.rows) * 4 + 63) / 64 * 64;
  p.workspace = rows + simd::row_norm_grad_workspace(norm);
  bool want_scale = p.wants(1), want_bias = p.wants(2), rms = !g.centred;
  return [=](const Run& r) {
    simd::RowNorm n = norm;
    n.scale = r.in<float>(2);
    const float *x = r.in<float>(1), *mean = rms ? nullptr : r.in<float>(5),
                *inv = rms ? nullptr : r.in<float>(6);
    if (rms) {
      float* own = static_cast<float*>(r.workspace);
      parallel_for(*r.pool, n.rows, std::max<int64_t>(1, 16384 / n.n), [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          float squares = simd::reduce(simd::Reduce::kSumSquare, x + i * n.n, n.n);
          own[i] = 1.0f / std::sqrt(squares / float(n.n) + n.epsilon);
        }
      });
      inv = own;
    }
    simd::row_norm_grad(*r.pool, n, r.in<float>(0), x, mean, inv, r.out<float>(0),
                        want_scale ? r.out<float>(1) : nullptr,
                        want_bias ? r.out<float>(2) : nullptr,
                        static_cast<char*>(r.workspace) + rows);
  };
}

// ------------------------------------------------------------- gradient
Grads rule(GradBuilder& b) {
  const Node& n = b.node();
  std::vector<ValueId> in = {b.dy(), b.x(0), b.x(1), b.has_dy(1) ? b.dy(1) : kNone,
                             b.has_dy(2) ? b.dy(2) : kNone};
  bool plain = in[3] == kNone && in[4] == kNone;
  if (n.op == "LayerNormalization" && plain && b.shape_known(b.x(0)) &&
      b.dtype(b.x(0)) == DType::kFloat && n.i("stash_type", 1) == 1) {
    TypeInfo type = TypeInfo::tensor(DType::kFloat, row_statistics_shape(n, b.shape(b.x(0))));
    in.push_back(ensure_output(b, 1, type, "mean"));
    in.push_back(ensure_output(b, 2, type, "inv_std"));
  }
  while (in.back() == kNone) in.pop_back();
  GradBuilder::Attrs attrs{
      {"kind", n.op}, {"opset", int64_t(n.version)}, {"epsilon", n.f("epsilon", 1e-5f)}};
  if (n.has("axis")) attrs["axis"] = n.i("axis", -1);
  if (n.has("num_groups")) attrs["num_groups"] = n.i("num_groups", 0);
  Grads d = b.own_n("RowNormGrad", in, 3, attrs);
  Grads g(size_t(b.inputs()), kNone);
  g[0] = d[0];
  g[1] = d[1];
  if (!takes_bias(n.op) || !b.has(2) || !b.wants(2)) return g;
  bool alike = b.shape_known(b.x(1)) && b.shape_known(b.x(2)) &&
               b.shape(b.x(1)) == b.shape(b.x(2)) && b.dtype(b.x(1)) == b.dtype(b.x(2));
  if (n.op != "LayerNormalization" || alike)
    g[2] = d[2];
  else
    g[2] = b.cast_like(b.sum_to_shape_of(b.dy(), b.x(2)), b.x(2));
  return g;
}

// The data as [rows, n] or, for channels, [N, groups, C/groups, S]; parameters to match.
Grads lower(GradBuilder& b) {
  const Node& n = b.node();
  std::string kind = n.s("kind", "");
  ValueId x = b.x(1), w = b.x(2);
  bool channels = kind == "GroupNormalization" || kind == "InstanceNormalization";
  int64_t rank = b.need_rank(x);
  Expr ex = widened(Expr{b, x}), dy = widened(Expr{b, b.x(0)}),
       scale = widened(Expr{b, b.cast_like(w, x), b.dtype(x)});
  std::vector<int64_t> axes, over;  // normalised axes; axes that a parameter is summed over
  if (channels) {
    bool per_group = kind == "GroupNormalization" && n.i("opset", 1) < 21;
    int64_t groups = n.i("num_groups", -1);
    // [N, G, C/G, S]; one channel per group when instances are normalised
    bool instance = kind == "InstanceNormalization";
    auto part = [&](ValueId of, int64_t d) {
      return b.call("Slice",
                    {b.call("Shape", {of}), b.constant_ints({d}), b.constant_ints({d + 1})});
    };
    ValueId to;
    if (b.shape_known(x)) {
      Shape s = b.shape(x);
      int64_t g = instance ? s[1] : groups;
      to = b.constant_ints({s[0], g, s[1] / std::max<int64_t>(1, g), product(s, 2, s.size())});
    } else {
      ValueId g = instance ? part(x, 1) : b.constant_ints({groups});
      ValueId flat = b.call("Reshape", {x, b.constant_ints({0, 0, -1})});
      to = b.call("Concat", {part(x, 0), g, b.call("Div", {part(x, 1), g}), part(flat, 2)},
                  {{"axis", int64_t(0)}});
    }
    ex = Expr{b, b.call("Reshape", {ex.v, to}), ex.dtype};
    dy = Expr{b, b.call("Reshape", {dy.v, to}), ex.dtype};
    ValueId shape = instance    ? b.constant_ints({-1, 1, 1})
                    : per_group ? b.constant_ints({groups, 1, 1})
                                : b.constant_ints({groups, -1, 1});
    scale = Expr{b, b.call("Reshape", {scale.v, shape}), ex.dtype};
    axes = {2, 3};
    over = per_group || instance ? std::vector<int64_t>{0, 2, 3} : std::vector<int64_t>{0, 3};
  } else {
    for (int64_t d = normalize_axis(n.i("axis", -1), rank, "axis"); d < rank; ++d)
      axes.push_back(d);
  }
  auto mean = [&](Expr v) {
    GradBuilder::Attrs keep{{"keepdims", int64_t(1)}};
    if (b.opset() >= 18)
      return Expr{b, b.call("ReduceMean", {v.v, b.constant_ints(axes)}, keep), v.dtype};
    keep["axes"] = axes;
    return Expr{b, b.call("ReduceMean", {v.v}, keep), v.dtype};
  };
  bool centred = kind != "RMSNormalization";
  Expr c = centred ? ex - mean(ex) : ex;
  Expr inv = 1.0 / (mean(c * c) + double(n.f("epsilon", 1e-5f)))("Sqrt");
  Expr hat = c * inv, g = dy * scale;
  Expr inner = g - hat * mean(g * hat);
  if (centred) inner = inner - mean(g);
  Expr dx = inv * inner;
  auto stat = [&](int i) { return widened(Expr{b, b.cast_like(b.x(i), x), b.dtype(x)}); };
  if (b.has(3) || b.has(4)) {
    Expr count{b, b.reduce_sum((ex * 0.0 + 1.0).v, axes), ex.dtype};
    if (b.has(3)) dx = dx + stat(3) / count;
    if (b.has(4)) dx = dx - stat(4) * inv * inv * hat / count;
  }
  auto down = [&](Expr v) {
    if (channels) return b.cast_like(b.reshape_like(b.reduce_sum(v.v, over), w), w);
    return b.cast_like(b.sum_to_shape_of(v.v, w), w);
  };
  const ValueId narrow = b.cast_like(dx.v, x);
  return {channels ? b.reshape_like(narrow, x) : narrow, down(dy * hat), down(dy)};
}

}  // namespace

void register_row_norms(OpTable& t) {
  for (const char* name :
       {"LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization"})
    t.add({.name = name,
           .shape = shape,
           .impls = {{"simd", refuses_simd, make_simd}, {"ref", nullptr, make}},
           .grad = rule,
           .cost = cost_per_element<7>});
  t.add({.name = "RowNormGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"simd", refuses_simd_grad, make_simd_grad}, {"ref", nullptr, make_grad}},
         .in_place = {{0, 0}},
         .cost = cost_per_element<12>,
         .lower = lower});
}

}  // namespace onnxtrain::ops
