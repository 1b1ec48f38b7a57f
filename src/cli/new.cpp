// new: a network for data, ready to be trained.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/flags/data_flags.hpp"
#include "cli/flags/output_file.hpp"
#include "cli/flags/preprocess_flags.hpp"
#include "cli/print/parameter_counts.hpp"
#include "convert/prepare.hpp"
#include "core/shell.hpp"
#include "core/text.hpp"
#include "onnx/onnx.hpp"
#include "run/new/model.hpp"

namespace onnxtrain::cli {

namespace {

struct NewFlags {
  std::string kind, to = "model.onnx", task = "auto", image_size;
  DataFlags data;
  PreprocessFlags preprocess;
  std::vector<int64_t> hidden;
  double dropout = 0;
  uint64_t seed = 0;
  bool as_json = false;
};

std::vector<int64_t> image_size(const std::string& text) {
  std::vector<int64_t> out;
  for (const std::string& part : comma_list(text)) {
    const bool digits = part.find_first_not_of("0123456789") == std::string::npos;
    out.push_back(digits && part.size() < 6 ? std::stoll(part) : 0);
  }
  if (!text.empty() && (out.empty() || out.size() > 2 || out[0] < 1 || out.back() < 1))
    usage_error("OT0036", cat("--image-size ", text, " is neither a side nor HEIGHT,WIDTH"),
                "--image-size 64   or   --image-size 64,96");
  return out;
}

void print_json(const Model& m, const NewFlags& f, const ParameterCounts& n) {
  nlohmann::ordered_json j{{"saved", f.to},
                           {"kind", f.kind},
                           {"parameters", n.trained + n.frozen},
                           {"parameters_trained", n.trained}};
  for (ValueId v : m.main.inputs)
    j["inputs"][m.main.value_name(v)] = to_string(m.main.value(v).type);
  for (ValueId v : m.main.outputs)
    j["outputs"][m.main.value_name(v)] = to_string(m.main.value(v).type);
  std::printf("%s\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

int make(const NewFlags& f) {
  check_ending(f.to, {".onnx"}, true);
  const run::DataRequest d = f.data.request();
  if (d.feed.adapt.label_offset != 0)
    usage_error("OT0003", "--label-offset is of train: a new model takes the labels as they are",
                "leave --label-offset out");
  run::NewRequest q;
  q.kind = f.kind;
  q.data = d.data;
  q.target = d.target;
  q.drop = d.drop;
  q.encoding = d.encoding;
  q.separator = d.separator;
  for (const auto& [input, column] : d.feed.map) {
    if (input != "x" && input != "y")
      usage_error("OT0003", cat("--map ", input, "=", column, ": a new model has 'x' and 'y'"),
                  cat("--map x=", shell_word(column)));
    (input == "x" ? q.x : q.y) = column;
  }
  q.nhwc = d.feed.adapt.layout == Layout::kNhwc;
  q.task = f.task;
  q.image_size = image_size(f.image_size);
  q.skip_bad = d.skip_bad;
  q.images = d.images;
  q.text = d.text;
  q.preprocess = f.preprocess.options(d.feed.adapt.scale);
  q.hidden = f.hidden;
  q.dropout = f.dropout;
  q.seed = f.seed;
  Narrator narrator;
  const Model m = run::new_model(q, nullptr, narrator);
  save_model(m, f.to, all_ops());
  // as `train` counts them: shapes and tables of the preprocessing are no parameters
  const ParameterCounts n = count_parameters(prepare(m, {}, all_ops()));
  say("saved",
      cat(f.to, "   ", f.kind, ", ", with_commas(n.trained), " parameters", frozen_text(n)));
  if (f.as_json) print_json(m, f, n);
  say("next", cat("onnxtrain train ", shell_word(f.to), " --data ", shell_word(q.data),
                  q.target.empty() ? std::string() : " --target " + shell_word(q.target),
                  f.data.reading()));
  return 0;
}

}  // namespace

void add_new(Registry& r) {
  static NewFlags f;
  CLI::App* c = r.add("new", "a new network sized for the data, with its preprocessing inside",
                      "  onnxtrain new mlp --data titanic.csv --target survived -o model.onnx\n"
                      "  onnxtrain new cnn --data images/ -o model.onnx      one folder per class\n"
                      "  onnxtrain new lstm --data series.npz --hidden 64");
  std::string kinds;
  for (const NetworkKind& k : network_kinds()) kinds += cat(kinds.empty() ? "" : "|", k.name);
  c->add_option("KIND", f.kind, kinds)->required();
  f.data.add_to(r, c, true, true);
  c->add_option("-o,--output", f.to, "where the model goes");
  const char* network = "Network";
  c->add_option("--hidden", f.hidden, "sizes of the hidden layers: 64,32 (default: by the data)")
      ->delimiter(',')
      ->group(network);
  c->add_option("--dropout", f.dropout, "fraction of units that a training step drops")
      ->group(network);
  c->add_option("--task", f.task, "auto|classes|numbers: what the target is")
      ->check(CLI::IsMember({"auto", "classes", "numbers"}))
      ->group(network);
  c->add_option("--image-size", f.image_size, "images: a side, or HEIGHT,WIDTH")->group(network);
  r.rare(c->add_option("--seed", f.seed, "of the initial values"), network);
  f.preprocess.add_to(r, c, false);
  r.rare(c->add_flag("--json", f.as_json, "what was made, machine-readable"), "Look");
  r.on(c, [] { return make(f); });
}

}  // namespace onnxtrain::cli
