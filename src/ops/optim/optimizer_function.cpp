// The text of the optimizers' functions.
#include "ops/optim/optimizer_function.hpp"

#include <deque>

#include "core/error.hpp"

namespace onnxtrain::ops {

std::string function_text(const std::string& name, const std::vector<FunctionAttribute>& attributes,
                          const char* inputs, const char* outputs, const std::string& body) {
  std::string list, constants;
  for (const FunctionAttribute& a : attributes) {
    list += cat(list.empty() ? "" : ", ", a.name);
    constants += cat("  ", a.as, " = Constant <value: tensor = @", a.name, "> ()\n");
  }
  return cat("<domain: \"ai.onnxtrain\", opset_import: [\"\" : 15]>\n", name, " <", list, "> (",
             inputs, ") => (", outputs, ")\n{\n", constants,
             "  one = Constant <value = double {1.0}> ()\n", body, "}\n");
}

const char* keep_text(std::string text) {
  static std::deque<std::string> kept;
  return kept.emplace_back(std::move(text)).c_str();
}

std::string coupled_decay(const char* decay) {
  return cat("  dx = CastLike (", decay, R"(, X)
  l2 = Mul (dx, X)
  g = Add (G, l2)
  kept = Identity (X)
)");
}

std::string decoupled_decay(const char* lr, const char* decay) {
  return cat("  rd = Mul (", lr, ", ", decay, R"()
  keep = Sub (one, rd)
  k = CastLike (keep, X)
  kept = Mul (X, k)
  g = Identity (G)
)");
}

std::string factors(const AdamNames& n) {
  return cat("  n1 = Sub (one, ", n.beta1, ")\n  n2 = Sub (one, ", n.beta2, R"()
  c1 = CastLike (n1, X)
  c2 = CastLike (n2, X)
  k2 = CastLike ()",
             n.beta2, ", X)\n  eps = CastLike (", n.epsilon, ", X)\n");
}

std::string mean(const char* gradient) {
  return cat("  gm = Sub (", gradient, ", M)\n  gmc = Mul (gm, c1)\n  M1 = Add (M, gmc)\n");
}

std::string mean_square(const char* gradient, const char* keep, const char* take) {
  const char* old = keep[0] == 'k' ? "vb" : "va";  // the names that files have
  return cat("  ", old, " = Mul (V, ", keep, ")\n  gg = Mul (", gradient, ", ", gradient,
             ")\n  ggc = Mul (gg, ", take, ")\n  V1 = Add (", old, ", ggc)\n");
}

std::string moments(const char* gradient) {
  return mean(gradient) + mean_square(gradient, "k2", "c2");
}

}  // namespace onnxtrain::ops
