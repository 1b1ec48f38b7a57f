// Synthetic classification, regression and token data from counter-based random numbers.
#include "data/synthetic.hpp"

#include <charconv>
#include <cmath>

#include "core/random.hpp"

namespace onnxtrain {
namespace {

constexpr uint64_t kCentres = 1, kNoise = 2, kLabels = 3, kWeights = 4, kTargetNoise = 5;
const std::vector<std::string> kKeys = {"rows", "classes", "targets", "vocab",
                                        "x",    "seed",    "noise"};

struct Spec {
  int64_t rows = 1000, classes = 0, targets = 0, vocab = 0, seed = 0;
  double noise = 1;
  Shape x;
  uint64_t step = 0;  // 0 train, 1 test: other rows, same rule
};

[[noreturn]] void bad_value(const std::string& key, const std::string& value) {
  usage_error("OT2150", cat("synthetic: ", key, "=", value, " makes no sense"),
              "for example --data synthetic:classes=10,rows=1000,x=1x28x28,seed=0");
}

template <class T>
T parse(const std::string& key, const std::string& value) {
  T v{};
  const char* end = value.data() + value.size();
  const auto [stop, bad] = std::from_chars(value.data(), end, v);
  if (bad != std::errc() || stop != end || !(v >= 0)) bad_value(key, value);
  return v;
}

Shape parse_shape(const std::string& value) {
  Shape shape;
  for (size_t begin = 0; begin <= value.size();) {
    const size_t end = std::min(value.find('x', begin), value.size());
    shape.push_back(parse<int64_t>("x", value.substr(begin, end - begin)));
    if (shape.back() < 1 || shape.size() > 16) bad_value("x", value);
    begin = end + 1;
  }
  return shape;
}

Spec parse_spec(const std::string& text) {
  Spec s;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (key == "rows")
      s.rows = parse<int64_t>(key, value);
    else if (key == "classes")
      s.classes = parse<int64_t>(key, value);
    else if (key == "targets")
      s.targets = parse<int64_t>(key, value);
    else if (key == "vocab")
      s.vocab = parse<int64_t>(key, value);
    else if (key == "seed")
      s.seed = parse<int64_t>(key, value);
    else if (key == "noise")
      s.noise = parse<double>(key, value);
    else if (key == "x")
      s.x = parse_shape(value);
    else {
      const std::string near = closest(key, kKeys);
      usage_error("OT2150", cat("synthetic: '", key, "' is unknown; known are ", listed(kKeys)),
                  near.empty() ? "" : cat("did you mean '", near, "'?"));
    }
  }
  return s;
}

Tensor normal_tensor(const Spec& s, uint64_t stream, uint64_t step, Shape shape) {
  Tensor t(DType::kFloat, std::move(shape));
  philox_normal(uint64_t(s.seed), stream, step, 0, t.size(), t.as<float>());
  return t;
}

Shape with_rows(int64_t rows, const Shape& row) {
  Shape shape{rows};
  shape.insert(shape.end(), row.begin(), row.end());
  return shape;
}

void make_classes(const Spec& s, Dataset& d) {
  const int64_t n = num_elements(s.x);
  Tensor x = normal_tensor(s, kNoise, s.step, with_rows(s.rows, s.x));
  const Tensor centres = normal_tensor(s, kCentres, 0, {s.classes, n});
  Tensor y(DType::kInt64, {s.rows});
  // centres of n numbers lie about sqrt(2 n) apart: a small n needs less noise to be learnable
  const float noise = float(s.noise) * (n < 16 ? 0.25f : 1.0f);
  float* p = x.as<float>();
  for (int64_t r = 0; r < s.rows; ++r) {
    const uint64_t draw = philox(uint64_t(s.seed), kLabels, s.step, uint64_t(r))[0];
    const int64_t label = int64_t((draw * uint64_t(s.classes)) >> 32);
    y.as<int64_t>()[r] = label;
    const float* centre = centres.as<float>() + label * n;
    for (int64_t i = 0; i < n; ++i, ++p) *p = *p * noise + centre[i];
  }
  d.add("x", memory_column(std::move(x)));
  d.add("y", memory_column(std::move(y)));
}

void make_targets(const Spec& s, Dataset& d) {
  const int64_t n = num_elements(s.x);
  Tensor x = normal_tensor(s, kNoise, s.step, with_rows(s.rows, s.x));
  const Tensor w = normal_tensor(s, kWeights, 0, {s.targets, n});
  Tensor y = normal_tensor(s, kTargetNoise, s.step, {s.rows, s.targets});
  const double scale = 1 / std::sqrt(double(n));
  for (int64_t r = 0; r < s.rows; ++r) {
    const float* row = x.as<float>() + r * n;
    for (int64_t t = 0; t < s.targets; ++t) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += double(row[i]) * w.as<float>()[t * n + i];
      float& out = y.as<float>()[r * s.targets + t];
      out = float(sum * scale + 0.3 * std::sin(2 * sum * scale) + 0.05 * s.noise * out);
    }
  }
  d.add("x", memory_column(std::move(x)));
  d.add("y", memory_column(std::move(y)));
}

void make_tokens(const Spec& s, Dataset& d) {
  Tensor x(DType::kInt64, with_rows(s.rows, s.x)), y(DType::kInt64, with_rows(s.rows, s.x));
  for (int64_t i = 0; i < x.size(); ++i) {
    const uint64_t draw = philox(uint64_t(s.seed), kNoise, s.step, uint64_t(i) / 4)[size_t(i) % 4];
    const uint64_t token = (draw * uint64_t(s.vocab)) >> 32;
    x.as<int64_t>()[i] = int64_t(token);
    y.as<int64_t>()[i] = int64_t((token * 7 + 3) % uint64_t(s.vocab));
  }
  d.add("x", memory_column(std::move(x)));
  d.add("y", memory_column(std::move(y)));
}

}  // namespace

Dataset make_synthetic(const std::string& text, DataPart part, const Shape& x_default,
                       int64_t classes_default) {
  Spec s = parse_spec(text);
  s.step = part == DataPart::kTest ? 1 : 0;
  if (s.x.empty()) s.x = x_default;
  if (s.classes == 0 && s.targets == 0 && s.vocab == 0)
    s.classes = classes_default > 0 ? classes_default : 10;
  if (s.x.empty())
    usage_error("OT2150", "synthetic: the shape of a row is not known",
                "say it: --data synthetic:x=1x28x28");
  if ((s.classes > 0) + (s.targets > 0) + (s.vocab > 0) != 1)
    usage_error("OT2150", "synthetic: give one of classes, targets and vocab",
                "for example  --data synthetic:rows=1000,classes=10");
  if (s.rows < 1)
    data_error("OT2101", "synthetic: rows=0 makes no data",
               "for example  --data synthetic:rows=1000");
  constexpr int64_t kMost = int64_t(1) << 31;
  if (s.classes > kMost || s.vocab > kMost) bad_value("classes or vocab", "more than 2^31");
  Dataset d("synthetic:" + text, "synthetic");
  if (s.classes > 0)
    make_classes(s, d);
  else if (s.targets > 0)
    make_targets(s, d);
  else
    make_tokens(s, d);
  return d;
}

}  // namespace onnxtrain
