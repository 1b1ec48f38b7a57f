// The text of the optimizers' functions.
#include "ops/optim/optimizer_function.hpp"

#include <deque>

#include "core/error.hpp"

namespace onnxtrain::ops {

std::string function_text(const std::string& name, const std::vector<const char*>& attributes,
                          const char* inputs, const char* outputs, const std::string& body) {
  std::string list, constants;
  for (const char* a : attributes) {
    list += cat(list.empty() ? "" : ", ", a);
    constants += cat("  d_", a, " = Constant <value: tensor = @", a, "> ()\n");
  }
  return cat("<domain: \"ai.onnxtrain\", opset_import: [\"\" : 15]>\n", name, " <", list, "> (",
             inputs, ") => (", outputs, ")\n{\n", constants,
             "  one = Constant <value = double {1.0}> ()\n", body, "}\n");
}

const char* keep_text(std::string text) {
  static std::deque<std::string> kept;
  return kept.emplace_back(std::move(text)).c_str();
}

std::string mean_square(const std::string& share) {
  return cat("  n2 = Sub (one, d_", share, ")\n  c2 = CastLike (n2, X)\n  k2 = CastLike (d_", share,
             R"(, X)
  vb = Mul (V, k2)
  gg = Mul (g, g)
  ggc = Mul (gg, c2)
  V1 = Add (vb, ggc)
)");
}

}  // namespace onnxtrain::ops
