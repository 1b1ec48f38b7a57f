// `--fallback NAME`: operators that this library does not know run in a Python process
// (onnxtrain/engines/serve_fallback.py).
#pragma once
#include <string>
#include <vector>

#include "cli/common/commands.hpp"
#include "graph/graph.hpp"

namespace onnxtrain::cli {

// Adds --fallback and --custom-ops to a command that reads models.
void add_fallback_flags(const Registry& r, CLI::App* c);
// Starts the process if it was asked for; before the command runs.
void start_fallback();
// Those flags again, for a command that is printed: "" or " --fallback onnxruntime".
std::string fallback_words();
// "", or how many of the graph's nodes run where.
std::string where_nodes_run(const Graph& g);

}  // namespace onnxtrain::cli
