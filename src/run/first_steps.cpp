// The first steps of a training.
#include "run/first_steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/shell.hpp"
#include "data/columns/dataset.hpp"
#include "run/data/target_check.hpp"

namespace onnxtrain::run {

namespace {

constexpr int64_t kSampled = 4096;  // elements of a weight
constexpr uint64_t kSteps = 20;     // after which weights are looked at
constexpr double kRising = 1.01;    // a warm-up: looked at when the epoch is over
constexpr double kEnded = 1e-5;     // of the largest learning rate

double middle(std::vector<double> v) {
  if (v.empty()) return 0;
  std::nth_element(v.begin(), v.begin() + long(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// The distance from a number to the next one of this type.
double last_digit(DType type, double v) {
  const int bits = type == DType::kFloat16    ? 10
                   : type == DType::kBFloat16 ? 7
                   : type == DType::kDouble   ? 52
                                              : 23;
  return v > 0 ? std::ldexp(1, std::ilogb(v) - bits) : 0;
}

}  // namespace

HeldUpdates::HeldUpdates(const Training& t) {
  const Graph& g = t.source().main;
  for (const std::string& name : t.state().names()) {
    const Tensor& w = t.state().get(name);
    if (w.dtype() == DType::kInt64 && w.size() == 1)
      counters_.emplace_back(name, w.to_ints().at(0));
    const ValueId v = g.find(name);
    if (v == kNone || !g.value(v).initializer) continue;  // counters, moments
    if (!dtype_is_differentiable(w.dtype()) || w.size() == 0) continue;
    Sample s;
    s.name = name;
    s.stride = (w.size() + kSampled - 1) / kSampled;
    const size_t size = dtype_size(w.dtype());
    const auto* from = static_cast<const char*>(w.data());
    for (int64_t k = 0; k < w.size(); k += s.stride)
      s.bytes.insert(s.bytes.end(), from + size_t(k) * size, from + size_t(k + 1) * size);
    samples_.push_back(std::move(s));
  }
}

// Gradients may only have been added up so far.
bool HeldUpdates::updated(const Training& t) const {
  return counters_.empty() || std::any_of(counters_.begin(), counters_.end(), [&](const auto& c) {
           return t.state().get(c.first).to_ints().at(0) != c.second;
         });
}

std::vector<char> HeldUpdates::still(const Training& t, const Sample& s) const {
  const Tensor& w = t.state().get(s.name);
  const size_t size = dtype_size(w.dtype());
  const auto* now = static_cast<const char*>(w.data());
  std::vector<char> same;
  for (size_t k = 0; k * size < s.bytes.size(); ++k)
    same.push_back(
        std::memcmp(now + k * size_t(s.stride) * size, s.bytes.data() + k * size, size) == 0);
  return same;
}

void HeldUpdates::warn_if_lost(Training& t, const Feeds& feeds, uint64_t steps,
                               Observer& observer) const {
  if (!updated(t) || (t.has_lr() && t.lr() == 0)) return;  // the end of the training says so
  std::map<std::string, std::vector<char>> same;
  int64_t all = 0, unmoved = 0;
  for (const Sample& s : samples_) {
    const std::vector<char>& here = same[s.name] = still(t, s);
    all += int64_t(here.size());
    unmoved += std::count(here.begin(), here.end(), 1);
  }
  if (2 * unmoved <= all) return;
  // weights without a gradient stay for a reason: the others count
  int64_t pushed = 0, held = 0;
  std::map<DType, int64_t> of_type;
  std::vector<double> sizes;
  t.read_gradients(feeds, [&](const std::string& name, const Tensor& gradient) {
    const auto at = std::find_if(samples_.begin(), samples_.end(),
                                 [&, &n = name](const Sample& s) { return s.name == n; });
    const Tensor& w = t.state().get(name);
    if (at == samples_.end() || gradient.size() != w.size()) return;
    const std::vector<double> g = gradient.to_doubles(), values = w.to_doubles();
    const std::vector<char>& here = same[name];
    for (size_t k = 0; k < here.size(); ++k) {
      const size_t i = k * size_t(at->stride);
      if (g[i] == 0) continue;
      ++pushed;
      if (!here[k]) continue;
      ++held;
      ++of_type[w.dtype()];
      sizes.push_back(std::fabs(values[i]));
    }
  });
  if (pushed == 0 || 2 * held <= pushed) return;
  const DType type =
      std::max_element(of_type.begin(), of_type.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  const bool narrow = type == DType::kFloat16 || type == DType::kBFloat16;
  const double size = middle(std::move(sizes));
  observer.on_warning(
      "OT3131",
      cat(std::floor(100 * double(held) / double(pushed)), " % of the weights did not change in ",
          steps, steps == 1 ? " step" : " steps",
          " although their gradients are not 0: the updates ", "are smaller than ", type_text(type),
          " can add to them (the next number after ", size, " is ", last_digit(type, size), " away",
          t.has_lr() ? cat("; the learning rate is ", t.lr()) : std::string(), ")"),
      narrow ? "train the model in float32 and convert it afterwards, or a larger learning rate:  "
               "--lr 1e-2"
             : "a larger learning rate:  --lr 1e-3");
}

FirstSteps::FirstSteps(Stepper& s, Scores target, bool lr_known, Observer& observer)
    : s_(s), target_(std::move(target)), observer_(observer), lr_said_(lr_known) {
  if (const Training* t = s.native()) weights_.emplace_back(*t);
  first_lr_ = top_lr_ = s.lr();
}

void FirstSteps::after_step(const Feeds& feeds, double loss, bool last) {
  ++steps_;
  if (s_.step_count() == 1) warn_of_zero_gradients(loss);
  if (weights_.empty() || !(last || (steps_ == kSteps && s_.lr() <= kRising * first_lr_))) return;
  weights_.front().warn_if_lost(*s_.native(), feeds, steps_, observer_);
  weights_.clear();
}

void FirstSteps::after_epoch(const EpochResult& e, int64_t epochs) {
  if (e.has_valid && !std::isfinite(e.valid_loss) && !valid_said_) {
    valid_said_ = true;
    observer_.on_warning(
        "OT3133",
        cat("the validation loss is ", std::isnan(e.valid_loss) ? "NaN" : "infinite",
            " after epoch ", e.epoch,
            ": the scores of some rows are larger than their type holds, and "
            "other figures of these rows are not true either"),
        "a smaller learning rate:  --lr 1e-4, or columns of one scale:  --scale "
        "standard");
  }
  top_lr_ = std::max(top_lr_, e.lr);
  const bool ended = e.lr <= kEnded * top_lr_ && last_lr_ <= kEnded * top_lr_ && e.epoch > 1;
  last_lr_ = e.lr;
  const int64_t left = epochs - e.epoch;
  if (lr_said_ || !ended || top_lr_ == 0 || left < std::max<int64_t>(1, epochs / 10)) return;
  lr_said_ = true;
  observer_.on_warning("OT3128",
                       cat("the learning rate is ", e.lr, " after epoch ", e.epoch, " of ", epochs,
                           ", it was ", top_lr_, ": nothing is learnt in the other ", left),
                       "a schedule that is as long as the training, or fewer epochs");
}

// How a loss is made larger: on the command line with the names of this training.
std::string FirstSteps::heavier_loss() const {
  const Model& m = s_.training().source();
  const std::string kind = loss_kind(m);
  const auto& outputs = m.main.outputs;
  const bool named = std::find(outputs.begin(), outputs.end(), target_.value) != outputs.end();
  return cat("give the loss a larger weight",
             kind.empty() || !named
                 ? std::string()
                 : cat(":  --loss ", shell_word(target_.output + "=" + kind + ":1024"), "  "),
             " (with SGD a learning rate 1024 times smaller)");
}

// Nothing would train, and no later step would say so.
void FirstSteps::warn_of_zero_gradients(double loss) {
  const Training::Zeros z = s_.training().zero_gradients();
  const bool half = z.narrow > 0;  // whose loss can be 0 because it is small
  if (z.gradients == 0 || (z.zeros == 0 && !half) || (loss == 0 && !half)) return;
  if (z.zeros == z.gradients && loss != 0)
    observer_.on_warning(
        "OT1287",
        cat("every gradient is exactly 0 at the first step: the outputs are saturated (a "
            "Sigmoid, "
            "Softmax, Relu or Clip at its end), or nothing of the data reaches a weight",
            half ? ", or they are below 6e-8, which is 0 in float16" : ""),
        cat("scale the data (--scale auto), begin with new weights (--reset), or take the loss "
            "on "
            "the scores before the activation (--loss-input)",
            half ? "; in float16 " + heavier_loss() : std::string()));
  else if (half)
    observer_.on_warning(
        "OT1288",
        cat(z.narrow, " of ", z.gradients,
            " gradients are 0 or too small for float16 at the first step: it has "
            "nothing below 6e-8 and few digits below 6e-5"),
        heavier_loss() + ", or train the model in float32 and convert it afterwards");
}

}  // namespace onnxtrain::run
