// Waiting for other processes.
#include "distributed/communicator.hpp"

#include <sched.h>
#include <unistd.h>

namespace onnxtrain {

void Communicator::pause(int turn) {
  if (turn > 200) sched_yield();
  if (turn > 20000) usleep(100);
}

}  // namespace onnxtrain
