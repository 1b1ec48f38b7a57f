// Counting what a run takes, before it is taken.
#include "core/budget.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/error.hpp"
#include "core/memory.hpp"
#include "core/table_budget.hpp"
#include "core/tensor.hpp"
#include "core/text.hpp"

namespace onnxtrain {

namespace {

// docs/safety.md, 5
constexpr size_t kFreeBytes = size_t(512) << 20, kBytesPerByte = 256;
constexpr int64_t kLoopTrips = 10'000'000;
constexpr double kFreeSeconds = 5, kSecondsPerMiB = 1;

thread_local Budget* t_current = nullptr;
thread_local Budget* t_tables = nullptr;  // of tables, where nothing else is counted

const char* environment(const char* name) {
  const char* text = std::getenv(name);
  return text && *text ? text : nullptr;
}

double number_from(const char* name, const char* example) {
  const char* text = environment(name);
  if (!text) return 0;
  char* end = nullptr;
  const double v = std::strtod(text, &end);
  if (*end != 0 || !(v > 0) || !(v < 1e18))
    usage_error("OT0009", cat(name, "='", text, "' is not a positive number"),
                cat("for example ", name, "=", example));
  return v;
}

std::string seconds_text(double s) {
  return s >= 10 ? cat(std::llround(s), " s") : cat(double(std::llround(s * 10)) / 10, " s");
}

}  // namespace

std::string memory_size(size_t bytes) {
  if (bytes < 1 << 20) return cat((bytes + 1023) >> 10, "K");
  return cat((bytes + (1 << 20) - 1) >> 20, "M");
}

Limits with_environment(Limits l) {
  if (const char* text = environment("ONNXTRAIN_MEMORY"); text && l.memory == 0) {
    l.memory = parse_bytes(text);
    if (l.memory == 0)
      usage_error("OT0009", cat("ONNXTRAIN_MEMORY='", text, "' is not a number of bytes"),
                  "for example ONNXTRAIN_MEMORY=500M");
  }
  if (l.loop_trips == 0)
    l.loop_trips = int64_t(std::ceil(number_from("ONNXTRAIN_MAX_LOOP_TRIPS", "1000000")));
  if (l.seconds == 0) l.seconds = number_from("ONNXTRAIN_TIME", "60");
  return l;
}

Limits with_defaults(Limits l, size_t bytes) {
  if (l.memory == 0) {
    const size_t most = memory_limit(), free = std::min(kFreeBytes, most);
    l.memory = bytes > (most - free) / kBytesPerByte ? most : free + bytes * kBytesPerByte;
  }
  if (l.loop_trips == 0) l.loop_trips = kLoopTrips;
  if (l.seconds == 0) l.seconds = kFreeSeconds + kSecondsPerMiB * double(bytes) / double(1 << 20);
  return l;
}

Limits Limits::none() {
  return {std::numeric_limits<size_t>::max() / 2, std::numeric_limits<int64_t>::max(),
          std::numeric_limits<double>::infinity(), true};
}

Budget::Budget(const Limits& limits, std::shared_ptr<Taken> plans, bool time_given)
    : limits_(limits),
      values_(std::make_shared<Taken>()),
      plans_(plans ? std::move(plans) : std::make_shared<Taken>()),
      time_given_(time_given),
      start_(std::chrono::steady_clock::now()),
      outer_(t_current) {
  t_current = this;
}

Budget::~Budget() { t_current = outer_; }

Budget* Budget::current() { return t_current; }

void Budget::check(size_t bytes) const {
  const size_t taken = values_->bytes + plans_->bytes, limit = limits_.memory;
  if (bytes <= limit && taken <= limit - bytes) return;
  const size_t more = std::max(limit, bytes > memory_limit() ? size_t(0) : taken + bytes);
  std::string loops =
      trips_ ? cat(", after ", with_commas(trips_), " iterations of its loops") : "";
  model_error("OT1401",
              cat("this run needs too much memory: ", memory_size(taken), " are taken", loops, ", ",
                  memory_size(bytes), " more are needed and the limit is ", memory_size(limit)),
              cat("--memory ", memory_size(2 * more), " allows more (ONNXTRAIN_MEMORY=",
                  memory_size(2 * more), " in the environment)"));
}

const std::shared_ptr<Taken>& Budget::take(size_t bytes) {
  check(bytes);
  values_->bytes += bytes;
  return values_;
}

const std::shared_ptr<Taken>& Budget::take_lasting(size_t bytes) {
  check(bytes);
  plans_->bytes += bytes;
  return plans_;
}

void Budget::count_trip(const char* op) {
  if (++trips_ > limits_.loop_trips)
    model_error("OT1402",
                cat(op, " runs on after ", with_commas(limits_.loop_trips),
                    " iterations, counted over all loops of this run: that is the limit"),
                cat("--max-loop-trips ", 10 * limits_.loop_trips,
                    " allows more (ONNXTRAIN_MAX_LOOP_TRIPS in the environment)"));
  check_time();
}

void Budget::check_time() const {
  if (!time_given_ && trips_ == 0) return;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
  if (took.count() <= limits_.seconds) return;
  std::string loops = trips_ ? cat(" and ", with_commas(trips_), " iterations of its loops") : "";
  model_error("OT1405",
              cat("this run is not done after ", seconds_text(took.count()), loops,
                  "; the limit is ", seconds_text(limits_.seconds)),
              cat("--time ", std::llround(std::ceil(10 * limits_.seconds)),
                  " allows more seconds (ONNXTRAIN_TIME in the environment)"));
}

NoBudget::NoBudget() : outer_(t_current) { t_current = nullptr; }
NoBudget::~NoBudget() { t_current = outer_; }

TableBudget::TableBudget(const Limits& limits) : outer_(t_tables) {
  Budget* const current = t_current;
  budget_.emplace(limits, nullptr, false);
  t_current = current;
  t_tables = &*budget_;
}

TableBudget::~TableBudget() {
  Budget* const current = t_current;
  budget_.reset();
  t_current = current;
  t_tables = outer_;
}

TableBudget::Use::Use() : outer_(t_current) {
  if (t_current == nullptr) t_current = t_tables;
}
TableBudget::Use::~Use() { t_current = outer_; }

Charge& Charge::operator=(const Charge& other) {
  if (this != &other) set(other.bytes_);
  return *this;
}

void Charge::set(size_t bytes) {
  if (taken_) taken_->bytes -= bytes_;
  taken_ = nullptr;
  bytes_ = 0;
  if (bytes == 0 || !t_current) return;
  taken_ = t_current->take(bytes);
  bytes_ = bytes;
}

void check_memory(size_t bytes) {
  if (t_current) t_current->check(bytes);
}

void count_trip(const char* op) {
  if (t_current) t_current->count_trip(op);
}

void check_trips(const char* op, int64_t trips) {
  const int64_t limit = t_current ? t_current->limits().loop_trips : kLoopTrips;
  if (trips > limit)
    model_error(
        "OT1402",
        cat(op, " has ", with_commas(trips), " iterations; the limit is ", with_commas(limit)),
        cat("--max-loop-trips ", trips,
            " allows more (ONNXTRAIN_MAX_LOOP_TRIPS in the environment)"));
}

}  // namespace onnxtrain
