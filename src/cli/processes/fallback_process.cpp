// Partitions sent to a Python process.
#include "cli/processes/fallback_process.hpp"

#include <algorithm>
#include <cstring>

#include "cli/processes/python_process.hpp"
#include "core/shell.hpp"
#include "run/fallback.hpp"

namespace onnxtrain::cli {

namespace {

struct Flags {
  std::string name;
  std::vector<std::string> custom_ops;
};
Flags& flags() {
  static Flags f;
  return f;
}

std::vector<std::string> arguments(const Flags& f) {
  std::vector<std::string> a = {"", f.name};
  a.insert(a.end(), f.custom_ops.begin(), f.custom_ops.end());
  return a;
}

class FallbackProcess final : public run::Fallback {
 public:
  explicit FallbackProcess(const Flags& f)
      : name_(f.name),
        python_("onnxtrain.engines.serve_fallback", arguments(f),
                {cat("the fallback '", f.name, "'"), "OT1780", "", ""}) {
    python_.receive();
  }
  const char* name() const override { return name_.c_str(); }
  bool has_gradient(const std::string&, const std::string&) override { return false; }
  std::vector<Tensor> run_model(const std::string& model, const std::string& about,
                                const std::vector<const Tensor*>& inputs, size_t) override {
    PythonProcess::Named tensors;
    Tensor bytes(DType::kUint8, {int64_t(model.size())});
    std::memcpy(bytes.data(), model.data(), model.size());
    tensors.emplace_back("model", bytes);
    for (size_t k = 0; k < inputs.size(); ++k) tensors.emplace_back(cat(k), *inputs[k]);
    std::vector<Tensor> out;
    for (auto& [name, t] : python_.ask({{"about", about}}, tensors).second)
      out.push_back(std::move(t));
    return out;
  }

 private:
  std::string name_;
  PythonProcess python_;
};

}  // namespace

void add_fallback_flags(const Registry& r, CLI::App* c) {
  r.rare(c->add_option("--fallback", flags().name,
                       "run operators that are not known here in another runtime: onnxruntime")
             ->type_name("RUNTIME"),
         "Other runtimes");
  r.rare(c->add_option("--custom-ops", flags().custom_ops,
                       "a library of operators for the fallback; it runs code")
             ->type_name("LIB"),
         "Other runtimes");
}

void start_fallback() {
  if (flags().name.empty() && !flags().custom_ops.empty())
    usage_error("OT1781", "--custom-ops needs a runtime that loads them", "--fallback onnxruntime");
  if (!flags().name.empty()) set_foreign_runner(std::make_shared<FallbackProcess>(flags()));
}

std::string fallback_words() {
  std::string words;
  if (!flags().name.empty()) words += " --fallback " + shell_word(flags().name);
  for (const std::string& lib : flags().custom_ops) words += " --custom-ops " + shell_word(lib);
  return words;
}

std::string where_nodes_run(const Graph& g) {
  const auto n = std::count_if(g.nodes.begin(), g.nodes.end(), is_foreign);
  if (n == 0) return "";
  return cat(n, n == 1 ? " node runs in " : " nodes run in ", flags().name, ", ",
             int64_t(g.nodes.size()) - n, " here");
}

}  // namespace onnxtrain::cli
