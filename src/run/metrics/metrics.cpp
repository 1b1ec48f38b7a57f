// Accuracy, top-5, MAE, RMSE, confusion.
#include "run/metrics/metrics.hpp"

#include <algorithm>
#include <cmath>

#include "core/closest.hpp"
#include "data/columns/dataset.hpp"

namespace onnxtrain::run {

void Metrics::add_classes(const Tensor& output, const Tensor& target) {
  const Shape& s = output.shape();
  size_t axis = size_t(std::min<int64_t>(scores_.class_axis, int64_t(s.size()) - 1));
  int64_t outer = product(s, 0, axis), k = s[axis], inner = product(s, axis + 1, s.size());
  sequence_ = s.size() > 2 && axis == s.size() - 1;
  classes_ = k;
  std::vector<double> scores = output.to_doubles();
  std::vector<int64_t> labels = target.to_ints();
  if (int64_t(labels.size()) != outer * inner) return;
  if (confusion_.empty() && k <= 1000)
    confusion_.assign(size_t(k), std::vector<int64_t>(size_t(k), 0));
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < inner; ++j) {
      int64_t label = labels[size_t(i * inner + j)];
      if (label < 0 || label >= k || label == scores_.ignore_index) continue;
      auto score = [&](int64_t c) { return scores[size_t((i * k + c) * inner + j)]; };
      int64_t best = 0, above = 0;
      for (int64_t c = 0; c < k; ++c) {
        if (score(c) > score(best)) best = c;
        above += score(c) > score(label);
      }
      ++elements_;
      if (k == 2) rank(score(1) - score(0), label == 1);
      right_ += best == label;
      right5_ += above < 5;
      if (!confusion_.empty()) ++confusion_[size_t(label)][size_t(best)];
    }
}

void Metrics::add_loss(double loss, int64_t rows) {
  loss_sum_ += loss * double(rows);
  rows_ += rows;
}

void Metrics::add(const Tensor& output, const Tensor& target, double loss, int64_t rows) {
  add_loss(loss, rows);
  if (task_ == TaskKind::kClasses) return add_classes(output, target);
  std::vector<double> a = output.to_doubles(), b = target.to_doubles();
  size_t n = std::min(a.size(), b.size());
  keep_target(b, rows);
  for (size_t i = 0; i < n; ++i) {
    if (task_ == TaskKind::kBinary) {
      const bool yes = a[i] > (scores_.probability ? 0.5 : 0), truth = b[i] > 0.5;
      right_ += yes == truth;
      if (two_.empty()) two_.assign(2, std::vector<int64_t>(2, 0));
      ++two_[truth][yes];
      rank(a[i], truth);
    } else {
      absolute_ += std::fabs(a[i] - b[i]);
      square_ += (a[i] - b[i]) * (a[i] - b[i]);
    }
  }
  elements_ += int64_t(n);
}

std::vector<std::pair<std::string, double>> Metrics::values() const {
  if (elements_ == 0) return {};
  double n = double(elements_);
  switch (task_) {
    case TaskKind::kClasses: {
      std::vector<std::pair<std::string, double>> v{{"accuracy", double(right_) / n}};
      if (classes_ > 10) v.push_back({"top5", double(right5_) / n});
      if (sequence_ && scores_.log_loss) v.push_back({"perplexity", std::exp(loss())});
      return v;
    }
    case TaskKind::kBinary:
      return {{"accuracy", double(right_) / n}};
    default:
      return {{"mae", absolute_ / n}, {"rmse", std::sqrt(square_ / n)}};
  }
}

void Metrics::keep_target(const std::vector<double>& target, int64_t rows) {
  constexpr size_t kMost = size_t(4) << 20;
  const int64_t width = rows > 0 ? int64_t(target.size()) / rows : 0;
  const bool fits = width > 0 && width * rows == int64_t(target.size()) &&
                    (width_ == 0 || width_ == width) && targets_.size() + target.size() <= kMost;
  if (!fits || width_ < 0) {
    width_ = -1;
    targets_.clear();
    return;
  }
  width_ = width;
  targets_.insert(targets_.end(), target.begin(), target.end());
}

std::vector<std::pair<std::string, double>> Metrics::constant_guess() const {
  if (task_ == TaskKind::kClasses) {
    int64_t most = 0, all = 0;
    for (const auto& row : confusion_) {
      int64_t sum = 0;
      for (int64_t c : row) sum += c;
      most = std::max(most, sum);
      all += sum;
    }
    if (all == 0) return {};
    return {{"accuracy", double(most) / double(all)}};
  }
  if (targets_.empty()) return {};
  const auto width = size_t(width_);
  const size_t count = targets_.size() / width;
  const auto rows = double(count), n = double(targets_.size());
  double right = 0, absolute = 0, square = 0;
  for (size_t k = 0; k < width; ++k) {
    double sum = 0, ones = 0;
    for (size_t i = k; i < targets_.size(); i += width) {
      sum += targets_[i];
      ones += targets_[i] > 0.5;
    }
    right += std::max(ones, rows - ones);
    for (size_t i = k; i < targets_.size(); i += width) {
      const double d = targets_[i] - sum / rows;
      absolute += std::fabs(d);
      square += d * d;
    }
  }
  if (task_ == TaskKind::kBinary) return {{"accuracy", right / n}};
  return {{"mae", absolute / n}, {"rmse", std::sqrt(square / n)}};
}

double Metrics::constant_loss() const {
  if (task_ != TaskKind::kClasses || !scores_.log_loss) return 0;
  double all = 0, loss = 0;
  std::vector<double> of_class;
  for (const auto& row : confusion_) {
    of_class.push_back(0);
    for (int64_t c : row) of_class.back() += double(c);
    all += of_class.back();
  }
  for (double n : of_class)
    if (n > 0) loss -= n / all * std::log(n / all);
  return loss;
}

std::vector<std::pair<std::string, double>> Metrics::watched_first(
    const std::string& watched) const {
  auto all = values();
  if (watched.empty() || all.empty() || watched == "loss" || watched == all[0].first) return all;
  auto known = more();
  known.insert(known.end(), all.begin(), all.end());
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    names.push_back(name);
    if (name != watched) continue;
    std::erase_if(all, [&](const auto& a) { return a.first == watched; });
    all.insert(all.begin(), {name, value});
    return all;
  }
  const std::string near = closest(watched, names);
  usage_error("OT0037",
              cat("there is no metric '", watched, "' of this training; there are ", listed(names)),
              cat("--metric ", near.empty() ? all[0].first : near));
}

void Metrics::check_name(const std::string& name) {
  static const std::vector<std::string> kKnown = {"accuracy", "top5", "perplexity", "precision",
                                                  "recall",   "f1",   "auc",        "mae",
                                                  "rmse",     "r2",   "loss"};
  for (const std::string& known : kKnown)
    if (name.empty() || name == known || name.ends_with("_" + known)) return;
  const std::string near = closest(name, kKnown);
  usage_error("OT0037", cat("there is no metric '", name, "'; there are ", listed(kKnown)),
              near.empty() ? "leave --metric out" : cat("--metric ", near));
}

}  // namespace onnxtrain::run
