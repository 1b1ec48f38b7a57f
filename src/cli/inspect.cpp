// info, check, diff, doctor, explain: looking at files and machines.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "convert/prepare.hpp"
#include "core/threads.hpp"
#include "core/version.hpp"
#include "engine/check_types.hpp"
#include "model/describe.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::json;

void print_loss(const Model& m) {
  try {
    LossChoice c = choose_loss(m);
    std::printf("loss      %s, because %s\n", c.kind.c_str(), c.because.c_str());
  } catch (const Error& e) {
    std::printf("loss      cannot be chosen: %s\n", e.message().c_str());
  }
}

int info(const std::string& path, bool as_json, bool ops) {
  Model m = load_model(path, all_ops());
  json j = json::parse(describe_json(m));
  if (as_json) {
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
  int64_t elements = 0;
  for (const auto& v : j["initializers"]) elements += v["elements"].get<int64_t>();
  std::printf("weights   %d initializers, %s elements\n", int(j["initializers"].size()),
              with_commas(elements).c_str());
  if (ops)
    for (const auto& [op, count] : j["operators"].items())
      std::printf("  %6d  %s\n", count.get<int>(), op.c_str());
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

int check(const std::string& path, bool as_json) {
  std::vector<Finding> found = with_types_checked(check_model_file(path, all_ops()),
                                                  [&] { return load_model(path, all_ops()); });
  int errors = 0;
  json list = json::array();
  for (const Finding& f : found) {
    bool error = f.level == Finding::Level::kError;
    errors += error;
    if (as_json) {
      list.push_back({{"level", error ? "error" : "warning"},
                      {"code", f.code},
                      {"rule", f.rule},
                      {"message", f.message},
                      {"hint", f.hint}});
    } else {
      std::printf("%s[%s]: %s%s\n", error ? "error" : "warning", f.code.c_str(), f.message.c_str(),
                  f.rule.empty() ? "" : cat(" (rule ", f.rule, ")").c_str());
      if (!f.hint.empty()) std::printf("  help: %s\n", f.hint.c_str());
    }
  }
  if (as_json)
    std::printf("%s\n", list.dump(2).c_str());
  else if (errors == 0)
    std::printf("valid     %s\n", path.c_str());
  return errors ? 3 : 0;
}

// Largest difference of two tensors, relative to the larger magnitude; infinite for other types.
double difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return INFINITY;
  if (a.dtype() == DType::kString) return 0;
  std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) worst = std::max(worst, std::fabs(x[k] - y[k]));
  return worst;
}

std::string resolve_run(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return path;
  std::string last = path + "/checkpoints/last.train.onnx";
  return std::filesystem::exists(last) ? last : path + "/model.onnx";
}

std::map<std::string, const Tensor*> initializers(const Model& m) {
  std::map<std::string, const Tensor*> all;
  auto add = [&](const Graph& g) {
    for (const ValueDef& d : g.values)
      if (d.initializer && d.constant.defined()) all.emplace(d.name, &d.constant);
  };
  add(m.main);
  for (const auto& t : m.training) add(t.algorithm);
  return all;
}

int diff(const std::string& a, const std::string& b) {
  Model ma = load_model(resolve_run(a), all_ops()), mb = load_model(resolve_run(b), all_ops());
  int differences = 0;
  auto ia = initializers(ma), ib = initializers(mb);
  for (const auto& [name, t] : ia) {
    auto it = ib.find(name);
    if (it == ib.end()) {
      std::printf("only in A   %s\n", name.c_str());
      ++differences;
    } else if (double d = difference(*t, *it->second); d != 0) {
      std::printf("differs     %-32s max %.3g\n", name.c_str(), d);
      ++differences;
    }
  }
  for (const auto& [name, t] : ib)
    if (!ia.count(name)) {
      std::printf("only in B   %s\n", name.c_str());
      ++differences;
    }
  auto structure = [](const Model& m) {
    std::string s = to_text(m.main);
    for (const auto& t : m.training) s += to_text(t.algorithm);
    return s;
  };
  if (structure(ma) != structure(mb)) {
    std::printf("differs     the graphs\n");
    ++differences;
  }
  if (!differences) std::printf("same      %d tensors and the graphs are equal\n", int(ia.size()));
  return differences ? 6 : 0;
}

