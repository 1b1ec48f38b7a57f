// Flags for what one run of a model may take: --memory, --max-loop-trips, --time.
#pragma once
#include <string>

#include "cli/common/commands.hpp"
#include "core/budget.hpp"

namespace onnxtrain::cli {

struct LimitFlags {
  std::string memory;
  int64_t loop_trips = 0;
  double seconds = 0;

  void add_to(Registry& r, CLI::App* c);
  // --memory and --max-loop-trips alone, for commands where --time is something else.
  void add_memory(Registry& r, CLI::App* c, const char* help);
  void add_trips(Registry& r, CLI::App* c);
  // With what the environment says where no flag does.
  Limits limits() const;
};

}  // namespace onnxtrain::cli
