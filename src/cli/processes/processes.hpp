// A command that several processes run together: rank 0 speaks, the others are silent.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "cli/common/commands.hpp"
#include "distributed/mpi.hpp"
#include "run/folder/checkpoint.hpp"

namespace onnxtrain::cli {

struct ProcessFlags {
  DistributedOptions options;
  run::Cut cut;

  void add_to(Registry& r, CLI::App* c);
  // Those of a command that only shares rows out.
  void add_connection(Registry& r, CLI::App* c);
  // Connects the processes that were started together; null: there is one. threads: 0 becomes this
  // process's share of the host's cores.
  Communicator* connect(int& threads) const;
};

// "2 processes x 1 thread, ..." for the plan line; "" for one process and whole batches.
std::string processes_text(const Training& t);

// For `doctor`: the plug-ins for MPI, each with what keeps it from loading ("": it loads).
std::vector<std::pair<std::string, std::string>> mpi_plugins();
void say_mpi();

// Prints an error once, whichever process it happened in, and ends them all.
int failed(const std::string& text, int code);

}  // namespace onnxtrain::cli
