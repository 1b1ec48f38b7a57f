// What one run of a model may take: memory of what is made while it runs (values whose sizes show
// only then, sequences, loop states, scan outputs, plans of loop bodies), iterations and time.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace onnxtrain {

// As given by flags, arguments or the environment; 0: not given.
struct Limits {
  static Limits none();    // nothing is refused
  size_t memory = 0;       // bytes
  int64_t loop_trips = 0;  // iterations of all loops of a run together
  double seconds = 0;
  bool seconds_in_loops = false;  // where they count; false: everywhere
};

// What is not given, from ONNXTRAIN_MEMORY, ONNXTRAIN_MAX_LOOP_TRIPS and ONNXTRAIN_TIME.
Limits with_environment(Limits given);

// The rule for what nobody gave, of a model whose needs show only while it runs. `bytes`: of the
// model's tensors and the data of this run together. docs/safety.md, 5.
Limits with_defaults(Limits given, size_t bytes);

// Bytes that are counted somewhere; shared by those who give them back later.
struct Taken {
  std::atomic<size_t> bytes{0};
};

// The budget of the run under way on this thread, from construction to destruction.
class Budget {
 public:
  // `plans`: what lasts from run to run (memory of loop bodies); may be null. time_given: the time
  // counts outside of loops, too.
  Budget(const Limits& limits, std::shared_ptr<Taken> plans, bool time_given);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  static Budget* current();

  const Limits& limits() const { return limits_; }
  void set_limits(const Limits& l) { limits_ = l; }
  // Throws OT1401 when this many bytes more do not fit.
  void check(size_t bytes) const;
  // Counts them; whoever frees the memory subtracts them from what is returned.
  const std::shared_ptr<Taken>& take(size_t bytes);
  const std::shared_ptr<Taken>& take_lasting(size_t bytes);
  // Another iteration of a loop: OT1402, OT1405.
  void count_trip(const char* op);
  // OT1405 when the run, which is in a loop, has taken too long.
  void check_time() const;

 private:
  friend class NoBudget;
  Limits limits_;
  std::shared_ptr<Taken> values_, plans_;
  int64_t trips_ = 0;
  bool time_given_;
  std::chrono::steady_clock::time_point start_;
  Budget* outer_;
};

// Nothing is counted while it lives: for memory that was planned, and checked, before.
class NoBudget {
 public:
  NoBudget();
  ~NoBudget();
  NoBudget(const NoBudget&) = delete;
  NoBudget& operator=(const NoBudget&) = delete;

 private:
  Budget* outer_;
};

// Memory beside tensors (items of sequences, text), counted as long as this lives. A copy counts
// again.
class Charge {
 public:
  Charge() = default;
  Charge(const Charge& other) { set(other.bytes_); }
  Charge& operator=(const Charge& other);
  ~Charge() { set(0); }
  // From now on this many bytes; OT1401 when they do not fit.
  void set(size_t bytes);

 private:
  std::shared_ptr<Taken> taken_;
  size_t bytes_ = 0;
};

// What an item of a sequence takes beside the elements of its tensor, which are counted where they
// are allocated.
inline constexpr size_t kItemBytes = 128;

// Of the run under way, if there is one.
void check_memory(size_t bytes);
void count_trip(const char* op);
// A loop that is known to run this long (OT1402).
void check_trips(const char* op, int64_t trips);

// Writes "512M": whole mebibytes (below one: "12K"), rounded up.
std::string memory_size(size_t bytes);

}  // namespace onnxtrain
