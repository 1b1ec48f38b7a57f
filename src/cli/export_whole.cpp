// `export --whole`: flags, and what is said about the file that was written.
#include "cli/export_whole.hpp"

#include "cli/measure/bench_feeds.hpp"

namespace onnxtrain::cli {

void add_whole_flags(Registry& r, CLI::App* c, WholeFlags& f) {
  WholeOptions& o = f.options;
  c->add_flag("--whole", f.wanted,
              "the entire training as one plain model: arrays and row order in, trained state out");
  const char* group = "--whole";
  r.rare(c->add_option("--epochs", o.epochs, "epochs"), group);
  r.rare(c->add_option("--batch", o.batch, "rows of a step"), group);
  r.rare(c->add_option("--rows", o.rows, "rows of the data set; 0: open (only --loop loop)"),
         group);
  r.rare(c->add_option("--loop", o.loop, "loop, scan or unrolled")->type_name("KIND"), group);
  r.rare(c->add_flag("--drop-last", o.drop_last, "no smaller batch at the end of an epoch"), group);
  r.rare(c->add_flag("--valid", o.valid, "validation arrays as inputs, metrics after every epoch"),
         group);
  r.rare(c->add_option("--valid-rows", o.valid_rows, "rows of the validation arrays; 0: open"),
         group);
  r.rare(c->add_flag("--best", o.best, "the weights of the best epoch as outputs, too"), group);
  r.rare(c->add_option("--patience", o.patience, "stop after so many epochs without a better one"),
         group);
}

int export_whole(const Model& m, const WholeFlags& f, const StepFlags& step,
                 const std::string& from, const std::string& to) {
  if (m.training.empty())
    usage_error("OT1261", cat("'", from, "' has no training section"),
                cat("onnxtrain prepare ", from, " -o model.train.onnx"));
  WholeOptions o = f.options;
  o.step = step.options;
  o.step.dims = parse_dims(step.dims);
  const WholeModel w = write_whole(m, o, to, all_ops());
  for (const std::string& line : w.warnings) warn("OT1263", line);
  say("training", cat(o.epochs, o.epochs == 1 ? " epoch" : " epochs", " in batches of ", o.batch,
                      ", ", w.step_nodes, " nodes per step (", o.loop, ")"));
  for (const WholePort& p : w.inputs)
    say("input", cat("'", p.name, "'  ", to_string(p.type), "  ", p.role));
  for (const WholePort& p : w.outputs)
    if (p.role != "state" && p.role != "best")
      say("output", cat("'", p.name, "'  ", to_string(p.type), "  ", p.role));
  size_t state = 0;
  for (const WholePort& p : w.outputs) state += p.role == "state";
  say("output", cat(state, " state variables under their own names"));
  say("saved", to);
  return 0;
}

}  // namespace onnxtrain::cli
