// Dropout. Random numbers are a function of (run seed, node, step), so a resumed run continues
// exactly; an attribute `seed` selects numpy's generator, by which the ONNX suite defines results.
#include "core/random.hpp"
#include "core/random_rows.hpp"
#include "kernels/random/philox.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/expr.hpp"
#include "ops/common/forward_outputs.hpp"

namespace onnxtrain::ops {

namespace {

// Opset 1-6: training unless is_test; 7-11: inference only; 12 on: training_mode is an input.
bool may_train(const Node& n) {
  return n.version >= 12 ? n.inputs.size() > 2 && n.inputs[2] != kNone
                         : n.version < 7 && n.i("is_test", 0) == 0;
}

void shape(ShapeCtx& c) {
  if (c.version() < 12) {
    float ratio = c.node().f("ratio", 0.5f);
    if (!(ratio >= 0 && ratio <= 1))
      model_error("OT1134", cat("ratio of Dropout is ", ratio, ", it must be in [0,1)"));
  }
  if (c.has(1) && c.in(1).size() != 1) model_error("OT1133", "ratio of Dropout is not a scalar");
  if (c.has(2) && (c.in(2).size() != 1 || c.dtype(2) != DType::kBool))
    model_error("OT1133", "training_mode of Dropout is not a bool scalar");
  c.set(0, c.dtype(0), c.shape(0));
  c.set(1, c.version() < 10 ? c.dtype(0) : DType::kBool, c.shape(0));
}

float read_float(const void* p, DType t) {
  return dispatch<float, double, Half, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2,
                  Float8E5M2FNUZ>(t, "ratio of Dropout",
                                  [&]<class T>() { return float(*static_cast<const T*>(p)); });
}

// What one run needs to know; read at run time because ratio and training_mode are inputs.
struct Mode {
  float ratio = 0.5f;
  bool train = false;
};
struct ModeSource {
  float attr_ratio;
  bool from_inputs, train, has_ratio;
  DType ratio_type;
  ModeSource(const Prepare& p, int at)
      : attr_ratio(p.node().f("ratio", 0.5f)),
        from_inputs(p.has(at + 1)),
        train(may_train(p.node())),
        has_ratio(p.has(at)),
        ratio_type(p.has(at) ? p.in(at).dtype : DType::kFloat) {}
  Mode read(const Run& r, int at) const {
    Mode m{has_ratio ? read_float(r.inputs[at], ratio_type) : attr_ratio, train};
    if (from_inputs) m.train = *r.in<bool>(at + 1);
    if (m.train && !(m.ratio >= 0 && m.ratio <= 1))
      model_error("OT1134", cat("ratio of Dropout is ", m.ratio, ", it must be in [0,1)"));
    if (m.ratio == 0) m.train = false;
    return m;
  }
};

template <class T>
void apply(const Run& r, const Mode& m, int64_t n, uint64_t stream, const RandomPlaces& all,
           bool numpy, uint32_t numpy_seed, bool* mask, T* float_mask) {
  using C = compute_t<T>;
  const T* x = r.in<T>(0);
  T* y = r.out<T>(0);
  C scale = m.ratio < 1 ? C(1) / (C(1) - C(m.ratio)) : C(0);
  auto put = [&](int64_t i, bool keep) {
    y[i] = keep ? T(C(x[i]) * scale) : T(C(0));
    if (mask) mask[i] = keep;
    if (float_mask) float_mask[i] = T(C(keep));
  };
  if (numpy) {
    Mt19937 g(numpy_seed);
    for (int64_t i = 0; i < n; ++i) put(i, g.uniform() >= double(m.ratio));
    return;
  }
  constexpr int64_t kBlock = 1024;
  const RandomPlaces places = all.here();
  parallel_for(*r.pool, n, 8 * kBlock, [&](int64_t b, int64_t e) {
    alignas(64) float u[kBlock];
    for (int64_t i = b, count = 0; i < e; i += count) {
      count = std::min({kBlock, e - i, places.run(i)});
      simd::philox_uniform(r.seed, stream, r.step, places.at(i), count, u);
      if constexpr (std::is_same_v<T, float>) {
        if (!float_mask) {
          uint8_t* keep = mask ? reinterpret_cast<uint8_t*>(mask) + i : nullptr;
          simd::drop(x + i, y + i, u, keep, count, m.ratio, scale);
          continue;
        }
      }
      for (int64_t k = 0; k < count; ++k) put(i + k, u[k] >= m.ratio);
    }
  });
}

Kernel make(Prepare& p) {
  int64_t n = p.out(0).size();
  ModeSource source(p, 1);
  bool numpy = p.node().has("seed"), old_mask = p.version() < 10, wants_mask = p.wants(1);
  uint32_t numpy_seed = uint32_t(p.node().i("seed", 0));
  uint64_t stream = p.stream();
  const RandomPlaces places(p.out(0).shape, p.node().i("row_axis", -1), p.node().i("row_outer", 1));
  return dispatch<float, double, Half, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2,
                  Float8E5M2FNUZ>(p.in(0).dtype, "Dropout", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      Mode m = source.read(r, 1);
      bool* mask = wants_mask && !old_mask ? r.out<bool>(1) : nullptr;
      T* float_mask = wants_mask && old_mask ? r.out<T>(1) : nullptr;
      if (m.train) return apply<T>(r, m, n, stream, places, numpy, numpy_seed, mask, float_mask);
      if (r.outputs[0] != r.inputs[0]) std::copy_n(r.in<T>(0), n, r.out<T>(0));
      if (mask) std::fill_n(mask, n, true);
      if (float_mask) std::fill_n(float_mask, n, T(compute_t<T>(1)));
    };
  });
}

