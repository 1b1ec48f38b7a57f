// What an exporter wrote about its tensors beside the graph.
#pragma once
#include <map>
#include <string>

#include "model/model.hpp"

namespace onnxtrain {

// Name of an initializer -> "PARAMETER", "BUFFER", ...: what it was in the source program, by
// torch.export's signature in the metadata of its value_info. Empty for other files.
std::map<std::string, std::string> exported_kinds(const Model& m);

}  // namespace onnxtrain
