// Which rows are kept, and their images.
#include "run/metrics/predictions.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace onnxtrain::run {

namespace {

using nlohmann::ordered_json;

constexpr size_t kKept = 12;
constexpr int64_t kLongest = 32, kMostValues = 4;  // side of an image; outputs of a regression
constexpr int64_t kLargestSide = 4096;

std::string base64(const std::vector<uint8_t>& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t k = 0; k < bytes.size(); k += 3) {
    uint32_t v = 0;
    for (size_t j = 0; j < 3; ++j) v = v << 8 | (k + j < bytes.size() ? bytes[k + j] : 0u);
    for (size_t j = 0; j < 4; ++j)
      out += k + j < bytes.size() + 1 ? kDigits[v >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

struct Image {
  int64_t height = 0, width = 0, channels = 0;
  int64_t step_y = 0, step_x = 0, step_c = 0;  // between elements of a row of the tensor
};

// [N,C,H,W] or [N,H,W,C] with 1 or 3 channels and sides of 8 or more.
bool is_image(const Shape& s, Image& im) {
  auto side = [](int64_t n) { return n >= 8 && n <= kLargestSide; };
  if (s.size() != 4) return false;
  if ((s[1] == 1 || s[1] == 3) && side(s[2]) && side(s[3])) {
    im = {s[2], s[3], s[1], s[3], 1, s[2] * s[3]};
    return true;
  }
  if ((s[3] == 1 || s[3] == 3) && side(s[1]) && side(s[2])) {
    im = {s[1], s[2], s[3], s[2] * s[3], s[3], 1};
    return true;
  }
  return false;
}

// The image in bytes, shrunk by averaging; values outside 0..1 are stretched to its own range.
std::vector<uint8_t> small_image(const double* v, const Image& im, int64_t& width,
                                 int64_t& height) {
  const int64_t by =
      std::max<int64_t>(1, (std::max(im.width, im.height) + kLongest - 1) / kLongest);
  width = std::max<int64_t>(1, im.width / by);
  height = std::max<int64_t>(1, im.height / by);
  std::vector<double> mean;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < im.channels; ++c) {
        double sum = 0;
        int64_t n = 0;
        for (int64_t i = y * by; i < std::min((y + 1) * by, im.height); ++i)
          for (int64_t j = x * by; j < std::min((x + 1) * by, im.width); ++j, ++n)
            sum += v[i * im.step_y + j * im.step_x + c * im.step_c];
        mean.push_back(n > 0 ? sum / double(n) : 0);
      }
  auto [low, high] = std::minmax_element(mean.begin(), mean.end());
  double from = 0, to = 1;
  if (*low < -1e-3 || *high > 1.001) from = *low, to = *high;
  std::vector<uint8_t> out;
  for (double m : mean) {
    const double share = to > from ? (m - from) / (to - from) : 0;
    out.push_back(uint8_t(std::lround(255 * std::clamp(std::isfinite(share) ? share : 0, 0., 1.))));
  }
  return out;
}

// Probabilities from scores, unless they are some already.
std::vector<double> probabilities(const double* v, int64_t k) {
  std::vector<double> p(v, v + k);
  double sum = 0;
  bool already = true;
  for (double x : p) {
    sum += x;
    already = already && x >= 0 && x <= 1;
  }
  if (already && std::fabs(sum - 1) < 1e-3) return p;
  const double most = *std::max_element(p.begin(), p.end());
  sum = 0;
  for (double& x : p) sum += x = std::exp(x - most);
  for (double& x : p) x /= sum;
  return p;
}

}  // namespace

bool PredictionSample::is_sample(int64_t row) const {
  const int64_t n = std::min<int64_t>(int64_t(kKept), rows_);
  for (int64_t k = 0; k < n; ++k)
    if (k * rows_ / n == row) return true;
  return false;
}

bool PredictionSample::judge(const double* output, int64_t k, const double* target, int64_t width,
                             Row& r) const {
  if (task_ == TaskKind::kClasses) {
    const auto label = int64_t(target[0]);
    if (width != 1 || k < 2 || label < 0 || label >= k || label == scores_.ignore_index)
      return false;
    const std::vector<double> p = probabilities(output, k);
    const auto best = int64_t(std::max_element(p.begin(), p.end()) - p.begin());
    r.target = {double(label)};
    r.predicted = {double(best)};
    r.probability = p[size_t(best)];
    r.loss = -std::log(std::max(p[size_t(label)], 1e-12));
  } else if (task_ == TaskKind::kBinary) {
    if (width != 1 || k != 1) return false;
    const double p = scores_.probability ? output[0] : 1 / (1 + std::exp(-output[0]));
    const double right = target[0] > 0.5 ? p : 1 - p;
    r.target = {target[0] > 0.5 ? 1. : 0.};
    r.predicted = {p > 0.5 ? 1. : 0.};
    r.probability = std::max(p, 1 - p);
    r.loss = -std::log(std::max(right, 1e-12));
  } else {
    if (k != width || k > kMostValues) return false;
    r.target.assign(target, target + k);
    r.predicted.assign(output, output + k);
    for (int64_t c = 0; c < k; ++c) r.loss += std::fabs(output[c] - target[c]) / double(k);
  }
  return std::isfinite(r.loss);
}

void PredictionSample::add(const Tensor& output, const Tensor& target,
                           const std::vector<Value>& inputs, int64_t first, int64_t rows) {
  if (rows <= 0 || output.rank() < 1 || output.shape()[0] != rows || output.rank() > 2) return;
  if (target.rank() < 1 || target.shape()[0] != rows) return;
  const std::vector<double> scores = output.to_doubles(), labels = target.to_doubles();
  const int64_t k = output.size() / rows, width = target.size() / rows;
  if (k < 1 || width < 1) return;
  const Tensor* pixels = nullptr;
  Image im;
  for (const Value& v : inputs)
    if (const Tensor* t = std::get_if<Tensor>(&v); t && !pixels && is_image(t->shape(), im))
      pixels = t;
  for (int64_t i = 0; i < rows; ++i) {
    Row r;
    r.row = first + i;
    if (!judge(&scores[size_t(i * k)], k, &labels[size_t(i * width)], width, r)) continue;
    const bool sample = is_sample(r.row),
               worst = worst_.size() < kKept || r.loss > worst_.back().loss;
    if (!sample && !worst) continue;
    if (pixels && pixels->shape()[0] >= rows) {
      const int64_t one = pixels->size() / pixels->shape()[0];
      const auto* bytes =
          static_cast<const char*>(pixels->data()) + size_t(i * one) * dtype_size(pixels->dtype());
      Tensor row(pixels->dtype(), Shape{one});
      std::copy_n(bytes, row.bytes(), static_cast<char*>(row.data()));
      int64_t w = 0, h = 0;
      r.pixels = base64(small_image(row.to_doubles().data(), im, w, h));
      r.width = int(w);
      r.height = int(h);
      r.channels = int(im.channels);
    }
    if (sample) sample_.push_back(r);
    if (!worst) continue;
    auto at = std::find_if(worst_.begin(), worst_.end(),
                           [&](const Row& other) { return r.loss > other.loss; });
    worst_.insert(at, std::move(r));
    if (worst_.size() > kKept) worst_.pop_back();
  }
}

ordered_json PredictionSample::json_of(const Row& r) {
  ordered_json j{
      {"row", r.row}, {"loss", r.loss}, {"target", r.target}, {"predicted", r.predicted}};
  if (r.probability >= 0) j["probability"] = r.probability;
  if (!r.pixels.empty())
    j["image"] = {
        {"width", r.width}, {"height", r.height}, {"channels", r.channels}, {"pixels", r.pixels}};
  return j;
}

std::string PredictionSample::text() const {
  if (worst_.empty()) return {};
  const char* kinds[] = {"classes", "binary", "regression"};
  ordered_json j{{"kind", kinds[int(task_)]},
                 {"worst", ordered_json::array()},
                 {"sample", ordered_json::array()}};
  for (const Row& r : worst_) j["worst"].push_back(json_of(r));
  for (const Row& r : sample_) j["sample"].push_back(json_of(r));
  return j.dump() + "\n";
}

}  // namespace onnxtrain::run
