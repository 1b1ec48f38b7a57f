// `export --step`: flags, and what is said about the files that were written.
#include "cli/export_step.hpp"

#include "cli/measure/bench_feeds.hpp"

namespace onnxtrain::cli {

namespace {

constexpr const char* kOnly = "only";

// -1: all of them.
int section_of(const Model& m, const StepFlags& f, const std::string& from) {
  const std::string said = f.section.empty() || f.section[0] == kOnly ? "" : f.section[0];
  if (said == "all") return -1;
  if (!said.empty()) {
    if (said.find_first_not_of("0123456789") != std::string::npos || said.size() > 6)
      usage_error("OT1261",
                  cat("--step is '", said,
                      "'; it takes the number of a training section "
                      "or all"),
                  "--step 0 is the first one,  --step all  writes each");
    return std::stoi(said);
  }
  if (m.training.size() > 1)
    usage_error("OT1261",
                cat("'", from, "' has ", m.training.size(), " training sections; --step needs one"),
                "one of them:  --step 0      every one, in files of their own:  --step all");
  return 0;
}

}  // namespace

void add_step_flags(CLI::App* c, StepFlags& f) {
  StepOptions& o = f.options;
  c->add_option("--step", f.section,
                "a training section as a plain model for other runtimes: nothing (the only one), "
                "its number, or all")
      ->type_name("[N|all]")
      ->expected(0, 1)
      ->default_str(kOnly);  // what --step alone stands for
  c->add_option("--form", o.form,
                "--step: portable (plain operators, float32) or compact (as it was lowered)")
      ->type_name("FORM");
  c->add_option("--for", o.runtime,
                "--step: the runtime it is meant for; its gaps are said, its strengths used")
      ->type_name("RUNTIME");
  c->add_option("--opset", o.opset, "--step: opset of the file, 13 to 22");
  c->add_option("--dim", f.dims, "--step: the size of an open dimension, or an input's shape")
      ->type_name("NAME=N[,N]");
  c->add_option("--indices", o.indices, "--step: int64 or int32 for labels, indices and counters")
      ->type_name("TYPE");
  c->add_option("--recurrent", o.recurrent,
                "--step: recurrent layers: unroll (a known length) or scan (it may be open)")
      ->type_name("HOW");
  c->add_option("--random", o.random,
                "--step: Dropout by a counter in the state, or from an input that you fill")
      ->type_name("counter|input");
  c->add_flag("--embed-state", o.embed_state, "--step: the initial state in the file, as defaults");
}

int export_step(const Model& m, const StepFlags& f, const std::string& from,
                const std::string& to) {
  if (m.training.empty())
    usage_error("OT1261", cat("'", from, "' has no training section"),
                cat("onnxtrain prepare ", from, " -o model.train.onnx"));
  StepOptions o = f.options;
  o.dims = parse_dims(f.dims);
  const WrittenStep w = write_step(m, section_of(m, f, from), o, to, all_ops());
  for (const std::string& line : w.warnings) warn("OT1263", line);
  for (size_t k = 0; k < w.steps.size(); ++k) {
    const StepModel& s = w.steps[k];
    say("step", cat("section ", s.section, ": ", s.nodes_before, " nodes lowered, ",
                    s.model.main.nodes.size(), " written (", o.form, "); ", s.feedback.size(),
                    " outputs go back to inputs"));
  }
  for (const std::string& file : w.files) say("saved", file);
  for (const StepModel& s : w.steps)
    for (const auto& [output, input] : s.feedback)
      say("next", cat("output '", output, "' -> input '", input, "'"));
  return 0;
}

}  // namespace onnxtrain::cli
