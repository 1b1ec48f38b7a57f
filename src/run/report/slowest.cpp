// Sums by operator and phase of the watched steps.
#include "run/report/slowest.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

namespace onnxtrain::run {

namespace {
constexpr int kWarmUp = 2, kWatched = 5;
constexpr size_t kListed = 15;
}  // namespace

void OperatorSample::before_step() {
  if (step_ > kWarmUp + kWatched) return;
  if (step_ == kWarmUp) {
    profiler_ = std::make_unique<Profiler>();
    training_.set_observer(profiler_.get());
  } else if (step_ == kWarmUp + kWatched) {
    finish();
  }
  ++step_;
}

void OperatorSample::finish() {
  if (!profiler_) return;
  write(step_ - kWarmUp);
  detach();
}

void OperatorSample::detach() {
  if (!profiler_) return;
  training_.set_observer(nullptr);
  profiler_.reset();
}

void OperatorSample::write(int steps) const {
  struct Sum {
    double seconds = 0;
    int64_t calls = 0;
  };
  std::map<std::string, Sum> sums;
  double all = 0;
  for (const NodeProfile& n : profiler_->nodes()) {
    Sum& s = sums[n.op + ", " + phase_name(n.phase)];
    s.seconds += n.seconds;
    s.calls += n.calls;
    all += n.seconds;
  }
  std::vector<std::pair<std::string, Sum>> order(sums.begin(), sums.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  order.resize(std::min(order.size(), kListed));
  auto list = nlohmann::ordered_json::array();
  for (const auto& [name, s] : order)
    list.push_back({{"operator", name},
                    {"calls", s.calls / steps},
                    {"ms_per_step", s.seconds / steps * 1e3},
                    {"share", all > 0 ? s.seconds / all : 0}});
  folder_.write_text("operators.json", list.dump() + "\n");
}

}  // namespace onnxtrain::run
