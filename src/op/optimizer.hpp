// What an optimizer is: one record that says its word in recipes and flags, its settings with their
// defaults and ranges, and the node that updates one weight. Filled in by ops/optim/, beside the
// operators; read by convert/, cli/ and, as JSON, by the other languages.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace onnxtrain {

enum class SettingRange : uint8_t {
  kAny,
  kNotNegative,
  kBelowOne,  // [0,1)
  kUpToOne,   // [0,1]
  kFlag       // true or false
};
bool in_range(SettingRange r, double v);
const char* range_text(SettingRange r);  // "0 or more"

struct OptimizerSetting {
  const char* name;  // key of recipes; PyTorch's argument
  double value;      // when it is not given
  SettingRange range = SettingRange::kNotNegative;
  std::optional<double> keras = {};  // the same in Keras' style, where it differs
};

// The settings of one weight, those that were not given at their defaults.
class OptimizerSettings {
 public:
  OptimizerSettings(std::map<std::string, double, std::less<>> values, bool keras)
      : keras_(keras), values_(std::move(values)) {}
  double operator[](std::string_view name) const;  // a setting of the record
  bool flag(std::string_view name) const { return (*this)[name] != 0; }
  bool keras() const { return keras_; }  // Keras' formula instead of PyTorch's
  // For attributes: float64 in our own operators, float in the standard's.
  Attr real(std::string_view name) const { return Tensor::scalar<double>((*this)[name]); }
  Attr single(std::string_view name) const { return float((*this)[name]); }

 private:
  bool keras_;
  std::map<std::string, double, std::less<>> values_;
};

// The node that updates one weight. Its inputs are scalars, weight, gradient, state; its outputs
// the new weight and the new state.
struct OptimizerNode {
  std::string op;
  std::string_view domain = kOwnDomain;
  const char* scalars = "R";  // R: learning rate, T: steps done before this one, N: T + 1
  Attributes attrs = {};
  std::vector<std::pair<std::string, double>> state = {};  // ending of the name, first value
  double shrink = 0;  // each step multiplies the weight itself by 1 - learning rate * shrink
};

struct Optimizer {
  const char* kind;                        // the word of recipes and --optimizer
  const char* class_name;                  // in Python; "": not there under this word
  const char* help;                        // one sentence
  std::vector<OptimizerSetting> settings;  // as Python orders its arguments; "lr" is among them
  OptimizerNode (*node)(const OptimizerSettings&);

  const char* base_class = "";   // the Python class that this one extends
  bool has_keras_style = false;  // `style` may be "keras"
  // Of ONNX's own operators: their attributes, which recipes give under the key "attributes".
  std::vector<OptimizerSetting> attributes = {};
  int64_t first_step = 0;  // first value of T
  // Throws a usage error for settings that do not go together; null: they all do.
  void (*check)(const OptimizerSettings&) = nullptr;

  const OptimizerSetting* setting(std::string_view name) const;
};

// JSON list of all records, for the other languages: kind, class_name, base_class, help, styles,
// settings (name, value, keras, flag).
class OpTable;
std::string optimizers_json(const OpTable& table);

}  // namespace onnxtrain