// DropoutGrad(dy, mask, ratio?, training_mode?): attribute ratio when it is not an input
Kernel make_grad(Prepare& p) {
  int64_t n = p.out(0).size();
  ModeSource source(p, 2);
  source.train = true;
  bool bool_mask = p.in(1).dtype == DType::kBool;
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "DropoutGrad", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        return [=](const Run& r) {
          Mode m = source.read(r, 2);
          C scale = !m.train ? C(1) : m.ratio < 1 ? C(1) / (C(1) - C(m.ratio)) : C(0);
          const T* dy = r.in<T>(0);
          T* dx = r.out<T>(0);
          parallel_for(*r.pool, n, kGrain, [&](int64_t b, int64_t e) {
            if (bool_mask) {
              const uint8_t* mask = r.in<uint8_t>(1);
              for (int64_t i = b; i < e; ++i) dx[i] = mask[i] ? T(C(dy[i]) * scale) : T(C(0));
            } else {
              const T* mask = r.in<T>(1);
              for (int64_t i = b; i < e; ++i) dx[i] = T(C(dy[i]) * scale * C(mask[i]));
            }
          });
        };
      });
}

void grad_shape(ShapeCtx& c) {
  if (c.shape(0) != c.shape(1))
    model_error("OT1133", "DropoutGrad: dy and mask have different shapes");
  c.set(0, c.dtype(0), c.shape(0));
}

// The forward node must hand out its mask: it gets the output if it has none.
ValueId mask_of(GradBuilder& b) {
  TypeInfo type = b.type(b.y());
  if (b.node().version >= 10) type.elem = DType::kBool;
  return ensure_output(b, 1, type, "mask");
}

std::vector<ValueId> rule(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  const Tensor* mode = b.has(2) ? b.constant(b.x(2)) : nullptr;
  if (!may_train(b.node()) || (mode && mode->size() == 1 && !*mode->as<bool>())) {
    g[0] = b.dy();
    return g;
  }
  const Tensor* ratio = b.has(1) ? b.constant(b.x(1)) : nullptr;
  bool fixed = (!b.has(1) || (ratio && ratio->size() == 1)) && (!b.has(2) || mode);
  double p = ratio ? ratio->to_doubles()[0] : double(b.node().f("ratio", 0.5f));
  if (fixed && b.node().version >= 10 && p >= 0 && p < 1 && b.dtype(b.dy()) == DType::kFloat) {
    // ordinary operators: they join whatever chain the gradient is part of
    Expr dy{b, b.dy()};
    float scale = 1.0f / (1.0f - float(p));
    g[0] = where(Expr{b, mask_of(b), DType::kFloat}, dy * double(scale), 0).v;
    return g;
  }
  std::vector<ValueId> in = {b.dy(), mask_of(b)};
  GradBuilder::Attrs attrs;
  if (!b.has(1)) attrs["ratio"] = b.node().f("ratio", 0.5f);
  if (b.has(1) || b.has(2)) in.push_back(b.has(1) ? b.x(1) : kNone);
  if (b.has(2)) in.push_back(b.x(2));
  g[0] = b.own("DropoutGrad", in, attrs);
  return g;
}

std::vector<ValueId> lower(GradBuilder& b) {
  Expr dy{b, b.x(0)};
  Expr ratio =
      b.has(2) ? Expr{b, b.cast_like(b.x(2), dy.v)} : dy.num(double(b.node().f("ratio", 0.5f)));
  Expr keep = 1.0 - ratio;
  Expr scale = where(keep > 0, keep.num(1) / keep, 0);
  if (b.has(3)) scale = where(Expr{b, b.x(3)}, scale, 1.0);
  if (b.dtype(b.x(1)) != DType::kBool) return {(dy * scale * Expr{b, b.x(1)}).v};
  return {where(Expr{b, b.x(1)}, dy * scale, 0).v};
}

}  // namespace

void register_dropout(OpTable& t) {
  t.add({.name = "Dropout",
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = rule,
         .random = true,
         .in_place = {{0, 0}},
         .settings_from = 1});
  t.add({.name = "DropoutGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"ref", nullptr, make_grad}},
         .in_place = {{0, 0}},
         .lower = lower});
}

}  // namespace onnxtrain::ops
