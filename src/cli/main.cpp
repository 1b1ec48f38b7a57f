// The command line tool.
#include <cstdio>
#include <string_view>

#include "core/version.hpp"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "--version";
  if (command == "--version" || command == "demo") {
    std::printf("onnxtrain %s\n", onnxtrain::version());
    return 0;
  }
  std::fprintf(stderr, "error: unknown command '%s'\n", argv[1]);
  return 2;
}
