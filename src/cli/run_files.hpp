// What `train` writes into a run folder besides the logs: config.toml, command.txt, env.json,
// data.json; and the check of the exported model.
#pragma once
#include <optional>
#include <string>

#include "cli/settings.hpp"
#include "cli/train_flags.hpp"
#include "run/run_folder.hpp"

namespace onnxtrain::cli {

void set_command_line(int argc, char** argv);
void write_run_files(const RunFolder& folder, Settings& settings, const TrainFlags& f, Training& t,
                     const LoadedData& data, int64_t train_rows, int64_t valid_rows);
// Planned and real memory: one line for the user, the numbers into env.json. limit: of --memory.
void report_memory(const RunFolder& folder, const Training& t, size_t limit);
// Largest difference between model.onnx and the main graph of the best checkpoint on some rows;
// none when there is nothing to compare with.
std::optional<double> export_difference(const RunFolder& folder, const FeedColumns& sample);

}  // namespace onnxtrain::cli
