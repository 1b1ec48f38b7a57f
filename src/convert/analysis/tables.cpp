// Initializers that are numbers of the source program, not weights: exporters fold what a program
// computes from constants (masks, tables of positions, fillings) into tensors like any other.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "convert/analysis.hpp"

namespace onnxtrain {

namespace {

bool is_generated_scalar(const ValueDef& d) {
  if (!d.constant.shape().empty()) return false;
  static const char* marks[] = {"val_", "const", "Const", "scalar", "onnx::"};
  for (const char* m : marks)
    if (d.name.find(m) != std::string::npos) return true;
  // TensorFlow calls the constant operand of 'mul' mul/x or mul/y; variables end in ReadVariableOp
  for (std::string_view end : {"/x", "/y", "/x:0", "/y:0"})
    if (d.name.ends_with(end)) return true;
  return has_generated_name(d.name);
}

// One repeated number under a generated name (the scale of an InstanceNormalization inside a
// GroupNorm). A layer's weights stay weights even if they start at zero.
bool is_filling(const Graph& g, const ValueDef& d, const std::vector<NodeId>& users) {
  if (d.constant.rank() < 1 || !has_generated_name(d.name) || !all_equal(d.constant)) return false;
  for (NodeId k : users)
    for (const char* op : {"MatMul", "Gemm", "Conv", "ConvTranspose", "LSTM", "GRU", "RNN",
                           "Gather", "Transpose", "Identity", "Reshape", "PRelu"})
      if (g.nodes[size_t(k)].is(op)) return false;
  return true;
}

// Infinities and the ends of the number range, or one large negative number, perhaps with 0. What
// is no number is never meant.
bool is_mask(const Tensor& t) {
  return dispatch<float, double, Half, BFloat16>(t.dtype(), "a weight", [&]<class T>() {
    const T* p = t.as<T>();
    double low = 0;
    bool two_values = true, huge = false;
    for (int64_t k = 0; k < t.size(); ++k) {
      const double v = double(compute_t<T>(p[k]));
      if (std::isnan(v)) return false;
      huge |= !(std::fabs(v) < 1e30);
      if (v == 0 || v == low) continue;
      two_values &= low == 0;
      low = v;
    }
    return huge || (two_values && low <= -1000);
  });
}

// x W + b: a matrix, a kernel or a bias, and no mask whatever it holds.
bool is_of_layer(const Graph& g, const std::vector<NodeId>& users) {
  return std::any_of(users.begin(), users.end(), [&](NodeId k) {
    for (const char* op : {"MatMul", "Gemm", "Conv", "ConvTranspose", "LSTM", "GRU", "RNN"})
      if (g.nodes[size_t(k)].is(op)) return true;
    return false;
  });
}

// x[p+1] + x[p-1] = c x[p] along `stride`: a sine or cosine over p. *turns: not a straight line.
template <class T>
bool is_wave(const T* x, int64_t count, int64_t stride, bool* turns) {
  double xx = 0, xs = 0;
  auto at = [&](int64_t p) { return double(compute_t<T>(x[p * stride])); };
  for (int64_t p = 0; p < count; ++p) {
    if (!(std::fabs(at(p)) <= 1 + 1e-6)) return false;
    if (p == 0 || p + 1 == count) continue;
    xx += at(p) * at(p);
    xs += at(p) * (at(p + 1) + at(p - 1));
  }
  double c = xx > 0 ? xs / xx : 0;
  for (int64_t p = 1; p + 1 < count; ++p)
    if (!(std::fabs(at(p + 1) + at(p - 1) - c * at(p)) < 1e-4)) return false;
  *turns |= xx > 1e-3 && std::fabs(c) < 1.99;
  return true;
}

// Sines and cosines of positions (rotary or sinusoidal): every line along one axis is a wave.
bool is_wave_table(const Tensor& t) {
  if (t.rank() < 2 || t.size() < 8) return false;
  return dispatch<float, double>(t.dtype(), "a table", [&]<class T>() {
    const Shape& s = t.shape();
    int64_t stride = t.size();
    for (size_t axis = 0; axis < s.size(); ++axis) {
      int64_t outer = t.size() / stride;
      stride /= s[axis];
      if (s[axis] < 4) continue;
      bool waves = true, turns = false;
      for (int64_t i = 0; i < outer && waves; ++i)
        for (int64_t j = 0; j < stride && waves; ++j)
          waves = is_wave(t.as<T>() + i * s[axis] * stride + j, std::min<int64_t>(s[axis], 64),
                          stride, &turns);
      if (waves && turns) return true;
    }
    return false;
  });
}

}  // namespace

bool has_generated_name(const std::string& name) {
  for (const char* start : {"val_", "onnx::", "const", "Const", "_const"})
    if (name.rfind(start, 0) == 0) return true;
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

namespace {
// Larger tensors are mapped, not read: whoever only looks at a model must not read all of them, and
// no exporter writes masks or repeated numbers of that size.
constexpr size_t kReadBytes = size_t(256) << 20;
}  // namespace

bool all_equal(const Tensor& t) {
  if (t.bytes() >= kReadBytes) return false;
  size_t size = dtype_size(t.dtype());
  const char* p = static_cast<const char*>(t.data());
  for (int64_t k = 1; k < t.size(); ++k)
    if (std::memcmp(p, p + size_t(k) * size, size) != 0) return false;
  return t.size() > 0;
}

std::string look_of_a_constant(const Graph& g, ValueId v, const std::vector<NodeId>& users,
                               bool bias) {
  const ValueDef& d = g.value(v);
  if (is_generated_scalar(d)) return "a number that the exporter named";
  if (d.constant.bytes() >= kReadBytes) return {};
  if (!bias && is_filling(g, d, users)) return "one repeated number that the exporter named";
  if (!bias && !is_of_layer(g, users) && is_mask(d.constant)) return "a mask";
  const bool wide = d.constant.dtype() == DType::kFloat || d.constant.dtype() == DType::kDouble;
  return wide && is_wave_table(d.constant) ? "a table of sines" : "";
}

}  // namespace onnxtrain
