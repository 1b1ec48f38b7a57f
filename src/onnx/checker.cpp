#include "onnx/checker.hpp"
namespace onnxtrain {
std::vector<Finding> check_versions(const ModelSource&) { return {}; }
std::vector<Finding> check_source(ModelSource&, const OpTable&) { return {}; }
void throw_first_error(const std::vector<Finding>& findings) {
  for (const Finding& f : findings)
    if (f.level == Finding::Level::kError) model_error(f.code, f.message, f.hint);
}
}  // namespace onnxtrain
namespace onnxtrain {
std::vector<Finding> check_model_file(const std::string&, const OpTable&, const LoadOptions&) { return {}; }
std::vector<Finding> check_model_bytes(std::string_view, const std::string&, const OpTable&, const LoadOptions&) { return {}; }
}
