// The layers of a model: nodes that have weights, with shapes, parameters and operations per row.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/model.hpp"

namespace onnxtrain::cli {

struct Layer {
  std::string name, op, output;     // output: its shape as the file's types say
  int64_t trained = 0, others = 0;  // elements of its weights
  double flops = -1;                // of one row; -1: not known
};

// weights: the list of weights_json(). all: nodes without weights too.
std::vector<Layer> layers_of(const Model& m, const nlohmann::json& weights, bool all);
nlohmann::json layers_json(const std::vector<Layer>& layers);
// A line each; at most `most` of them.
void print_layers(const std::vector<Layer>& layers, size_t most);

}  // namespace onnxtrain::cli
