// Signs of life between processes, on a thread and sockets of their own: how long a step takes does
// not matter. A process that is gone or stands still ends all others, with one error.
#pragma once
#include <memory>
#include <string>

#include "distributed/communicator.hpp"

namespace onnxtrain {

class Heartbeat {
 public:
  // Connects all processes; `timeout` seconds of silence are a fault from start() on.
  Heartbeat(Communicator& c, double timeout);
  void start();
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  void set_timeout(double seconds);
  // This process ends as it should; returns when all have come to their end.
  void end_together();
  // The last that this process does. Rank 0 returns when the processes of all others have ended,
  // the others when it lets them; who stands still meanwhile counts as lost.
  void leave_in_order();
  // This process ends with an error that it has told: nobody else has to.
  void say_failed();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onnxtrain
