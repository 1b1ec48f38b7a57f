// What a training came to.
#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "run/fit.hpp"
#include "run/metrics/metrics.hpp"

namespace onnxtrain::run {

namespace {

int64_t labels_of(const FitResult& r) {
  int64_t n = 0;
  for (const auto& row : r.confusion)
    for (int64_t c : row) n += c;
  return n;
}

// An accuracy that chance can give, and a loss that says the same.
bool is_chance(const EpochResult& e, const FitResult& r, double accuracy, double guess) {
  const int64_t n = labels_of(r);
  if (n == 0 || r.constant_loss == 0 || !(e.valid_loss >= r.constant_loss)) return false;
  return accuracy <= guess + 2 * std::sqrt(guess * (1 - guess) / double(n));
}

std::string guessed(const EpochResult& e, const FitResult& r) {
  // the last one; of a regression the root of the squares: the mean is the best constant for it
  const auto& [name, guess] = r.constant_guess.back();
  for (const auto& [metric, value] : e.metrics) {
    if (metric != name) continue;
    if (Metrics::larger_is_better(name) ? value <= guess : value >= 0.99 * guess)
      return "the best epoch is no better than a constant guess: nothing was learnt yet";
    if (name == "accuracy" && is_chance(e, r, value, guess))
      return cat("the best epoch is no better than a constant guess: in ", labels_of(r),
                 " rows its accuracy can be chance, and its loss, ", e.valid_loss,
                 ", is that of a guess by the shares of the classes (", r.constant_loss,
                 ") or larger: nothing was learnt yet");
  }
  return {};
}

// The loss ended far above where it was, or beyond any loss of classes.
bool loss_grew(const FitResult& r) {
  if (r.epochs.empty()) return false;
  const double first = r.epochs.front().train_loss, last = r.epochs.back().train_loss;
  return last > 2 * first || (last > 100 && r.epochs.back().has_valid &&
                              !r.constant_guess.empty() && r.constant_guess[0].first == "accuracy");
}

}  // namespace

Guess only_guessed(const FitResult& r, bool scaled) {
  const auto best = std::find_if(r.epochs.begin(), r.epochs.end(),
                                 [&](const EpochResult& e) { return e.epoch == r.best_epoch; });
  if (best == r.epochs.end() || r.constant_guess.empty()) return {};
  const std::string text = guessed(*best, r);
  if (text.empty()) return {};
  return {text, cat(loss_grew(r) ? "a smaller --lr: the loss grew" : "more --epochs, a larger --lr",
                    scaled ? "" : ", columns of one scale (--scale standard)",
                    "; large target values in smaller units")};
}

}  // namespace onnxtrain::run
