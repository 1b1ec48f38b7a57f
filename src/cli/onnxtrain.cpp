// The command line tool.
#include <csignal>
#include <cstdio>
#include <cstring>

#include "cli/commands.hpp"
#include "cli/narration.hpp"
#include "core/version.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("onnxtrain %s\n", onnxtrain::version());
    return 0;
  }
  onnxtrain::cli::set_command_line(argc, argv);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow further is an error, no death
  return onnxtrain::cli::run_command_line(argc, argv);
}
