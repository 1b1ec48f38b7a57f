// MelWeightMatrix: triangular filters over the bins of a spectrum.
#include <cmath>

#include "op/op.hpp"
#include "ops/common/cast_kernel.hpp"

namespace onnxtrain::ops {

namespace {

int64_t whole(const Tensor& t, const char* what) {
  std::vector<int64_t> v = t.to_ints();
  if (v.size() != 1 || v[0] < 1 || v[0] > (int64_t(1) << 31))
    model_error("OT1172", cat(what, " of MelWeightMatrix is not a positive number"));
  return v[0];
}

DType output_type(const Node& n) {
  int64_t t = n.i("output_datatype", 1);
  if (t < 1 || t >= kDTypeCount) model_error("OT1172", cat("output_datatype is ", t));
  return DType(t);
}

void shape(ShapeCtx& c) {
  int64_t bins = whole(c.value(0), "num_mel_bins"), length = whole(c.value(1), "dft_length");
  c.set(0, output_type(c.node()), {length / 2 + 1, bins});
}

Kernel make(Prepare& p) {
  int64_t bins = p.out(0).shape[1], rows = p.out(0).shape[0], n = p.out(0).size();
  DType to = p.out(0).dtype, edge_type = p.in(3).dtype, length_type = p.in(1).dtype,
        rate_type = p.in(2).dtype;
  check_castable(to);
  p.workspace = size_t(n) * sizeof(float) + size_t(bins + 2) * sizeof(int64_t) + 64;
  return [=](const Run& r) {
    auto number = [&](int i, DType t) {
      double v;
      cast_elements(t, r.inputs[i], DType::kDouble, &v, 1, {});
      return v;
    };
    auto* edges = static_cast<int64_t*>(r.workspace);
    auto* y = reinterpret_cast<float*>(edges + bins + 2);
    std::fill_n(y, n, 0.0f);
    double length = number(1, length_type), rate = number(2, rate_type);
    double low = 2595 * std::log1p(number(3, edge_type) / 700) / std::log(10.0);
    double high = 2595 * std::log1p(number(4, edge_type) / 700) / std::log(10.0);
    double step = (high - low) / double(bins + 2);
    for (int64_t k = 0; k < bins + 2; ++k) {
      double hertz = 700 * std::expm1((double(k) * step + low) / 2595 * std::log(10.0));
      double at = std::floor((length + 1) * hertz / rate);
      if (!(at >= 0 && at < double(rows)))
        data_error("OT1173", cat("the edges of MelWeightMatrix ask for bin ", at, " of ", rows));
      edges[k] = int64_t(at);
    }
    for (int64_t i = 0; i < bins; ++i) {
      int64_t left = edges[i], center = edges[i + 1], right = edges[i + 2];
      if (center == left) y[center * bins + i] = 1;
      for (int64_t j = left; j <= center && center > left; ++j)
        y[j * bins + i] = float(double(j - left) / double(center - left));
      for (int64_t j = center; j < right; ++j)
        y[j * bins + i] = float(double(right - j) / double(right - center));
    }
    cast_elements(DType::kFloat, y, to, r.outputs[0], n, {});
  };
}

}  // namespace

void register_mel_weight_matrix(OpTable& t) {
  t.add({.name = "MelWeightMatrix",
         .shape = shape,
         .shape_values = {0, 1},
         .impls = {{"ref", nullptr, make}},
         .no_grad = "its bins are chosen by rounding",
         .settings_from = 0});
}

}  // namespace onnxtrain::ops
