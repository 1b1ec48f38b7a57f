// Options -> settings.
#include "cli/settings.hpp"

#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

using run::Settings;

Settings::Kind kind_of(const CLI::Option* o) {
  if (o->get_items_expected_max() == 0) return Settings::Kind::kFlag;
  const std::string type = o->get_type_name();
  const bool number =
      type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT");
  return number ? Settings::Kind::kNumber : Settings::Kind::kText;
}

void apply(CLI::Option* o, const Settings::Values& values, const std::string& from) {
  try {
    o->clear();
    for (const std::string& v : values) o->add_result(v);
    o->run_callback();
  } catch (const CLI::ParseError& e) {
    std::string why = e.what();
    if (size_t at = why.find(" not in range 0.000000 to 17976931"); at != std::string::npos)
      why = why.substr(0, at) + " is not a positive number";
    usage_error("OT0008", cat(from, ": ", why),
                "onnxtrain train --help-all   has the values that each option takes");
  }
}

}  // namespace

Settings settings_of(CLI::App* command) {
  Settings s;
  for (CLI::Option* o : command->get_options()) {
    std::string name = o->get_lnames().empty() ? o->get_name(true) : o->get_lnames()[0];
    if (name == "help" || name == "config") continue;
    if (name == "MODEL") name = "model";
    s.add(
        {name, kind_of(o), o->get_items_expected_max() > 1, o->get_default_str(),
         [o](const Settings::Values& values, const std::string& from) { apply(o, values, from); }});
    if (o->count() == 0) continue;
    Settings::Values given = o->results();
    if (o->get_multi_option_policy() == CLI::MultiOptionPolicy::Join)  // one value, typed in parts
      for (; given.size() > 1; given.pop_back()) given[given.size() - 2] += "," + given.back();
    s.set(name, given, "flag");
  }
  return s;
}

}  // namespace onnxtrain::cli
