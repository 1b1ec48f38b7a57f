// Waiting for other processes.
#include "distributed/communicator.hpp"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace onnxtrain {

namespace {

using Clock = std::chrono::steady_clock;

// Of a wait that takes long: when it began, and when it last looked.
std::atomic<Clock::rep> wait_began = 0, wait_looked = 0;

}  // namespace

void Communicator::pause(int turn) {
  constexpr int kYields = 200, kSleeps = 20000;
  if (turn > kYields) sched_yield();
  if (turn <= kSleeps) return;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  if (turn == kSleeps + 1) wait_began = now;
  wait_looked = now;
  usleep(100);
}

double Communicator::waiting_seconds() {
  const Clock::duration looked(wait_looked.load()), began(wait_began.load());
  const Clock::duration now = Clock::now().time_since_epoch();
  if (looked.count() == 0 || now - looked > std::chrono::seconds(1)) return 0;
  return std::chrono::duration<double>(now - began).count();
}

}  // namespace onnxtrain
