// Precision, recall, F1, area under the ROC curve, R2.
#include <algorithm>

#include "run/metrics/metrics.hpp"

namespace onnxtrain::run {

void Metrics::rank(double score, bool positive) {
  constexpr size_t kMost = size_t(4) << 20;
  if (ranks_ && ranked_.size() == kMost) {
    ranks_ = false;
    ranked_.clear();
  }
  if (ranks_) ranked_.emplace_back(score, positive);
}

std::vector<Metrics::ClassScore> Metrics::per_class() const {
  const auto& counts = task_ == TaskKind::kBinary ? two_ : confusion_;
  std::vector<ClassScore> all(counts.size());
  for (size_t c = 0; c < counts.size(); ++c) {
    int64_t predicted = 0;
    for (size_t t = 0; t < counts.size(); ++t) {
      predicted += counts[t][c];
      all[c].rows += counts[c][t];
    }
    const double right = double(counts[c][c]);
    all[c].precision = predicted > 0 ? right / double(predicted) : 0;
    all[c].recall = all[c].rows > 0 ? right / double(all[c].rows) : 0;
    const double both = all[c].precision + all[c].recall;
    all[c].f1 = both > 0 ? 2 * all[c].precision * all[c].recall / both : 0;
  }
  return all;
}

namespace {

// The share of pairs (a row of class 1, one of class 0) in which the first has the higher score;
// equal scores count half.
double area_under_curve(std::vector<std::pair<double, bool>> rows) {
  std::sort(rows.begin(), rows.end());
  double below = 0, sum = 0, ones = 0;  // below: rows of class 0 with a lower score
  for (size_t i = 0; i < rows.size();) {
    double zeros = 0, here = 0;
    const double score = rows[i].first;
    for (; i < rows.size() && rows[i].first == score; ++i) (rows[i].second ? here : zeros) += 1;
    sum += here * (below + zeros / 2);
    below += zeros;
    ones += here;
  }
  return ones > 0 && below > 0 ? sum / (ones * below) : -1;
}

}  // namespace

std::vector<std::pair<std::string, double>> Metrics::more() const {
  if (elements_ == 0) return {};
  std::vector<std::pair<std::string, double>> out;
  if (task_ == TaskKind::kRegression) {
    if (targets_.empty()) return out;
    double spread = 0;  // over all outputs, each around its own mean
    const auto width = size_t(width_);
    const size_t count = targets_.size() / width;
    const auto rows = double(count);
    for (size_t k = 0; k < width; ++k) {
      double sum = 0;
      for (size_t i = k; i < targets_.size(); i += width) sum += targets_[i];
      for (size_t i = k; i < targets_.size(); i += width)
        spread += (targets_[i] - sum / rows) * (targets_[i] - sum / rows);
    }
    if (spread > 0) out.emplace_back("r2", 1 - square_ / spread);
    return out;
  }
  std::vector<ClassScore> classes = per_class();
  // of one score per row the positive class is meant
  if (task_ == TaskKind::kBinary && classes.size() == 2) classes.erase(classes.begin());
  double n = 0, precision = 0, recall = 0, f1 = 0;
  for (const ClassScore& c : classes) {
    if (c.rows == 0) continue;
    ++n;
    precision += c.precision;
    recall += c.recall;
    f1 += c.f1;
  }
  if (n > 0) {
    out.emplace_back("precision", precision / n);
    out.emplace_back("recall", recall / n);
    out.emplace_back("f1", f1 / n);
  }
  if (const double auc = area_under_curve(ranked_); auc >= 0) out.emplace_back("auc", auc);
  return out;
}

}  // namespace onnxtrain::run
