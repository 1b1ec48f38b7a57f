// Processes that a launcher started together (mpirun, srun): found from the environment, reached
// through the MPI plug-in.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "distributed/communicator.hpp"

namespace onnxtrain {

// What a launcher says in the environment; size 0: nobody started this process as one of many.
struct Launch {
  int rank = 0, size = 0;
  std::string by;  // "Open MPI", "MPICH", "Slurm", "onnxtrain launch"
};
Launch find_launch();

// A plug-in library that was found, or why it cannot be used.
struct MpiPlugin {
  std::string path, problem;
};
// Where ONNXTRAIN_MPI_PLUGIN points; else those beside this program.
std::vector<MpiPlugin> find_mpi_plugins();

// Loads one; why it cannot be, or "".
std::string try_mpi_plugin(const std::string& path);

struct DistributedOptions {
  std::string mode = "auto";  // auto|off|mpi
  double fault_timeout = 20;  // seconds without a sign of life after which a process counts as lost
  long long communicator = -1;  // a Fortran handle of MPI; -1: all processes
  // What the processes do together ("onnxtrain eval"): OT5007 when one of them does something else.
  std::string program = "a program";
};

// The processes of this training; null when there is only this one. The same object whenever it is
// asked for. Throws OT5003 when processes were started together but MPI cannot be used: N
// independent trainings are never what was meant.
Communicator* connect_processes(const DistributedOptions& o);

// How many cores of its host this process may take: its share when others are connected with it.
int cores_of_process();

// One that exists already, or null.
Communicator* connected_processes();

// An orderly end of this process: the others learn that it is no fault.
void disconnect_processes();

}  // namespace onnxtrain
