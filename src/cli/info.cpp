// info and doctor: what a file and a machine offer.
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "cli/measure/random_feeds.hpp"
#include "cli/print/layer_table.hpp"
#include "cli/processes/processes.hpp"
#include "cli/processes/python_side.hpp"
#include "convert/prepare.hpp"
#include "core/text.hpp"
#include "core/threads.hpp"
#include "core/version.hpp"
#include "engine/training.hpp"
#include "model/describe.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::json;

void print_loss(const Model& m) {
  try {
    LossChoice c = loss_for_training(m);
    std::printf("loss      %s, because %s\n", c.kind.c_str(), c.because.c_str());
  } catch (const Error& e) {
    std::printf("loss      cannot be chosen: %s\n", e.message().c_str());
  }
}

// Bytes a training step and an inference run of this batch size need.
struct Memory {
  size_t weights = 0, state = 0, step = 0, inference = 0;
  std::string refused;  // why no step can be planned
};

Memory memory_at(const Model& m, int64_t batch) {
  Memory r;
  for (const ValueDef& d : m.main.values)
    if (d.initializer) r.weights += d.constant.bytes();
  Session session(std::make_shared<const Model>(m));
  r.inference = session.plan_for(random_feeds(m, batch)).arena_bytes;
  try {
    Training t(std::make_shared<const Model>(m.training.empty() ? prepare(m, {}, all_ops()) : m),
               0);
    Feeds feeds;
    for (const std::string& name : t.input_names(0))
      feeds[name] = random_value(t.input(0, name), batch, 0);
    r.state = t.state().bytes();
    r.step = t.plan_for(feeds, 0).arena_bytes;
  } catch (const Error& e) {
    r.refused = e.message();
  }
  return r;
}

void print_memory(const Memory& m, int64_t batch) {
  std::printf("memory    batch %lld: weights %s, inference %s", static_cast<long long>(batch),
              megabytes(m.weights, 2).c_str(), megabytes(m.inference, 2).c_str());
  if (m.refused.empty())
    std::printf(", training %s (state %s, activations and gradients %s)\n",
                megabytes(m.state + m.step, 2).c_str(), megabytes(m.state, 2).c_str(),
                megabytes(m.step, 2).c_str());
  else
    std::printf("; training cannot be planned: %s\n", m.refused.c_str());
}

// What trains and what does not, with the reason; a few names of each kind, or all of them.
void print_weights(const json& list, bool all) {
  constexpr size_t kShown = 8;
  std::vector<std::string> roles;
  for (const auto& w : list)
    if (const auto role = w["role"].get<std::string>();
        std::find(roles.begin(), roles.end(), role) == roles.end())
      roles.push_back(role);
  for (const std::string& role : roles) {
    size_t count = 0;
    int64_t elements = 0;
    for (const auto& w : list)
      if (w["role"] == role) ++count, elements += w["elements"].get<int64_t>();
    std::printf("%-13s %d tensors, %s elements\n", role.c_str(), int(count),
                with_commas(elements).c_str());
    size_t shown = 0;
    for (const auto& w : list) {
      if (w["role"] != role || (!all && shown >= kShown)) continue;
      ++shown;
      std::string why = w.value("because", "");
      if (w.contains("node"))
        why = cat("the gradient stops at ", w["node"].get<std::string>(), ": ", why);
      std::printf("  %-32s %s%s%s%s\n", w["name"].get<std::string>().c_str(),
                  w["dtype"].get<std::string>().c_str(), w["shape"].dump().c_str(),
                  why.empty() ? "" : "   ", why.c_str());
    }
    if (shown < count) std::printf("  ... %d more: --weights\n", int(count - shown));
  }
}

// Every named value between inputs and outputs: what --wrt, --loss-input and --of can name.
void print_tensors(const Model& m) {
  for (const Node& n : m.main.nodes)
    for (ValueId v : n.outputs)
      if (v != kNone)
        std::printf("tensor    %-24s %s   %s\n", m.main.value_name(v).c_str(),
                    to_string(m.main.value(v).type).c_str(), n.label().c_str());
}

struct InfoFlags {
  bool as_json = false, ops = false, weights = false, tensors = false, layers = false;
  int64_t batch = 0;
};

