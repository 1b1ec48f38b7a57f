// Processes on one host that `onnxtrain launch` started without MPI: they are connected by sockets
// that the launcher made before it started them.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "distributed/group.hpp"

namespace onnxtrain {

// By rank, then by other rank: two ends, one for exchanges and one for collections; -1 for itself.
struct SocketEnds {
  std::vector<std::vector<std::array<int, 2>>> of_rank;
};
// All pairs of n processes; throws OT5053 when the system has no more.
SocketEnds make_sockets(int n);
// What the environment tells a process of them, and its name there.
inline constexpr const char* kSocketsVariable = "ONNXTRAIN_LAUNCH";
std::string socket_text(const SocketEnds& ends, int rank);

// What the launcher told this process; rank -1: nothing. Asked once, then the environment forgets
// it: programs that this one starts are none of the group.
struct GivenSockets {
  int rank = -1;
  std::vector<std::array<int, 2>> ends;
};
const GivenSockets& given_sockets();

std::unique_ptr<Group> socket_group(const GivenSockets& given);

}  // namespace onnxtrain
