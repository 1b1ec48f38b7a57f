// The program that started this process as one of many: where its MPI library is, and how it is
// told that all must end before they know each other.
#pragma once
#include <filesystem>
#include <vector>

namespace onnxtrain {

// Folders in which a libmpi may be that the loader does not know: beside the launcher (one that was
// installed by pip or conda), beside the mpirun of the PATH, above `own`.
std::vector<std::filesystem::path> mpi_folders(const std::filesystem::path& own);

// MPICH's launcher goes on when a process fails before MPI has begun: ends the others.
void end_launched(int code);

}  // namespace onnxtrain
