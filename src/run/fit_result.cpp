// What a training came to.
#include "run/fit.hpp"
#include "run/metrics/metrics.hpp"

namespace onnxtrain::run {

bool is_a_guess(const EpochResult& e, const FitResult& r) {
  if (r.constant_guess.empty()) return false;
  // the last one; of a regression the root of the squares: the mean is the best constant for it
  const auto& [name, guess] = r.constant_guess.back();
  for (const auto& [metric, value] : e.metrics)
    if (metric == name)
      return Metrics::larger_is_better(name) ? value <= guess : value >= 0.99 * guess;
  return false;
}

bool loss_grew(const FitResult& r) {
  if (r.epochs.empty()) return false;
  const double first = r.epochs.front().train_loss, last = r.epochs.back().train_loss;
  return last > 2 * first || (last > 100 && r.epochs.back().has_valid &&
                              !r.constant_guess.empty() && r.constant_guess[0].first == "accuracy");
}

}  // namespace onnxtrain::run
