// The program as one function: main() calls it, and so does a library that carries the commands
// (the Python wheel keeps one copy of the engine for both).
#include <csignal>
#include <cstdio>
#include <cstring>

#include "cli/common/commands.hpp"
#include "cli/common/narration.hpp"
#include "core/version.hpp"

extern "C" __attribute__((visibility("default"))) int ot_command_line(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("onnxtrain %s\n", onnxtrain::version());
    return 0;
  }
  onnxtrain::cli::set_command_line(argc, argv);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow further is an error, no death
  return onnxtrain::cli::run_command_line(argc, argv);
}
