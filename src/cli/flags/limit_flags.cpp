// Flags -> Limits.
#include "cli/flags/limit_flags.hpp"

#include "core/error.hpp"
#include "core/memory.hpp"

namespace onnxtrain::cli {

namespace {

const char* kGroup = "Limits";

}  // namespace

void LimitFlags::add_memory(Registry& r, CLI::App* c, const char* help) {
  r.rare(c->add_option("--memory", memory, help), kGroup);
}

void LimitFlags::add_trips(Registry& r, CLI::App* c) {
  r.rare(c->add_option("--max-loop-trips", loop_trips,
                       "iterations of all loops of one run together (0: 10,000,000)")
             ->check(CLI::NonNegativeNumber),
         kGroup);
}

void LimitFlags::add_to(Registry& r, CLI::App* c) {
  add_memory(r, c, "memory that one run may take, 500M for example (docs/safety.md)");
  add_trips(r, c);
  r.rare(c->add_option("--time", seconds, "seconds that one run may take (0: docs/safety.md)")
             ->check(CLI::NonNegativeNumber),
         kGroup);
}

Limits LimitFlags::limits() const {
  Limits l;
  if (!memory.empty()) {
    l.memory = parse_bytes(memory);
    if (l.memory == 0)
      usage_error("OT0003", cat("--memory ", memory, " is not a number of bytes"),
                  "for example --memory 500M");
  }
  l.loop_trips = loop_trips;
  l.seconds = seconds;
  return with_environment(l);
}

}  // namespace onnxtrain::cli
