// The entire training as one ordinary ONNX model: inputs are the arrays of a data set and the order
// of its rows, outputs the trained state, losses and metrics. Made of portable steps
// (convert/portable) in a loop, a scan or one after the other.
#pragma once
#include "convert/portable/portable.hpp"

namespace onnxtrain {

struct WholeOptions {
  StepOptions step;           // opset, for, dims, indices
  std::string loop = "loop";  // or "scan", "unrolled"
  int64_t epochs = 1, batch = 32;
  int64_t rows = 0, valid_rows = 0;  // of the arrays; 0: open
  bool valid = false;                // validation arrays and metrics on them
  bool best = false;                 // the weights of the best epoch, too
  bool drop_last = false;            // no batch of fewer rows at the end of an epoch
  int64_t patience = 0;              // epochs without a better one before it stops; 0: never
};

// JSON object with the names above and those of StepOptions; an unknown key is an error.
WholeOptions whole_options_from_json(const std::string& json);

struct WholePort {
  std::string name, role;  // data, target, order, valid | state, losses, metric, epochs, best
  std::string of;          // the input of the step, or the state variable, that it belongs to
  TypeInfo type;
};

struct WholeModel {
  Model model;
  std::vector<WholePort> inputs, outputs;
  size_t step_nodes = 0;  // of one training step
  std::vector<std::string> warnings;
};

WholeModel make_whole(const Model& m, const WholeOptions& o, const OpTable& ops);

// JSON: what the inputs and outputs are.
std::string whole_manifest(const WholeModel& w, const WholeOptions& o);

// Writes it, with the manifest in metadata_props under onnxtrain.whole_manifest.
WholeModel write_whole(const Model& m, const WholeOptions& o, const std::string& path,
                       const OpTable& ops);

}  // namespace onnxtrain
