// safetensors files: a JSON header and raw arrays.
#pragma once
#include "data/columns/dataset.hpp"

namespace onnxtrain {

// Every tensor of rank 1 and more is a column.
Dataset open_safetensors(const std::string& path, DataPart part);
// Do the first bytes look like one? (The length of a JSON object, then the object.)
bool looks_like_safetensors(std::string_view head, uint64_t file_size);

}  // namespace onnxtrain
