// Whole npz and npy files as tensors: feeds and results of `run`, `grad`, `predict`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.hpp"

namespace onnxtrain {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Every array of the archive, in the file's order; names without ".npy".
NamedTensors read_npz(const std::string& path);
// Atomic; element types that numpy lacks are written as their storage (uint8, uint16).
void write_npz(const std::string& path, const NamedTensors& arrays);
void write_npy(const std::string& path, const Tensor& array);

}  // namespace onnxtrain
