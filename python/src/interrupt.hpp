// Ctrl-C while the library trains.
#pragma once
#include <atomic>
#include <csignal>

#include "native.hpp"

namespace otpy {

// While it lives, the first Ctrl-C asks the training to save and return; the second one is
// Python's again. Only Python's main thread may hold one: signals arrive there.
class StopOnInterrupt {
 public:
  explicit StopOnInterrupt(ot_trainer* t) {
    ot_trainer* none = nullptr;
    if (!on_main_thread() || !running_.compare_exchange_strong(none, t)) return;
    active_ = true;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = int(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  ~StopOnInterrupt() {
    if (!active_) return;
    sigaction(SIGINT, &before_, nullptr);
    running_ = nullptr;
  }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;
  bool interrupted() const { return active_ && seen_.exchange(false); }

 private:
  static bool on_main_thread() {
    nb::object threading = nb::module_::import_("threading");
    return threading.attr("current_thread")().is(threading.attr("main_thread")());
  }
  static void on_signal(int) {
    seen_ = true;
    if (ot_trainer* t = running_) ot_trainer_stop(t);
  }
  static inline std::atomic<ot_trainer*> running_{nullptr};
  static inline std::atomic<bool> seen_{false};
  struct sigaction before_ {};
  bool active_ = false;
};

}  // namespace otpy
