// The epoch table and the bar.
#include "cli/print/progress.hpp"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "run/metrics/metrics.hpp"

namespace onnxtrain::cli {

std::string format_metric(const std::string& name, double value) {
  char text[32];
  if (run::Metrics::larger_is_better(name))
    std::snprintf(text, sizeof text, "%.2f %%", 100 * value);
  else
    std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string format_loss(double value) {
  char text[32];
  const double size = std::fabs(value);
  const bool plain = value == 0 || !std::isfinite(value) || (size >= 1e-3 && size < 1e5);
  std::snprintf(text, sizeof text, plain ? "%.4f" : "%.4g", value);
  return text;
}

std::string format_speed(double samples_per_second) {
  constexpr double kWhole = 10;
  if (samples_per_second >= kWhole) return with_commas(int64_t(samples_per_second));
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", samples_per_second);
  return text;
}

std::string constant_guess_text(const std::vector<std::pair<std::string, double>>& guess,
                                const std::string& beside) {
  if (guess.empty()) return {};
  std::string text =
      guess[0].first == "accuracy" ? "a constant guess gives" : "a constant guess (the mean) gives";
  for (size_t k = 0; k < guess.size(); ++k)
    text += cat(k ? ", " : " ",
                guess[k].first == "accuracy" && beside == "accuracy" ? "" : guess[k].first + " ",
                format_metric(guess[k].first, guess[k].second));
  return text;
}

Progress::Progress(const std::string& mode, int64_t epochs)
    : every_(mode == "lines"), epochs_(epochs) {
  bool terminal = isatty(2) != 0;
  bar_ = mode == "bar" || (mode == "auto" && terminal && !quiet());
  json_ = mode == "json";
  lines_ = mode == "lines" || bar_ || (mode == "auto" && !quiet());
}

void Progress::clear_bar() {
  if (bar_shown_) std::fprintf(stderr, "\r\033[K");
  bar_shown_ = false;
}

void Progress::on_step(int64_t epoch, int64_t batch, int64_t batches, double loss, double speed) {
  if (!bar_) return;
  using Clock = std::chrono::steady_clock;
  double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  if (epoch != epoch_) {
    epoch_ = epoch;
    epoch_begin_ = now;
    first_batch_ = batch;
  }
  if (now - last_draw_ < 0.1) return;
  last_draw_ = now;
  // the first batch of the epoch is the one that plans: the pace is measured after it
  int64_t done = batch - first_batch_;
  int left = done > 0 ? int((now - epoch_begin_) / double(done) * double(batches - batch)) : 0;
  constexpr int kWidth = 26;
  int full = int(kWidth * batch / std::max<int64_t>(1, batches));
  std::string bar;
  for (int k = 0; k < kWidth; ++k) bar += k < full ? "━" : "─";
  std::fprintf(stderr, "\r\033[K  %lld/%lld  %s  %3d %%  %s/%s  loss %s  %s/s  left %d:%02d",
               static_cast<long long>(epoch), static_cast<long long>(epochs_), bar.c_str(),
               int(100 * batch / std::max<int64_t>(1, batches)), with_commas(batch).c_str(),
               with_commas(batches).c_str(), format_loss(loss).c_str(), format_speed(speed).c_str(),
               left / 60, left % 60);
  std::fflush(stderr);
  bar_shown_ = true;
}

// Of many short epochs about twenty are shown.
bool Progress::has_line(const run::EpochResult& e) const {
  constexpr int64_t kAll = 40, kLines = 20;
  constexpr double kLong = 2;  // seconds
  if (every_ || verbosity() > 0 || epochs_ <= kAll || e.seconds >= kLong) return true;
  return e.epoch == 1 || e.epoch == epochs_ || e.epoch % ((epochs_ + kLines - 1) / kLines) == 0;
}

namespace {

// The watched metric; of several targets of which none is watched, the first one's by its name.
std::pair<std::string, double> metric_to_show(const run::EpochResult& e) {
  if (e.metrics.empty()) return {};
  const std::string by_name = "_" + e.metrics[0].first;
  for (const auto& metric : e.metrics)
    if (metric.first.ends_with(by_name)) return metric;
  return e.metrics[0];
}

}  // namespace

void Progress::on_epoch(const run::EpochResult& e) {
  clear_bar();
  if (json_) {
    nlohmann::ordered_json j{{"epoch", e.epoch},
                             {"train_loss", e.train_loss},
                             {"lr", e.lr},
                             {"samples_per_second", e.samples_per_second},
                             {"seconds", e.seconds}};
    if (e.has_valid) j["valid_loss"] = e.valid_loss;
    for (const auto& [name, value] : e.metrics) j["valid_" + name] = value;
    std::printf("%s\n", j.dump().c_str());
    std::fflush(stdout);
    return;
  }
  if (!lines_ || !has_line(e)) return;
  const auto shown = metric_to_show(e);
  std::string metric = shown.first.empty()         ? ""
                       : shown.first == "accuracy" ? "valid acc"
                                                   : "valid " + shown.first;
  const int width = std::max(10, int(metric.size()));
  if (!header_) {
    std::fprintf(stderr, "epoch   train loss   valid loss   %-*s  lr        samples/s   time\n",
                 width, metric.c_str());
    header_ = true;
  }
  const std::string valid = e.has_valid ? format_loss(e.valid_loss) : "-";
  std::fprintf(stderr, "%5lld   %10s   %10s   %*s  %.1e   %9s   %.1f s%s\n",
               static_cast<long long>(e.epoch), format_loss(e.train_loss).c_str(), valid.c_str(),
               width, shown.first.empty() ? "-" : format_metric(shown.first, shown.second).c_str(),
               e.lr, format_speed(e.samples_per_second).c_str(), e.seconds,
               e.best
                   ? cat("  * best", e.best_because == "first" ? "" : ": " + e.best_because).c_str()
                   : "");
}

void Progress::on_warning(const std::string& code, const std::string& text,
                          const std::string& hint) {
  clear_bar();
  warn(code, text, hint);
}

void Progress::finish() { clear_bar(); }

}  // namespace onnxtrain::cli
