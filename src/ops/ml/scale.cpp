// Scaler, Normalizer, Binarizer, Imputer (ai.onnx.ml).
#include <algorithm>
#include <cmath>

#include "ops/ml/features.hpp"

namespace onnxtrain::ops {

namespace {

int64_t last_dim(const Shape& s) { return s.empty() ? 1 : s.back(); }

// ---------------------------------------------------------------- Scaler

std::vector<float> per_feature(const Node& n, const char* key, int64_t features, float def) {
  std::vector<float> v = n.floats(key);
  if (v.empty()) v.assign(1, def);
  if (v.size() != 1 && int64_t(v.size()) != features)
    model_error("OT1163",
                cat("'", key, "' has ", v.size(), " entries for ", features, " features"));
  return v;
}

void scaler_shape(ShapeCtx& c) {
  check_number(c.dtype(0), "Scaler");
  per_feature(c.node(), "offset", last_dim(c.shape(0)), 0);
  per_feature(c.node(), "scale", last_dim(c.shape(0)), 1);
  c.set(0, DType::kFloat, c.shape(0));
}

Kernel make_scaler(Prepare& p) {
  int64_t features = last_dim(p.in(0).shape), n = p.out(0).size();
  std::vector<float> offset = per_feature(p.node(), "offset", features, 0),
                     scale = per_feature(p.node(), "scale", features, 1);
  offset.resize(size_t(std::max<int64_t>(features, 1)), offset[0]);
  scale.resize(offset.size(), scale[0]);
  return dispatch_number(p.in(0).dtype, "Scaler", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      for (int64_t i = 0; i < n; ++i) {
        size_t k = size_t(i % features);
        r.out<float>(0)[i] = float((double(r.in<T>(0)[i]) - double(offset[k])) * double(scale[k]));
      }
    };
  });
}

std::vector<ValueId> scaler_grad(GradBuilder& b) {
  std::vector<float> scale = b.node().floats("scale");
  ValueId dy = b.dy();
  if (!scale.empty())
    dy = b.mul(dy, b.tensor(scale.size() == 1 ? Tensor::scalar<float>(scale[0])
                                              : Tensor::vector<float>(scale)));
  return {b.cast_like(dy, b.x(0))};
}

// ---------------------------------------------------------------- Normalizer

void normalizer_shape(ShapeCtx& c) {
  check_number(c.dtype(0), "Normalizer");
  rows_of(c.shape(0), "Normalizer");
  std::string norm = c.node().s("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    model_error("OT1106", cat("norm '", norm, "' is not MAX, L1 or L2"));
  c.set(0, DType::kFloat, c.shape(0));
}

Kernel make_normalizer(Prepare& p) {
  Rows rows = rows_of(p.in(0).shape, "Normalizer");
  std::string norm = p.node().s("norm", "MAX");
  return dispatch_number(p.in(0).dtype, "Normalizer", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      for (int64_t i = 0; i < rows.rows; ++i) {
        const T* x = r.in<T>(0) + i * rows.features;
        float* y = r.out<float>(0) + i * rows.features;
        double d = 0;
        for (int64_t k = 0; k < rows.features; ++k) {
          double v = std::fabs(double(x[k]));
          if (norm == "MAX")
            d = std::max(d, v);
          else
            d += norm == "L1" ? v : v * v;
        }
        if (norm == "L2") d = std::sqrt(d);
        // a row of zeros stays as it is
        for (int64_t k = 0; k < rows.features; ++k)
          y[k] = float(d == 0 ? double(x[k]) : double(x[k]) / d);
      }
    };
  });
}

// y = x / d(x): dx = (dy - d'(x) * sum(dy * y)) / d, where d' is y, sign(x) or sign at the maximum
std::vector<ValueId> normalizer_grad(GradBuilder& b) {
  std::string norm = b.node().s("norm", "MAX");
  int64_t axis = b.need_rank(b.x(0)) - 1;
  ValueId x = b.call("Cast", {b.x(0)}, {{"to", int64_t(DType::kFloat)}});
  ValueId size = b.call("Abs", {x}), d, slope;
  if (norm == "L2") {
    d = b.call("Sqrt", {b.reduce_sum(b.mul(x, x), {axis})});
    slope = b.y();
  } else if (norm == "L1") {
    d = b.reduce_sum(size, {axis});
    slope = b.call("Sign", {x});
  } else {
    d = b.opset() >= 18 ? b.call("ReduceMax", {size, b.constant_ints({axis})})
                        : b.call("ReduceMax", {size}, {{"axes", std::vector<int64_t>{axis}}});
    ValueId at = b.call("Cast", {b.call("Equal", {size, d})}, {{"to", int64_t(DType::kFloat)}});
    slope = b.div(b.mul(b.call("Sign", {x}), at), b.reduce_sum(at, {axis}));
  }
  ValueId zero = b.call("Equal", {d, b.scalar(0, DType::kFloat)});
  d = b.call("Where", {zero, b.scalar(1, DType::kFloat), d});
  ValueId inner = b.reduce_sum(b.mul(b.dy(), b.y()), {axis});
  ValueId dx = b.div(b.sub(b.dy(), b.mul(slope, inner)), d);
  return {b.cast_like(dx, b.x(0))};
}

