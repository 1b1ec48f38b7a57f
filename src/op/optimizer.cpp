// Settings of optimizers: ranges, defaults, and the records as JSON.
#include "op/optimizer.hpp"

#include <nlohmann/json.hpp>

#include "op/op.hpp"

namespace onnxtrain {

bool in_range(SettingRange r, double v) {
  switch (r) {
    case SettingRange::kAny:
      return true;
    case SettingRange::kNotNegative:
      return v >= 0;
    case SettingRange::kBelowOne:
      return v >= 0 && v < 1;
    case SettingRange::kUpToOne:
      return v >= 0 && v <= 1;
    case SettingRange::kFlag:
      return v == 0 || v == 1;
  }
  return false;
}

const char* range_text(SettingRange r) {
  switch (r) {
    case SettingRange::kAny:
      return "a number";
    case SettingRange::kNotNegative:
      return "0 or more";
    case SettingRange::kBelowOne:
      return "in [0,1)";
    case SettingRange::kUpToOne:
      return "in [0,1]";
    case SettingRange::kFlag:
      return "true or false";
  }
  return "";
}

double OptimizerSettings::operator[](std::string_view name) const {
  auto it = values_.find(name);
  OT_ASSERT(it != values_.end());
  return it->second;
}

const OptimizerSetting* Optimizer::setting(std::string_view name) const {
  for (const OptimizerSetting& s : settings)
    if (name == s.name) return &s;
  return nullptr;
}

std::string optimizers_json(const OpTable& table) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  auto value = [](const OptimizerSetting& s, double v) {
    return s.range == SettingRange::kFlag ? Json(v != 0) : Json(v);
  };
  for (const Optimizer* o : table.optimizers()) {
    Json settings = Json::array();
    for (const OptimizerSetting& s : o->settings) {
      Json one = {{"name", s.name}, {"value", value(s, s.value)}};
      if (s.keras) one["keras"] = value(s, *s.keras);
      settings.push_back(std::move(one));
    }
    list.push_back({{"kind", o->kind},
                    {"class_name", o->class_name},
                    {"base_class", o->base_class},
                    {"help", o->help},
                    {"has_keras_style", o->has_keras_style},
                    {"settings", std::move(settings)}});
  }
  return list.dump();
}

}  // namespace onnxtrain
