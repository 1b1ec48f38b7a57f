// Looks at the processes above this one, and speaks a word of PMI.
#include "distributed/launcher.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "core/error.hpp"

namespace onnxtrain {

namespace {

namespace fs = std::filesystem;

int parent_of(int pid) {
  std::ifstream in(cat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(in, text);
  const size_t name = text.rfind(')');  // the name of the program may have spaces
  if (name == text.npos) return 0;
  std::istringstream rest(text.substr(name + 1));
  char state = 0;
  int parent = 0;
  rest >> state >> parent;
  return parent;
}

fs::path first_on_path(const char* program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  std::error_code ec;
  for (std::string folder; std::getline(folders, folder, ':');) {
    fs::path found = fs::canonical(fs::path(folder) / program, ec);
    if (!ec) return found;
  }
  return {};
}

}  // namespace

std::vector<fs::path> mpi_folders(const fs::path& own) {
  std::vector<fs::path> found;
  auto add = [&](const fs::path& folder) {
    if (!folder.empty() && std::find(found.begin(), found.end(), folder) == found.end())
      found.push_back(folder);
  };
  constexpr int kAncestors = 5, kLevels = 5;
  std::error_code ec;
  for (int k = 0, pid = getppid(); k < kAncestors && pid > 1; ++k, pid = parent_of(pid)) {
    const fs::path program = fs::read_symlink(cat("/proc/", pid, "/exe"), ec);
    if (!ec && program.parent_path().filename() == "bin")
      add(program.parent_path().parent_path() / "lib");
  }
  if (const fs::path mpirun = first_on_path("mpirun"); !mpirun.empty())
    add(mpirun.parent_path().parent_path() / "lib");
  fs::path above = own;  // site-packages of an environment that has MPI, too
  for (int k = 0; k < kLevels && above.has_relative_path(); ++k, above = above.parent_path())
    if (above.filename() == "lib") add(above);
  return found;
}

void end_launched(int code) {
  const char* fd = std::getenv("PMI_FD");
  if (!fd || !*fd) return;
  usleep(500000);  // what was printed goes through the launcher first
  const std::string text =
      cat("cmd=init pmi_version=1 pmi_subversion=1\ncmd=abort exitcode=", code, "\n");
  (void)!write(std::atoi(fd), text.data(), text.size());
}

}  // namespace onnxtrain
