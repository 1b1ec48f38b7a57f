// Names in the training-mode twin of a model (ruling G7): the main graph's name and a suffix. The
// one place that knows it; convert/ writes such names, train/ reads them.
#pragma once
#include <string>
#include <string_view>

namespace onnxtrain {

inline constexpr std::string_view kTwinSuffix = "_train";

inline std::string twin_name(std::string_view name) {
  return std::string(name) + std::string(kTwinSuffix);
}

// The name in the main graph, or "" when `name` is not one of the twin's.
inline std::string_view twin_source(std::string_view name) {
  if (name.size() <= kTwinSuffix.size() || !name.ends_with(kTwinSuffix)) return {};
  return name.substr(0, name.size() - kTwinSuffix.size());
}

}  // namespace onnxtrain
