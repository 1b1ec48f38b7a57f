// Options of `train`: fourteen that everybody needs, the others under --help-all.
#include "cli/flags/train_flags.hpp"

namespace onnxtrain::cli {

namespace {

// Who makes the steps: an engine, several processes.
void add_engine_flags(Registry& r, CLI::App* c, std::string& engine, ProcessFlags& processes) {
  processes.add_to(r, c);
  r.rare(c->add_option("--engine", engine,
                       "who makes the steps: native, or onnxruntime|openvino|iree|tinygrad with "
                       ":DEVICE (needs Python; always in a process of its own)"),
         "Run");
  static bool isolated = true;
  r.rare(c->add_flag("--engine-isolated", isolated,
                     "the engine in a process of its own: always so on the command line"),
         "Run");
}

}  // namespace

run::Request TrainFlags::request() const {
  run::Request q;
  q.model = model;
  q.resume = resume;
  q.out = out;
  q.command = command_line();
  q.data = data.request();
  q.data.valid = valid;
  q.data.overfit = overfit;
  q.seed = seed;
  if (preprocess.any()) {
    if (resume.empty()) q.preprocess = preprocess.options(q.data.feed.adapt.scale);
    q.data.feed.adapt.scale = "auto";  // it is done by the model
  }
  q.recipe = [this] { return recipe.recipe(seed, 0); };
  q.recipe_flag = recipe.first_given();
  q.balanced = recipe.balanced();
  q.program.threads = threads;
  q.program.limits = limits.limits();
  q.program.limits.seconds = fit.max_seconds;
  q.program.limits.seconds_in_loops = true;  // the training itself ends after that time
  q.fit = fit;
  q.fit.shuffle = !no_shuffle;
  q.fit.check_finite = !allow_non_finite;
  q.cut = processes.cut;
  q.communicator = connected_processes();
  return q;
}

// What is shown, and runs that only look.
void TrainFlags::add_look_flags(Registry& r, CLI::App* c) {
  const char* look = "Look";
  r.rare(c->add_option("--progress", progress, "auto|bar|lines|json|none")
             ->check(CLI::IsMember({"auto", "bar", "lines", "json", "none"})),
         look);
  r.rare(c->add_flag("--json", as_json, "--progress json, and the result as the last line"), look);
  r.rare(
      c->add_option("--profile", profile, "write a Chrome trace there, print where the time went"),
      look);
  r.rare(c->add_flag("-q,--quiet", quiet, "errors only"), look);
  r.rare(c->add_option("--overfit", overfit, "train on that many rows only: can the model learn?")
             ->check(CLI::NonNegativeNumber),
         look);
  r.rare(
      c->add_flag("--find-lr", find_lr, "try learning rates from small to large and suggest one"),
      look);
}

CLI::App* TrainFlags::add_to(Registry& r) {
  CLI::App* c = app =
      r.add("train", "train a model: a plain ONNX file, or one that carries its training",
            "  onnxtrain train cnn.onnx --data mnist/ --epochs 3\n"
            "  onnxtrain train mlp.onnx --data data.npz --loss mse --optimizer sgd --lr 0.01\n"
            "  onnxtrain train --resume runs/cnn-001 --epochs 6");
  c->add_option("MODEL", model, "an ONNX file, with or without training inside");
  data.add_to(r, c, false, true);
  c->add_option("--valid", valid, "a fraction of the data, or another file; 0: none")
      ->group("Data");
  r.rare(c->add_flag("--no-shuffle", no_shuffle, "rows in the order of the file"), "Data");
  preprocess.add_to(r, c, true);
  const char* length = "Length";
  c->add_option("--epochs", fit.epochs,
                "number of epochs, in all (a network of `new`: by its rows)")
      ->check(CLI::PositiveNumber)
      ->group(length);
  fit.batch = 32;
  c->add_option("--batch,--batch-size", fit.batch, "rows per batch")
      ->check(CLI::PositiveNumber)
      ->group(length);
  r.rare(c->add_option("--steps", fit.max_steps, "stop after this many steps")
             ->check(CLI::NonNegativeNumber),
         length);
  r.rare(c->add_option("--time", fit.max_seconds, "stop after this many seconds")
             ->check(CLI::NonNegativeNumber),
         length);
  r.rare(
      c->add_option("--patience", fit.patience, "stop after this many epochs without improvement")
          ->check(CLI::NonNegativeNumber),
      length);
  r.rare(c->add_option("--metric", fit.metric,
                       "what decides the best epoch: accuracy|f1|precision|recall|auc|mae|rmse|r2|"
                       "loss"),
         length);
  recipe.add_to(r, c, true);
  const char* run = "Run";
  c->add_option("--out", out, "run folder (default runs/MODEL-NNN)")->group(run);
  c->add_option("--resume", resume, "resume a run or checkpoint")->group(run);
  c->add_option("--threads", threads, "0: all cores this process may use")
      ->check(CLI::NonNegativeNumber)
      ->group(run);
  add_engine_flags(r, c, engine, processes);
  c->add_flag("--dry-run", dry_run, "say what would be done, and stop")->group(run);
  limits.add_memory(r, c,
                    "limit for state and step (500M): recomputes activations instead of keeping "
                    "them");
  limits.add_trips(r, c);
  r.rare(c->add_option("--config", config, "a toml file with options by their long names"), run);
  r.rare(c->add_option("--save-every", fit.save_every, "steps between checkpoints (0: epochs)")
             ->check(CLI::NonNegativeNumber),
         run);
  r.rare(c->add_option("--keep", fit.keep, "checkpoints of epochs to keep besides last and best")
             ->check(CLI::NonNegativeNumber),
         run);
  r.rare(c->add_option("--seed", seed, "of data order, split, dropout, --reset")
             ->check(CLI::NonNegativeNumber),
         run);
  static bool deterministic = true;
  r.rare(c->add_flag("--deterministic", deterministic,
                     "the same bits in every run, with any number of threads: always so"),
         run);
  r.rare(c->add_flag("--allow-non-finite", allow_non_finite,
                     "continue when a loss, gradient or weight is NaN or Inf"),
         run);
  add_look_flags(r, c);
  return c;
}

}  // namespace onnxtrain::cli
