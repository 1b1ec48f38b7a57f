// Placeholder.
#include "convert/prepare.hpp"
namespace onnxtrain {
Recipe recipe_from_json(const std::string&) { return {}; }
Model prepare(const Model& m, const Recipe&, const OpTable&) { return m; }
}
