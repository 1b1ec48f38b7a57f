// Options of a whole training, the steps for its batch sizes, and its file.
#include "convert/whole/whole.hpp"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "convert/portable/rewrite.hpp"
#include "convert/whole/epochs.hpp"
#include "core/version.hpp"
#include "onnx/onnx.hpp"
#include "op/needs_shape.hpp"

namespace onnxtrain {

namespace {

using whole::Part;
using whole::RowInputs;
using whole::Scope;
using whole::Sized;

constexpr size_t kMostNodes = 200000;  // of an unrolled training

void check_options(const WholeOptions& o) {
  if (o.loop != "loop" && o.loop != "scan" && o.loop != "unrolled")
    usage_error("OT1770", cat("--loop is '", o.loop, "'; known: loop, scan, unrolled"),
                "--loop loop");
  auto positive = [](const char* flag, int64_t v, int64_t least) {
    if (v < least)
      usage_error("OT1770", cat(flag, " is ", v, "; it is at least ", least),
                  cat(flag, " ", least));
  };
  positive("--epochs", o.epochs, 1);
  positive("--batch", o.batch, 1);
  positive("--rows", o.rows, 0);
  positive("--valid-rows", o.valid_rows, 0);
  positive("--patience", o.patience, 0);
  if (o.step.form != "portable")
    usage_error("OT1770",
                "a whole training is made of portable steps; --form compact does not go "
                "with --whole",
                "leave --form out");
  if (o.step.random != "counter")
    usage_error("OT1770",
                "--random input would need numbers for every step at once: --whole has only "
                "--random counter",
                "leave --random out");
  if (o.step.embed_state)
    usage_error("OT1770", "--embed-state is of --step; a whole training always holds its state",
                "leave --embed-state out");
  if (o.loop != "loop" && o.rows == 0)
    usage_error("OT1770", cat("--loop ", o.loop, " needs the number of rows"), "--rows 60000");
  if (o.loop != "loop" && o.valid && o.valid_rows == 0)
    usage_error("OT1770", cat("--loop ", o.loop, " needs the number of validation rows"),
                "--valid-rows 10000");
  if (o.rows > 0 && o.rows < o.batch)
    usage_error("OT1770",
                cat("there are ", o.rows, " rows, fewer than a batch of ", o.batch, " (--batch)"),
                cat("--batch ", o.rows));
  if (o.valid_rows > 0 && !o.valid)
    usage_error("OT1770", "there are validation rows but no validation arrays", "--valid");
}

// What the runtime of --for is known not to run, or to run wrongly.
void check_runtime(const WholeOptions& o, std::vector<std::string>& warnings) {
  const std::string& runtime = o.step.runtime;
  if (runtime == "mnn" && o.loop == "loop" && o.rows == 0)
    usage_error("OT1770",
                "MNN computes a Loop over an open number of rows wrongly, without an error "
                "(docs/engines.md)",
                "--loop unrolled --rows N, or  --rows N");
  if (!has_loop(runtime, o.loop))
    warnings.push_back(cat(runtime, " has no operator for --loop ", o.loop, " (",
                           o.loop == "loop" ? "Loop" : "Scan",
                           "); written out it runs:  --loop unrolled --rows N"));
}

void check_batch_of_file(const WholeOptions& o, const RowInputs& rows) {
  if (rows.fixed == 0) return;
  if (rows.fixed != o.batch)
    usage_error("OT1770",
                cat("the file fixes batches of ", rows.fixed, " rows, --batch is ", o.batch),
                cat("--batch ", rows.fixed));
  if (o.rows % o.batch != 0 && !o.drop_last)
    usage_error("OT1770",
                cat(o.rows, " rows are no whole number of batches of ", o.batch,
                    ", and the file fixes that size"),
                "--drop-last leaves the rest of every epoch out");
  if (o.valid && o.valid_rows % o.batch != 0)
    usage_error("OT1770",
                cat(o.valid_rows, " validation rows are no whole number of batches of ", o.batch,
                    ", and the file fixes that size"),
                cat("--valid-rows ", o.valid_rows / o.batch * o.batch));
  if (o.valid && o.valid_rows == 0)
    usage_error("OT1770", "the file fixes the batch: validation needs the number of its rows",
                "--valid-rows N");
}

// Steps of every section for batches of n rows; 0: of any number.
std::vector<Part> parts(const Model& m, const std::vector<int>& sections, int64_t n,
                        const WholeOptions& o, const RowInputs& rows, Scope& root,
                        std::vector<std::string>& warnings) {
  StepOptions step = o.step;
  if (rows.fixed == 0 && n > 0)
    for (const std::string& symbol : rows.symbols) step.dims[symbol] = {n};
  std::vector<Part> made;
  for (int k : sections) {
    std::optional<NeedsShape> lacking = apply_rules([&] {
      StepModel s = make_step(m, k, step, root.b.table());
      for (const std::string& line : s.warnings)
        if (std::find(warnings.begin(), warnings.end(), line) == warnings.end())
          warnings.push_back(line);
      made.emplace_back(std::move(s), root);
    });
    if (!lacking) continue;
    if (n == 0)
      lacking->why.add_place(
          "the rows at the end of an epoch are open; --rows N fixes them (and --valid-rows N), "
          "--drop-last leaves them out");
    throw std::move(lacking->why);
  }
  return made;
}

Sized sized(const Model& m, const WholeOptions& o, const RowInputs& rows, const Scores& scores,
            Scope& root, std::vector<std::string>& warnings) {
  std::vector<int> all;
  for (size_t k = 0; k < m.training.size(); ++k) all.push_back(int(k));
  Sized s;
  s.steps_full = o.rows / o.batch;
  s.last_rows = o.drop_last ? 0 : o.rows % o.batch;
  s.steps = parts(m, all, o.batch, o, rows, root, warnings);
  const bool open_rest = o.rows == 0 && !o.drop_last && rows.fixed == 0;
  if (s.last_rows > 0 || open_rest) s.last = parts(m, all, s.last_rows, o, rows, root, warnings);
  if (!o.valid) return s;
  const Model e = portable::evaluation_model(m, scores);
  s.checks_full = o.valid_rows / o.batch;
  s.check_rows = o.valid_rows % o.batch;
  s.check = parts(e, {0}, o.valid_rows > 0 ? o.batch : 0, o, rows, root, warnings);
  if (s.check[0].output("loss") < 0)
    model_error("OT1772", "validation needs the loss, and the training has no output for it",
                "leave --valid out");
  if (s.check_rows > 0) s.check_last = parts(e, {0}, s.check_rows, o, rows, root, warnings);
  return s;
}

void check_size(const WholeOptions& o, const Sized& s) {
  if (o.loop != "unrolled") return;
  size_t step = 0, check = 0;
  for (const Part& p : s.steps) step += p.step().model.main.nodes.size();
  for (const Part& p : s.check) check += p.step().model.main.nodes.size();
  const size_t nodes = size_t(o.epochs) * (size_t(s.steps_full + !s.last.empty()) * step +
                                           size_t(s.checks_full + !s.check_last.empty()) * check);
  if (nodes > kMostNodes)
    usage_error("OT1770",
                cat("unrolled, this training has ", nodes, " nodes, more than ", kMostNodes),
                "--loop loop, or fewer epochs or larger batches");
}

}  // namespace

WholeModel make_whole(const Model& m, const WholeOptions& o, const OpTable& ops) {
  check_options(o);
  if (m.training.empty())
    usage_error("OT1261", "the file has no training section",
                "write one first:  onnxtrain prepare MODEL -o MODEL.train.onnx");
  const RowInputs rows = whole::row_inputs(m);
  check_batch_of_file(o, rows);
  for (const std::string& symbol : rows.symbols)
    if (o.step.dims.contains(symbol))
      usage_error("OT1770", cat("--dim ", symbol, ": that dimension counts the rows of a batch"),
                  "--batch gives it");
  const Scores scores = describe_scores(m);
  WholeModel w;
  check_runtime(o, w.warnings);
  Scope root(ops, o.step.opset);
  root.g.name = "whole_training";
  Sized s = sized(m, o, rows, scores, root, w.warnings);
  for (const Part& p : s.steps) w.step_nodes += p.step().model.main.nodes.size();
  const bool has_loss = std::any_of(s.steps.begin(), s.steps.end(),
                                    [](const Part& p) { return p.output("loss") >= 0; });
  if ((o.best || o.patience > 0) && !o.valid && !has_loss)
    usage_error("OT1770", "--best and --patience need a loss, and the training has none",
                "leave them out");
  check_size(o, s);
  const StepModel& first = s.steps[0].step();
  w.model.ir_version = first.model.ir_version;
  w.model.opsets[""] = o.step.opset;
  w.model.producer_name = "onnxtrain";
  w.model.producer_version = version();
  whole::Epochs(m, o, rows, scores, root, std::move(s)).build(w);
  root.g.remove_dead();
  root.g.renumber();
  root.g.verify("whole training");
  w.model.edit_main() = std::move(root.g);
  return w;
}

std::string whole_manifest(const WholeModel& w, const WholeOptions& o) {
  using Json = nlohmann::ordered_json;
  Json j{{"format", "onnxtrain.whole"},
         {"version", 1},
         {"producer", cat("onnxtrain ", version())},
         {"loop", o.loop},
         {"epochs", o.epochs},
         {"batch", o.batch},
         {"drop_last", o.drop_last},
         {"patience", o.patience}};
  auto ports = [](const std::vector<WholePort>& all) {
    Json list = Json::array();
    for (const WholePort& p : all) {
      Json one{{"name", p.name}, {"role", p.role}};
      if (!p.of.empty()) one["of"] = p.of;
      one["type"] = to_string(p.type);
      list.push_back(std::move(one));
    }
    return list;
  };
  j["inputs"] = ports(w.inputs);
  j["outputs"] = ports(w.outputs);
  return j.dump(1);
}

WholeModel write_whole(const Model& m, const WholeOptions& o, const std::string& path,
                       const OpTable& ops) {
  WholeModel w = make_whole(m, o, ops);
  w.model.metadata["onnxtrain.whole_manifest"] = whole_manifest(w, o);
  save_model(w.model, path, ops);
  return w;
}

WholeOptions whole_options_from_json(const std::string& json) {
  WholeOptions o;
  nlohmann::json j =
      json.empty() ? nlohmann::json::object() : nlohmann::json::parse(json, nullptr, false);
  if (!j.is_object())
    usage_error("OT1770", "the options of a whole training are not a JSON object");
  auto take = [&](const char* key, auto& to) {
    if (!j.contains(key)) return;
    try {
      j.at(key).get_to(to);
    } catch (const nlohmann::json::exception&) {
      usage_error("OT1770", cat("the option '", key, "' of a whole training has the wrong type"));
    }
    j.erase(key);
  };
  take("loop", o.loop);
  take("epochs", o.epochs);
  take("batch", o.batch);
  take("rows", o.rows);
  take("valid_rows", o.valid_rows);
  take("valid", o.valid);
  take("best", o.best);
  take("drop_last", o.drop_last);
  take("patience", o.patience);
  o.step = step_options_from_json(j.dump());
  return o;
}

}  // namespace onnxtrain