int doctor() {
  std::printf("onnxtrain %s\n", version());
  std::printf("threads   %d\n", default_threads());
  std::string simd = "baseline";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) simd = "AVX2";
  if (__builtin_cpu_supports("avx512f")) simd = "AVX-512";
#endif
  std::printf("simd      %s\n", simd.c_str());
  std::printf("memory    limit %.1f GiB\n", double(memory_limit()) / double(1 << 30));
  std::printf("operators %d records\n", int(all_ops().all().size()));
  return 0;
}

struct Explanation {
  const char *code, *text;
};
constexpr Explanation kExplanations[] = {
    {"OT1101",
     "The file uses an operator that has no implementation here and no function body in the "
     "standard or in the\nfile. Check the domain and opset version; custom operators can be "
     "written as model-local functions."},
    {"OT1203",
     "A parameter is asked for its gradient, but every path from it to the loss passes an operator "
     "whose result\nhas no derivative (an index, a sort order, a comparison). Train on an earlier "
     "tensor or freeze what lies before."},
    {"OT1210",
     "The file has no training_info. `onnxtrain prepare` or `onnxtrain train` makes it from an "
     "inference model."},
    {"OT2104",
     "A class label is outside the range the model's output has room for. Often labels begin at 1: "
     "--label-offset -1."},
    {"OT2110",
     "The data's shape does not fit the model's input. The message shows both; --layout nhwc moves "
     "channels."},
    {"OT3001",
     "The loss became NaN or infinite. A smaller --lr or --clip 1 usually helps; look at the data "
     "for outliers."},
    {"OT4201",
     "A checkpoint's tensor does not match its checksum: the file was damaged after it was "
     "written."},
};

int explain(const std::string& code) {
  for (const auto& e : kExplanations)
    if (code == e.code) {
      std::printf("%s\n%s\n", e.code, e.text);
      return 0;
    }
  std::fprintf(stderr, "error[OT0002]: there is no longer explanation of '%s'\n", code.c_str());
  return 2;
}

}  // namespace

void add_info(Registry& r) {
  static std::string path;
  static bool as_json, ops;
  CLI::App* c = r.add("info", "inputs, outputs, parameters, training sections of a model",
                      "  onnxtrain info model.onnx\n  onnxtrain info model.onnx --ops\n  onnxtrain "
                      "info model.onnx --json");
  c->add_option("MODEL", path, "an ONNX file")->required();
  c->add_flag("--json", as_json, "machine-readable");
  c->add_flag("--ops", ops, "count of every operator");
  r.on(c, [] { return info(path, as_json, ops); });
}

void add_check(Registry& r) {
  static std::string path;
  static bool as_json;
  CLI::App* c = r.add("check", "validity, including every rule for training files",
                      "  onnxtrain check model.train.onnx");
  c->add_option("MODEL", path, "an ONNX file")->required();
  c->add_flag("--json", as_json, "machine-readable");
  r.on(c, [] { return check(path, as_json); });
}

void add_diff(Registry& r) {
  static std::string a, b;
  CLI::App* c = r.add("diff", "compares two models, checkpoints or runs (exit 6 when different)",
                      "  onnxtrain diff runs/cnn-001 runs/cnn-002");
  c->add_option("A", a)->required();
  c->add_option("B", b)->required();
  r.on(c, [] { return diff(a, b); });
}

void add_doctor(Registry& r) {
  CLI::App* c = r.add("doctor", "what this machine and this build offer", "  onnxtrain doctor");
  r.on(c, [] { return doctor(); });
}

void add_explain(Registry& r) {
  static std::string code;
  CLI::App* c =
      r.add("explain", "a longer explanation of an error code", "  onnxtrain explain OT1203");
  c->add_option("CODE", code)->required();
  r.on(c, [] { return explain(code); });
}

}  // namespace onnxtrain::cli
