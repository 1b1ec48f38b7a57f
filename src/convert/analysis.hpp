// What a model says about its training: which loss fits, which initializers are parameters.
#pragma once
#include <string>
#include <vector>

#include "convert/prepare.hpp"

namespace onnxtrain {

// One loss term, resolved against the main graph.
struct TermSource {
  std::string kind;           // never auto
  ValueId output = kNone;     // the model output
  ValueId input = kNone;      // what the loss reads: the output, or the scores before its Softmax
  std::vector<NodeId> views;  // how the scores are brought to the shape of the output
  int64_t class_axis = 1;     // cross_entropy, nll
  std::vector<ValueId> file_inputs;  // a loss file: the outputs it names
  std::shared_ptr<const Model> file;
};

// Gives open dimensions the sizes of the recipe: batch and dims.
void fix_sizes(Model& m, const Recipe& r, const OpTable& ops);
// " for any size; --dim S=N fixes 'S'": which dimensions are open, for messages.
std::string open_sizes(const Model& m);
// The terms of the recipe (one `auto` term when it has none).
std::vector<LossTerm> terms_of(const Model& m, const Recipe& r);
// chosen: gets what `auto` decided.
TermSource resolve_term(const Model& m, const LossTerm& t, const OpTable& ops,
                        std::vector<LossChoice>* chosen = nullptr);
ValueId find_output(const Model& m, const std::string& name);

// The Softmax, LogSoftmax or Sigmoid that makes `v`, and the reshapings after it, in order.
struct Activation {
  NodeId node = -1;  // none
  std::vector<NodeId> views;
  int64_t axis = -1;  // of v that a Softmax normalised; -1: it is none, or not known
};
Activation activation_behind(const Graph& g, ValueId v);

// Values of the main graph that are running statistics of a BatchNormalization.
std::vector<char> running_statistics(const Graph& main);
// Trained initializers, as values of the main graph, in graph order. left_out: gets the weights
// that do not train although nothing freezes them; by a strict recipe they are an error.
std::vector<ValueId> parameter_values(const Model& m, const Recipe& r,
                                      const std::vector<TermSource>& terms, const OpTable& ops,
                                      std::vector<LeftOut>* left_out = nullptr);
// An exporter's counter ("val_12", "onnx::Add_7", "37") instead of a name from the source code.
bool has_generated_name(const std::string& name);
// Every element has the same bits.
bool all_equal(const Tensor& t);
// A scalar or filling that an exporter named, a mask, a table of sines: no weight by its looks. ""
// when it may be one. bias: it is a layer's bias, which may be filled with one number.
std::string look_of_a_constant(const Graph& g, ValueId v, const std::vector<NodeId>& users,
                               bool bias);
// Initializers that freeze and only leave to training.
bool is_chosen(const Recipe& r, const std::string& name);

}  // namespace onnxtrain
