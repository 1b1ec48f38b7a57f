// Values and names of the variables that begin with ONNXTRAIN_.
#include "core/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/budget.hpp"
#include "core/closest.hpp"
#include "core/cpu.hpp"
#include "core/error.hpp"
#include "core/tensor.hpp"
#include "core/threads.hpp"

namespace onnxtrain {

namespace {

constexpr std::string_view kPrefix = "ONNXTRAIN_";

const char* given(const char* name) {
  const char* text = std::getenv(name);
  return text && *text ? text : nullptr;
}

void check_switch(const char* name) {
  const char* text = given(name);
  if (!text) return;
  const std::string_view v = text;
  if (v != "0" && v != "1")
    usage_error("OT0008", cat("environment variable ", name, ": '", v, "' is neither 0 nor 1"),
                cat("for example ", name, "=1, or remove it: unset ", name));
}

void check_path(const char* name, const char* what) {
  const char* text = given(name);
  std::error_code none;
  if (text && !std::filesystem::exists(text, none))
    usage_error("OT0008",
                cat("environment variable ", name, ": there is no ", what, " '", text, "'"),
                cat("give it the right path, or remove it: unset ", name));
}

void check_program(const char* name) {
  const char* text = given(name);
  if (!text) return;
  const std::string_view word = text;
  auto runs = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  bool found = word.find('/') != std::string_view::npos && runs(text);
  const char* path = std::getenv("PATH");
  for (std::string_view left = path ? path : ""; !found && !left.empty();) {
    const size_t end = std::min(left.find(':'), left.size());
    found = word.find('/') == std::string_view::npos && runs(cat(left.substr(0, end), "/", word));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  if (!found)
    usage_error("OT0008",
                cat("environment variable ", name, "='", word,
                    "' cannot be started: there is no such program"),
                cat("give it the path of a Python interpreter, or remove it: unset ", name));
}

// ONNXTRAIN_THREAD is a typing mistake; a name that is near to none may belong to somebody else.
void check_names(const std::vector<std::string>& others) {
  std::vector<std::string> known = others;
  for (const char* own :
       {"THREADS", "MEMORY", "MEMORY_LIMIT", "MAX_LOOP_TRIPS", "TIME", "ISA", "PYTHON", "SHARE",
        "CACHE", "MPI_PLUGIN", "VERIFY_PASSES", "STARTED_BY_TOOL", "LAUNCH"})
    known.emplace_back(own);
  for (char** e = environ; e && *e; ++e) {
    std::string_view text = *e;
    if (!text.starts_with(kPrefix)) continue;
    const std::string name(text.substr(kPrefix.size(), text.find('=') - kPrefix.size()));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (const std::string near = closest(name, known); !near.empty())
      usage_error("OT0007", cat("there is no setting for the environment variable ", kPrefix, name),
                  cat("did you mean ", kPrefix, near, "?  or remove it: unset ", kPrefix, name));
  }
}

}  // namespace

void check_environment(const std::vector<std::string>& others) {
  check_names(others);
  default_threads();
  with_environment({});
  memory_limit();
  instruction_set();
  check_switch("ONNXTRAIN_VERIFY_PASSES");
  check_program("ONNXTRAIN_PYTHON");
  check_path("ONNXTRAIN_SHARE", "folder");
  check_path("ONNXTRAIN_MPI_PLUGIN", "file");
}

}  // namespace onnxtrain
