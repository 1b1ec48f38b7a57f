// Class labels that a graph writes itself (ZipMap, ArrayFeatureExtractor, classifiers of
// ai.onnx.ml: files of scikit-learn's exporter).
#pragma once
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace onnxtrain {

// Of class 0, 1, ..., in order; empty when there are none, or when they are simply 0, 1, 2, ...
std::vector<std::string> class_labels(const Graph& main);

}  // namespace onnxtrain
