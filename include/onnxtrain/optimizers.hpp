// Optimizers for ot::Trainer: plain structs with PyTorch's arguments and mathematics. Included by
// onnxtrain.hpp.
#pragma once
#include <charconv>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace ot {

namespace detail {
using Numbers = std::initializer_list<std::pair<const char*, float>>;
// {"kind": ..., name: number, ...}; numbers as written in decimal, so 1e-3f is 0.001.
template <class List>
std::string object(const List& numbers, const char* kind, const char* more = "") {
  std::string out = std::string("{\"kind\": \"") + kind + "\"";
  for (const auto& [name, v] : numbers) {
    char text[32];
    auto end = std::to_chars(text, text + sizeof text, v).ptr;
    out += std::string(", \"") + name + "\": " + std::string(text, end);
  }
  return out + more + "}";
}
// Of Adam and its relatives, which have the same settings.
template <class Adam>
std::string adam(const Adam& a, const char* kind) {
  return object(Numbers{{"lr", a.lr},
                        {"beta1", a.beta1},
                        {"beta2", a.beta2},
                        {"eps", a.eps},
                        {"weight_decay", a.weight_decay}},
                kind);
}
}  // namespace detail

struct SGD {
  float lr = 0.01f, momentum = 0, weight_decay = 0;
  bool nesterov = false;
  std::string json() const {
    return detail::object(
        detail::Numbers{{"lr", lr}, {"momentum", momentum}, {"weight_decay", weight_decay}}, "sgd",
        nesterov ? ", \"nesterov\": true" : "");
  }
};
struct Adam {
  float lr = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, weight_decay = 0;
  std::string json() const { return detail::adam(*this, "adam"); }
};
struct AdamW {
  float lr = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, weight_decay = 0.01f;
  std::string json() const { return detail::adam(*this, "adamw"); }
};
struct RMSprop {
  float lr = 0.01f, alpha = 0.99f, eps = 1e-8f, momentum = 0, weight_decay = 0;
  std::string json() const {
    return detail::object(detail::Numbers{{"lr", lr},
                                          {"alpha", alpha},
                                          {"eps", eps},
                                          {"momentum", momentum},
                                          {"weight_decay", weight_decay}},
                          "rmsprop");
  }
};
struct Adagrad {
  float lr = 0.01f, lr_decay = 0, eps = 1e-10f, weight_decay = 0;
  std::string json() const {
    return detail::object(
        detail::Numbers{
            {"lr", lr}, {"lr_decay", lr_decay}, {"eps", eps}, {"weight_decay", weight_decay}},
        "adagrad");
  }
};
struct Lion {
  float lr = 1e-4f, beta1 = 0.9f, beta2 = 0.99f, weight_decay = 0;
  std::string json() const {
    return detail::object(
        detail::Numbers{
            {"lr", lr}, {"beta1", beta1}, {"beta2", beta2}, {"weight_decay", weight_decay}},
        "lion");
  }
};
struct Lamb {
  float lr = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-6f, weight_decay = 0;
  std::string json() const { return detail::adam(*this, "lamb"); }
};

// Any optimizer of the library by its word and its settings (docs/recipe.md):
// ot::NamedOptimizer{"adadelta", {{"lr", 1}, {"rho", 0.95f}}}.
struct NamedOptimizer {
  std::string kind;
  std::vector<std::pair<std::string, float>> settings;
  std::string json() const { return detail::object(settings, kind.c_str()); }
};

// Any of them.
class Optimizer {
 public:
  Optimizer() : Optimizer(AdamW{}) {}
  template <class T, class = decltype(std::declval<const T&>().json())>
  Optimizer(const T& o) : json_(o.json()) {}
  const std::string& json() const { return json_; }

 private:
  std::string json_;
};

}  // namespace ot
