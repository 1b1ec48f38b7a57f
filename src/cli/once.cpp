// run, grad, prepare: one file in, one file out.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "cli/flags/limit_flags.hpp"
#include "cli/flags/output_file.hpp"
#include "cli/flags/recipe_flags.hpp"
#include "cli/measure/bench_feeds.hpp"
#include "core/file_kind.hpp"
#include "data/arrays/npz_file.hpp"
#include "engine/gradients.hpp"
#include "engine/session.hpp"
#include "onnx/onnx.hpp"
#include "run/start.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::ordered_json;

Feeds read_feeds(const std::string& path) {
  Feeds f;
  if (path.empty()) return f;
  if (const FileKind kind = file_kind_of(path); kind != FileKind::kNpz && kind != FileKind::kZip &&
                                                kind != FileKind::kUnknown &&
                                                kind != FileKind::kEmpty)
    data_error("OT2142", cat("'", path, "' is ", describe(kind), ", not an npz file"),
               "--inputs takes one array per input:  numpy.savez('in.npz', x=x)");
  for (auto& [name, t] : read_npz(path)) f[name] = t;
  return f;
}

void write_results(const std::string& path, const std::vector<NamedValue>& values, bool as_json) {
  NamedTensors out;
  for (const auto& [name, v] : values) {
    const Tensor* t = std::get_if<Tensor>(&v);
    if (!t)
      data_error("OT2152",
                 cat("output '", name, "' is not a tensor: it cannot be written to an npz file"),
                 "leave -o out to have it printed");
    out.emplace_back(name, *t);
  }
  ordered_json j = ordered_json::object();
  for (const auto& [name, t] : out)
    j[name] = {{"type", std::string(dtype_name(t.dtype()))}, {"shape", t.shape()}};
  if (as_json) std::printf("%s\n", ordered_json{{"values", j}, {"saved", path}}.dump().c_str());
  for (const auto& [name, t] : out)
    if (!as_json)
      std::printf("%-24s %s%s\n", name.c_str(), std::string(dtype_name(t.dtype())).c_str(),
                  to_string(t.shape()).c_str());
  if (!path.empty()) {
    write_npz(path, out);
    say("saved", path);
  }
}

std::vector<std::string> split(const std::string& s) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= s.size();) {
    size_t comma = std::min(s.find(',', at), s.size());
    if (comma > at) out.push_back(s.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

}  // namespace

void add_run(Registry& r) {
  static std::string model, inputs, output;
  static int threads = 0;
  static bool as_json = false;
  static LimitFlags limits;
  CLI::App* c = r.add("run", "inference once: npz in, npz out",
                      "  onnxtrain run model.onnx --inputs in.npz -o out.npz");
  c->add_option("MODEL", model, "an ONNX file")->required();
  c->add_option("--inputs", inputs, "npz with one array per input");
  c->add_option("-o,--output", output, "npz to write");
  c->add_flag("--json", as_json, "types and shapes, machine-readable");
  c->add_option("--threads", threads, "0: all cores this process may use")
      ->check(CLI::NonNegativeNumber);
  limits.add_to(r, c);
  r.on(c, [] {
    ProgramOptions o;
    o.threads = threads;
    o.limits = limits.limits();
    check_ending(output, {".npz"}, true);
    Session s(std::make_shared<const Model>(load_model(model, all_ops())), o);
    write_results(output, s.run(read_feeds(inputs)), as_json);
    return 0;
  });
}

void add_grad(Registry& r) {
  static std::string model, inputs, output, of, wrt;
  static bool as_json = false;
  static LimitFlags limits;
  CLI::App* c =
      r.add("grad", "gradients of any output with respect to any tensors",
            "  onnxtrain grad model.onnx --of logits --wrt fc.weight,x --inputs in.npz -o g.npz");
  c->add_option("MODEL", model, "an ONNX file")->required();
  c->add_option("--of", of, "outputs, comma-separated (default: all floating-point ones)");
  c->add_option("--wrt", wrt, "tensors, comma-separated")->required();
  c->add_option("--inputs", inputs, "npz with one array per input");
  c->add_option("-o,--output", output, "npz to write");
  c->add_flag("--json", as_json, "types and shapes, machine-readable");
  limits.add_to(r, c);
  r.on(c, [] {
    ProgramOptions o;
    o.limits = limits.limits();
    check_ending(output, {".npz"}, true);
    GradientRequest q;
    q.of = split(of);
    q.wrt = split(wrt);
    write_results(output, gradients(load_model(model, all_ops()), read_feeds(inputs), q, o),
                  as_json);
    return 0;
  });
}

void add_prepare(Registry& r) {
  static std::string model, output;
  static RecipeFlags flags;
  static uint64_t seed = 0;
  static int64_t steps = 0, batch = 0;
  static bool as_json = false;
  static std::vector<std::string> dims;
  CLI::App* c =
      r.add("prepare", "add loss, gradient and optimizer to a model: inference to training ONNX",
            "  onnxtrain prepare model.onnx -o model.train.onnx\n"
            "  onnxtrain prepare model.onnx -o m.onnx --loss mse --optimizer sgd --lr "
            "0.1 --freeze 'backbone.*'");
  c->add_option("MODEL", model, "an ONNX file")->required();
  c->add_option("-o,--output", output, "file to write")->required();
  c->add_option("--seed", seed, "of --reset")->check(CLI::NonNegativeNumber);
  c->add_option("--total-steps", steps, "length of the training, for schedules that span it");
  c->add_option("--batch,--batch-size", batch,
                "fixes the number of rows (with --lowered some operators need it)")
      ->check(CLI::PositiveNumber);
  c->add_option("--dim", dims, "NAME=128: fixes an open dimension; INPUT=8,128: a shape");
  flags.add_to(r, c, false);
  c->add_flag("--lowered", flags.lowered,
              "no Gradient node: a plain inference runtime can run the step");
  c->add_flag("--json", as_json, "machine-readable");
  r.on(c, [] {
    check_ending(output, {".onnx"}, true);
    Model m = load_model(model, all_ops());
    Recipe recipe = flags.recipe(seed, steps);
    recipe.batch = batch;
    recipe.dims = parse_dims(dims);
    Narrator narrator;
    const Model t = run::prepare_told(m, recipe, narrator);
    save_model(t, output, all_ops());
    say("saved", cat(output, "   ", t.training[0].update_binding.size(), " state variables"));
    if (as_json)
      std::printf("%s\n", ordered_json{{"saved", output},
                                       {"loss", t.metadata.at("onnxtrain.loss")},
                                       {"output", t.metadata.at("onnxtrain.output")},
                                       {"state_variables", t.training[0].update_binding.size()}}
                              .dump()
                              .c_str());
    return 0;
  });
}

}  // namespace onnxtrain::cli