int info(const std::string& path, const InfoFlags& flags) {
  const auto& [as_json, ops, all_weights, tensors, all_layers, batch] = flags;
  Model m = load_model(path, all_ops());
  json j = json::parse(describe_json(m));
  j["weights"] = json::parse(weights_json(m, {}))["weights"];
  const std::vector<Layer> layers = layers_of(m, j["weights"], all_layers);
  if (as_json) {
    j["layers"] = layers_json(layers);
    if (batch > 0) {
      Memory b = memory_at(m, batch);
      j["memory"] = {{"batch", batch},
                     {"weights", b.weights},
                     {"inference", b.inference},
                     {"state", b.state},
                     {"step", b.step}};
    }
    std::printf("%s\n", j.dump(2).c_str());
    return 0;
  }
  std::string opsets;
  for (const auto& [domain, version] : j["opsets"].items())
    opsets += cat(opsets.empty() ? "" : ", ", domain, " ", version.get<int>());
  std::printf("model     %s   IR %d, %s, %d nodes\n", path.c_str(), m.ir_version, opsets.c_str(),
              int(m.main.nodes.size()));
  for (const auto& v : j["inputs"])
    std::printf("input     %-24s %s\n", v["name"].get<std::string>().c_str(),
                v["type"].get<std::string>().c_str());
  for (const auto& v : j["outputs"])
    std::printf("output    %-24s %s\n", v["name"].get<std::string>().c_str(),
                v["type"].get<std::string>().c_str());
  if (tensors)
    for (const auto& v : j["initializers"])
      std::printf("weight    %-24s %s\n", v["name"].get<std::string>().c_str(),
                  v["type"].get<std::string>().c_str());
  int64_t elements = 0;
  for (const auto& v : j["initializers"]) elements += v["elements"].get<int64_t>();
  std::printf("weights   %d initializers, %s elements\n", int(j["initializers"].size()),
              with_commas(elements).c_str());
  print_weights(j["weights"], all_weights);
  print_layers(layers, all_layers ? layers.size() : 30);
  if (tensors) print_tensors(m);
  if (ops)
    for (const auto& [op, count] : j["operators"].items())
      std::printf("  %6d  %s\n", count.get<int>(), op.c_str());
  if (batch > 0) print_memory(memory_at(m, batch), batch);
  if (m.training.empty()) {
    std::printf("training  none in the file; `onnxtrain train` makes it\n");
    print_loss(m);
    return 0;
  }
  for (size_t k = 0; k < m.training.size(); ++k) {
    const auto& t = j["training"][k];
    std::string in;
    for (const auto& v : t["inputs"]) in += " " + v["name"].get<std::string>();
    std::printf("training  section %d: %d nodes, %d state variables, inputs%s\n", int(k),
                int(m.training[k].algorithm.nodes.size()), int(t["update_binding"].size()),
                in.c_str());
  }
  return 0;
}

// What the program is made for, and what of it this machine has.
void say_platform() {
  utsname u{};
  uname(&u);
#if defined(__x86_64__)
  const char* needs = "64-bit x86 with SSE4.2 at least; AVX2 and AVX-512 are used where they are";
#elif defined(__aarch64__)
  const char* needs = "64-bit ARM with NEON";
#else
  const char* needs = "a processor without vector kernels of ours: slow";
#endif
  std::printf("platform  %s %s, CPU only   (this build: %s)\n", u.sysname, u.machine, needs);
  std::printf("simd      %s\n", simd_name().c_str());
  std::string ways;
  if (const Op* conv = all_ops().find("", "Conv", 11))
    for (const Impl& way : conv->impls) ways += cat(ways.empty() ? "" : ", ", way.name);
  std::printf("conv      %s\n", ways.c_str());
}

int doctor(bool as_json) {
  if (as_json) {
    nlohmann::ordered_json j{{"version", version()},
                             {"threads", default_threads()},
                             {"simd", simd_name()},
                             {"memory_limit", memory_limit()},
                             {"operators", all_ops().all().size()},
                             {"mpi", nlohmann::ordered_json::array()}};
    for (const auto& [path, problem] : mpi_plugins())
      j["mpi"].push_back({{"path", path}, {"loads", problem.empty()}, {"problem", problem}});
    const std::string facts = j.dump();
    std::fflush(stdout);
    if (run_python("onnxtrain.engines", {"--json", facts}) != 0) {
      j["engines"]["native"] = nlohmann::ordered_json::array({"cpu"});
      std::printf("%s\n", j.dump(2).c_str());
    }
    return 0;
  }
  std::printf("onnxtrain %s\n", version());
  std::printf("threads   %d\n", default_threads());
  say_platform();
  std::printf("memory    limit %.1f GiB\n", double(memory_limit()) / double(1 << 30));
  std::printf("operators %d records\n", int(all_ops().all().size()));
  say_mpi();
  std::fflush(stdout);
  if (run_python("onnxtrain.engines", {}, /*silent=*/true) != 0)
    std::printf("engines   native   (others need the Python package)\n");
  return 0;
}

}  // namespace

void add_info(Registry& r) {
  static std::string path;
  static InfoFlags flags;
  CLI::App* c = r.add("info", "inputs, outputs, parameters, training sections of a model",
                      "  onnxtrain info model.onnx\n  onnxtrain info model.onnx --ops --batch 32\n"
                      "  onnxtrain info model.onnx --json");
  c->add_option("MODEL", path, "an ONNX file")->required();
  c->add_flag("--json", flags.as_json, "machine-readable");
  c->add_flag("--ops", flags.ops, "count of every operator");
  c->add_flag("--weights", flags.weights, "every initializer: trained or not, and why");
  c->add_flag("--layers", flags.layers, "a line for every node, also those without weights");
  c->add_flag("--tensors", flags.tensors,
              "every weight and every value inside, by name: for --wrt, --loss-input, --freeze");
  c->add_option("--batch,--batch-size", flags.batch, "memory at this batch size")
      ->check(CLI::PositiveNumber);
  r.on(c, [] { return info(path, flags); });
}

void add_doctor(Registry& r) {
  CLI::App* c = r.add("doctor", "what this machine and this build offer", "  onnxtrain doctor");
  static bool as_json = false;
  c->add_flag("--json", as_json, "machine-readable");
  r.on(c, [] { return doctor(as_json); });
}

}  // namespace onnxtrain::cli