// ---------------------------------------------------------------- Binarizer

void same_shape(ShapeCtx& c) {
  check_number(c.dtype(0), c.node().op.c_str());
  c.set(0, c.dtype(0), c.shape(0));
}

Kernel make_binarizer(Prepare& p) {
  double threshold = double(p.node().f("threshold", 0));
  int64_t n = p.out(0).size();
  return dispatch_number(p.in(0).dtype, "Binarizer", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      for (int64_t i = 0; i < n; ++i)
        r.out<T>(0)[i] = double(r.in<T>(0)[i]) > threshold ? T(1) : T(0);
    };
  });
}

// ---------------------------------------------------------------- Imputer

void imputer_shape(ShapeCtx& c) {
  same_shape(c);
  bool is_float = dtype_is_float(c.dtype(0));
  size_t count = is_float ? c.node().floats("imputed_value_floats").size()
                          : c.node().ints("imputed_value_int64s").size();
  if (count == 0) model_error("OT1163", "the imputed values are missing");
  if (count != 1 && int64_t(count) != last_dim(c.shape(0)))
    model_error("OT1163", cat(count, " imputed values for ", last_dim(c.shape(0)), " features"));
}

Kernel make_imputer(Prepare& p) {
  int64_t n = p.out(0).size(), features = last_dim(p.in(0).shape);
  std::vector<float> floats = p.node().floats("imputed_value_floats");
  std::vector<int64_t> ints = p.node().ints("imputed_value_int64s");
  float gone_float = p.node().f("replaced_value_float", 0);
  int64_t gone_int = p.node().i("replaced_value_int64", 0);
  return dispatch_number(p.in(0).dtype, "Imputer", [&]<class T>() -> Kernel {
    std::vector<T> values;
    if constexpr (std::is_floating_point_v<T>)
      values.assign(floats.begin(), floats.end());
    else
      values.assign(ints.begin(), ints.end());
    return [=](const Run& r) {
      for (int64_t i = 0; i < n; ++i) {
        T x = r.in<T>(0)[i];
        bool gone;
        if constexpr (std::is_floating_point_v<T>)
          gone = std::isnan(gone_float) ? std::isnan(x) : x == T(gone_float);
        else
          gone = int64_t(x) == gone_int;
        r.out<T>(0)[i] = gone ? values[values.size() == 1 ? 0 : size_t(i % features)] : x;
      }
    };
  });
}

std::vector<ValueId> imputer_grad(GradBuilder& b) {
  float gone = b.node().f("replaced_value_float", 0);
  ValueId mask = std::isnan(gone) ? b.call("IsNaN", {b.x(0)})
                                  : b.call("Equal", {b.x(0), b.scalar(double(gone), b.x(0))});
  return {b.call("Where", {mask, b.scalar(0, b.x(0)), b.dy()})};
}

}  // namespace

void register_scale(OpTable& t) {
  t.add({.name = "Scaler",
         .domain = kMl,
         .shape = scaler_shape,
         .impls = {{"ref", nullptr, make_scaler}},
         .grad = scaler_grad});
  t.add({.name = "Normalizer",
         .domain = kMl,
         .shape = normalizer_shape,
         .impls = {{"ref", nullptr, make_normalizer}},
         .grad = normalizer_grad});
  t.add({.name = "Binarizer",
         .domain = kMl,
         .shape = same_shape,
         .impls = {{"ref", nullptr, make_binarizer}},
         .no_grad = "a threshold is piecewise constant: its gradient is zero almost everywhere"});
  t.add({.name = "Imputer",
         .domain = kMl,
         .shape = imputer_shape,
         .impls = {{"ref", nullptr, make_imputer}},
         .grad = imputer_grad});
}

}  // namespace onnxtrain::ops
