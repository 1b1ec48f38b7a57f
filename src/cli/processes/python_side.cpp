// Finds an interpreter and starts a module of the package in it.
#include "cli/processes/python_side.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;

// The folder that the user started this program from: links are not followed, because an
// environment may hold a link to it.
fs::path started_from() {
  const fs::path typed = program_invocation_name;
  if (typed.has_parent_path()) return typed.parent_path();
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  std::error_code none;
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::exists(fs::path(folder) / typed, none)) return folder;
  return {};
}

// ONNXTRAIN_PYTHON; otherwise the interpreter beside this program (an environment's bin), that of
// the active environment, or the first on the path.
std::vector<std::string> interpreters() {
  if (const char* named = std::getenv("ONNXTRAIN_PYTHON")) return {named};
  std::vector<fs::path> found = {started_from() / "python"};
  std::error_code none;
  if (fs::path self = fs::read_symlink("/proc/self/exe", none); !none)
    found.push_back(self.parent_path() / "python");
  if (const char* env = std::getenv("VIRTUAL_ENV"))
    found.push_back(fs::path(env) / "bin" / "python");
  std::vector<std::string> out;
  for (const fs::path& p : found)
    if (p.has_parent_path() && fs::exists(p, none)) out.push_back(p.string());
  out.insert(out.end(), {"python3", "python"});
  return out;
}

}  // namespace

std::string missing_python() {
  const char* named = std::getenv("ONNXTRAIN_PYTHON");
  return named ? cat("ONNXTRAIN_PYTHON='", named, "' cannot be started")
               : std::string("there is none on the path");
}

void become_python(const std::string& module, const std::vector<std::string>& args) {
  std::vector<std::string> all = {"", "-m", module};
  all.insert(all.end(), args.begin(), args.end());
  setenv("ONNXTRAIN_STARTED_BY_TOOL", "1", 1);
  for (const std::string& python : interpreters()) {
    all[0] = python;
    std::vector<char*> raw;
    for (std::string& a : all) raw.push_back(a.data());
    raw.push_back(nullptr);
    execvp(raw[0], raw.data());  // returns only when there is no such program
  }
}

pid_t start_python(const std::string& module, const std::vector<std::string>& args, int closed) {
  const pid_t child = fork();
  if (child != 0) return child;
  close(closed);
  become_python(module, args);
  _exit(kNoInterpreter);
}

int run_python(const std::string& module, const std::vector<std::string>& args, bool silent) {
  const pid_t child = fork();
  if (child == 0) {
    if (const int nowhere = silent ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1; nowhere >= 0)
      dup2(nowhere, STDERR_FILENO);
    become_python(module, args);
    _exit(kNoInterpreter);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return code == kNoInterpreter ? -1 : code;
}

}  // namespace onnxtrain::cli
