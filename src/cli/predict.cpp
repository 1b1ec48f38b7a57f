// predict: every output for every row, to csv, npz, npy or JSON.
#include "run/predict.hpp"

#include <cstdio>
#include <filesystem>

#include "cli/common/commands.hpp"
#include "cli/flags/data_flags.hpp"
#include "cli/flags/limit_flags.hpp"
#include "cli/flags/output_file.hpp"
#include "cli/print/prediction_files.hpp"
#include "cli/processes/processes.hpp"
#include "core/file.hpp"
#include "data/arrays/npz_file.hpp"
#include "run/borrowed.hpp"
#include "run/folder/folder.hpp"
#include "run/folder/settings.hpp"

namespace onnxtrain::cli {

namespace {

struct PredictFlags {
  std::string what, to;
  DataFlags data;
  LimitFlags limits;
  ProcessFlags processes;
  int64_t batch = 256;
  int threads = 0;
  bool proba = false, as_json = false;
};

// What a run was trained on would be lost.
void keep_data_of_run(const std::string& run, const std::string& to) {
  std::error_code ec;
  const std::string config = run::Folder(run).config();
  if (to.empty() || !std::filesystem::is_regular_file(config, ec)) return;
  for (const auto& [name, value] : run::settings_in(config)) {
    if (name != "data" && name != "valid") continue;
    if (!std::filesystem::equivalent(run::unquoted(value), to, ec)) continue;
    usage_error(
        "OT0012",
        cat("-o ", to, " would overwrite the data that '", run, "' was trained on (", name, ")"),
        "-o predictions" + std::filesystem::path(to).extension().string());
  }
}

int predict(PredictFlags& f) {
  if (f.to == "-") f.to.clear();  // standard output
  check_ending(f.to, {".csv", ".tsv", ".npz", ".npy", ".json"}, false);
  keep_data_of_run(f.what, f.to);
  ProgramOptions po;
  f.processes.options.program = "onnxtrain predict";
  Communicator* processes = f.processes.connect(f.threads);
  const bool speaks = !processes || processes->rank() == 0;
  run::Borrowed borrowed;  // of a run that rank 0 alone sees
  if (processes) f.what = borrowed.find(*processes, f.what, run::Borrowed::For::kPredicting);
  po.threads = f.threads;
  po.limits = f.limits.limits();
  Narrator narrator;
  run::Predictions p = run::predict(f.what, f.data.request(), f.batch, po, narrator, processes);
  disconnect_processes();
  if (!speaks) return 0;
  if (f.proba) run::make_probabilities(p);
  if (f.to.empty()) {
    std::printf("%s", (f.as_json ? json_text(p) : csv_text(p, ',')).c_str());
    return 0;
  }
  const run::PredictedOutput& main = p.outputs[p.main];
  if (f.to.ends_with(".npz"))
    write_predictions_npz(f.to, p);
  else if (f.to.ends_with(".npy"))
    write_npy(f.to, main.rows);
  else if (f.to.ends_with(".json"))
    write_file(f.to, json_text(p));
  else
    write_file(f.to, csv_text(p, f.to.ends_with(".tsv") ? '\t' : ','));
  if (f.to.ends_with(".npy") && p.outputs.size() > 1)
    say("note", cat("npy holds one array: '", main.name, "' of ", p.outputs.size(),
                    " outputs   (-o FILE.npz for all)"));
  const int64_t rows = main.rows.shape()[0];
  say("saved", cat(f.to, "   ", with_commas(rows), rows == 1 ? " row" : " rows"));
  if (f.as_json) std::printf("%s", json_summary(p, f.to).c_str());
  return 0;
}

}  // namespace

void add_predict(Registry& r) {
  static PredictFlags f;
  CLI::App* c = r.add("predict", "predictions to csv, npz, npy or JSON",
                      "  onnxtrain predict runs/cnn-001 --data new.npz -o pred.csv\n"
                      "  onnxtrain predict model.onnx --data new.csv -o pred.npy\n"
                      "  cat new.csv | onnxtrain predict runs/t-001 --data - --proba");
  c->add_option("RUN|MODEL", f.what, "a run folder, a checkpoint or a model")->required();
  f.data.add_to(r, c, true, false);
  c->add_option("-o,--output", f.to,
                "file.csv, .tsv, .npz (an array per output), .npy or .json (default: csv to "
                "standard output)");
  c->add_option("--batch,--batch-size", f.batch, "rows per batch")->check(CLI::PositiveNumber);
  c->add_option("--threads", f.threads, "0: all cores this process may use")
      ->check(CLI::NonNegativeNumber);
  c->add_flag("--proba", f.proba, "probabilities instead of scores of classes");
  f.processes.add_connection(r, c);
  c->add_flag("--json", f.as_json, "JSON to standard output; with -o what was written");
  f.limits.add_to(r, c);
  r.on(c, [] { return predict(f); });
}

}  // namespace onnxtrain::cli
