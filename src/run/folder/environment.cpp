// Where and with what a run was made.
#include "run/folder/environment.hpp"

#include <sys/utsname.h>

#include <ctime>
#include <set>

#include <nlohmann/json.hpp>

#include "core/cpu.hpp"
#include "core/memory.hpp"
#include "core/version.hpp"

namespace onnxtrain::run {

namespace {

std::string now() {
  char text[40];
  std::time_t t = std::time(nullptr);
  std::tm parts;
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &parts));
  return text;
}

}  // namespace

MemoryUse memory_use(const Training& t, size_t limit) {
  return {t.memory(), peak_resident_bytes(), limit, t.shards()};
}

Environment::Environment(Training& t) : threads_(t.pool().threads()), started_(now()) {
  std::set<std::string> updated;
  for (const TrainingStep& step : t.source().training)
    for (const auto& [key, value] : step.update_binding) updated.insert(key);
  for (const ValueDef& d : t.source().main.values) {
    if (!d.constant.defined() || !d.initializer) continue;
    parameters_ += d.constant.size();
    if (updated.count(d.name) != 0) trained_ += d.constant.size();
  }
}

std::string Environment::text(const MemoryUse* memory) const {
  utsname u{};
  uname(&u);
  nlohmann::ordered_json j{{"onnxtrain", version()},
                           {"system", cat(u.sysname, " ", u.release, " ", u.machine)},
                           {"simd", name_of(instruction_set())},
                           {"threads", threads_},
                           {"memory_limit_bytes", memory_limit()},
                           {"parameters", parameters_},
                           {"parameters_trained", trained_},
                           {"started", started_}};
  if (memory && !memory->shards.of_rank.empty())
    j["optimizer_state"] = {{"bytes", memory->shards.bytes},
                            {"bytes_of_rank", memory->shards.of_rank}};
  if (memory)
    j["memory"] = {{"state_bytes", memory->planned.state},
                   {"step_bytes", memory->planned.arena},
                   {"step_bytes_without_limit", memory->planned.whole},
                   {"nodes_computed_twice", memory->planned.recomputed},
                   {"limit_bytes", memory->limit},
                   {"peak_process_bytes", memory->peak}};
  return j.dump(2) + "\n";
}

}  // namespace onnxtrain::run
