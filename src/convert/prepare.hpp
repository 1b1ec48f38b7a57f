// Inference model + recipe -> training model: loss, Gradient, optimizer, schedule, clipping as
// graph (rulings G7, G13, G14, G15).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

struct LossTerm {
  // auto, cross_entropy, nll, mse, l1, huber, bce, bce_logits, kl, hinge, or a path ending in .onnx
  std::string kind = "auto";
  std::string output;              // model output it applies to; empty: the only or first one
  std::string label;               // name of the target input; empty: "label" (or label_1, ...)
  double weight = 1;               // of this term in the sum
  std::string reduction = "mean";  // mean, sum
  std::vector<float> class_weights;
  std::optional<int64_t> ignore_index;
  double label_smoothing = 0;
  double delta = 1;  // huber
};

struct ParameterOverride {
  std::string glob;
  std::optional<double> weight_decay;
  double lr_scale = 1;
};

struct OptimizerSpec {
  // A word of the optimizers' records (op/optimizer.hpp), or a path ending in .onnx. PyTorch's
  // arguments and mathematics.
  std::string kind = "adamw";
  std::optional<double> lr, weight_decay;               // defaults of the kind
  std::map<std::string, double, std::less<>> settings;  // the others by name; flags are 0 or 1
  std::string style = "torch";                          // or "keras" where Keras differs
  bool no_decay_on_bias_and_norm = false;
  std::map<std::string, double> attributes;  // onnx_*: the operator's own attributes
  std::optional<int64_t> t0;                 // first value of the counter
  std::vector<ParameterOverride> overrides;
};

struct ScheduleSpec {
  // constant, step, multistep, exponential, cosine, linear, onecycle, polynomial
  std::string kind = "constant";
  std::map<std::string, double>
      numbers;  // step_size, gamma, total_steps, warmup_steps, min_lr, power, ...
  std::vector<int64_t> milestones;
};

struct Recipe {
  std::vector<LossTerm> losses;  // empty: one term, chosen by `auto`
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  std::vector<std::string> freeze, only;  // globs over initializer names
  double clip_norm = 0, clip_value = 0;   // 0: off
  int accumulate = 1;
  std::string mode = "train";  // "as_is": the graph exactly as written
  bool append = false;         // one more training section behind those that the model has
  bool lowered = false;        // no Gradient node: explicit backward in standard operators
  // Some operators can be lowered only when their shapes are numbers: the number of rows (0 leaves
  // it open), and by name the size of an open dimension or the whole shape of an input.
  int64_t batch = 0;
  std::map<std::string, std::vector<int64_t>> dims;
  bool reset = false;  // new initial values by sensible initialisers
  uint64_t seed = 0;
  // BatchNormalization's running variance: "torch" (unbiased) or "onnx" (population variance, as
  // the operator itself gives it)
  std::string bn_variance = "torch";
  bool strict = false;  // weights that would not train are an error, not a warning
  // Random changes of images in the training form only: "flip,crop:4,my.onnx"
  // (convert/step/augment.hpp)
  std::string augment;
};

// JSON object with the field names above; an unknown key is an error with a suggestion.
Recipe recipe_from_json(const std::string& json);

// All optimizers with their settings and defaults, as JSON (op/optimizer.hpp).
const std::string& optimizer_records();

// The model's metadata says so (`onnxtrain new`): numbers, whatever the shape of the output.
bool is_made_for_numbers(const Model& m);
// What `auto` chose and why, for the printed line.
struct LossChoice {
  std::string kind, output, because;
};
LossChoice choose_loss(const Model& m, const std::string& output = {});
// What `auto` would choose for this file: prepare looks at it after bringing it forward and after
// taking weights out of attributes.
LossChoice loss_for_training(const Model& source);

// Weights that do not train although nothing freezes them, by one cause.
struct LeftOut {
  std::vector<std::string> names;
  std::string node;  // where the gradient stops; "" when that is not the cause
  std::string text, hint;
};

// A setting with which hardly anything is learnt, and what is usual.
struct OddSetting {
  std::string text, hint;
};

// What prepare decided and what is worth saying about it.
struct Decisions {
  std::vector<LossChoice> losses;  // of each term that is `auto`
  std::vector<LeftOut> left_out;
  std::vector<OddSetting> settings;
};

// Names of the initializers that would be trained under this recipe, in graph order.
std::vector<std::string> trainable_parameters(const Model& m, const Recipe& r);

Model prepare(const Model& m, const Recipe& r, const OpTable& ops, Decisions* decided = nullptr);

// What every initializer is to a training by this recipe, as JSON. "weights": objects with name,
// dtype, shape, elements, role ("trained", "constant", ...), because and, where the gradient stops,
// node; "left_out": what LeftOut has; "settings": what OddSetting has. A file that carries its
// training is described by that.
std::string weights_json(const Model& m, const Recipe& r);

// Step `which` of a lowered training model as a plain inference model: inputs are the data and
// every state variable it reads (and the learning rate), outputs the loss and the new state, in the
// order of the algorithm's outputs. An ordinary runtime runs it; the caller feeds the state back by
// update_binding.
Model flatten_step(const Model& m, int which = 0);

}  // namespace onnxtrain
