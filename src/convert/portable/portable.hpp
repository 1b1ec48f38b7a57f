// A training step as a plain ONNX model for other runtimes, and the manifest that says how to drive
// it. The step is lowered and made one graph (convert/lower.hpp); rules rewrite it until only
// operators are left that runtimes agree on.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

struct StepOptions {
  std::string form = "portable";                     // or "compact": the lowered step as it is
  std::string runtime;                               // --for; empty: whatever runs ONNX
  int opset = 17;                                    // 13 to 22
  std::map<std::string, std::vector<int64_t>> dims;  // sizes of open dimensions, shapes of inputs
  std::string indices = "int64";                     // or "int32": labels, indices and counters
  std::string recurrent = "unroll";                  // or "scan"
  std::string random = "counter";                    // or "input": the caller fills what is drawn
  bool embed_state = false;
};

// JSON object with the names above (`runtime` is called "for"); an unknown key is an error.
StepOptions step_options_from_json(const std::string& json);

// Whole numbers that an input may hold.
struct IndexRange {
  int64_t least = 0, most = 0;
  std::optional<int64_t> ignored;  // and this one
};
struct StepInput {
  std::string name, role;  // data, target, learning_rate, state, counter, random
  TypeInfo type;
  std::optional<IndexRange> range = {};  // class numbers, rows of a table
};
struct StepOutput {
  std::string name, role;  // loss, state, output
};

struct StepModel {
  Model model;
  int section = 0;
  std::vector<StepInput> inputs;
  std::vector<StepOutput> outputs;
  std::vector<std::pair<std::string, std::string>> feedback;  // output -> input
  std::vector<std::pair<std::string, Tensor>> added_state;    // beyond the file's state
  size_t nodes_before = 0;
  std::vector<std::string> warnings;
};

// Section `which` of the training. A model error that names node and reason when it cannot be
// portable.
StepModel make_step(const Model& m, int which, const StepOptions& o, const OpTable& ops);

// Writes PATH and, beside it, what its manifest names: PATH's stem + .manifest.json and
// .state.safetensors. which < 0: every section, in STEM.0.onnx, STEM.1.onnx, ...; the names of the
// files written, the manifest last, and warnings.
struct WrittenStep {
  std::vector<std::string> files, warnings;
  std::vector<StepModel> steps;
  std::string manifest;
};
WrittenStep write_step(const Model& m, int which, const StepOptions& o, const std::string& path,
                       const OpTable& ops);

// The names that --for takes.
std::vector<std::string> known_runtimes();
// Does the runtime have the operator of --loop "loop" or "scan"? True for one that is not known.
bool has_loop(const std::string& runtime, const std::string& loop);

}  // namespace onnxtrain
