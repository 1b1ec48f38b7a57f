// Reads the exporter's metadata.
#include "onnx/kinds.hpp"

#include "onnx/message/source.hpp"

namespace onnxtrain {

std::map<std::string, std::string> exported_kinds(const Model& m) {
  std::map<std::string, std::string> kinds;
  if (!m.source) return kinds;
  for (const auto& v : m.source->proto.graph().value_info())
    for (const auto& p : v.metadata_props())
      if (p.key() == "pkg.torch.export.graph_signature.InputSpec.kind") kinds[v.name()] = p.value();
  return kinds;
}

}  // namespace onnxtrain
