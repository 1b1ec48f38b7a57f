// Options -> settings.
#include "cli/flags/settings.hpp"

#include "cli/flags/flag_words.hpp"
#include "cli/flags/given_values.hpp"
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

// A value that a file or the environment gives. name: as it stands there.
void apply(const CLI::App& command, CLI::Option* o, const std::string& name,
           const Settings::Values& values, const std::string& from) {
  std::string why, hint;
  for (const std::string& v : values)
    if (const std::string problem = number_problem(*o, v); !problem.empty())
      why = cat(name, " = ", v, ": ", problem);
  try {
    o->clear();
    for (const std::string& v : values) o->add_result(v);
    if (why.empty()) o->run_callback();
  } catch (const CLI::ParseError& e) {
    why = in_our_words(command, e.what(), hint);
  }
  if (why.empty()) return;
  // the example is a flag there, a line of a file here
  const size_t flag = hint.find("--" + name + " ");
  usage_error("OT0008", cat(from, ": ", why),
              flag == std::string::npos || !from.starts_with("'")
                  ? "onnxtrain train --help-all   has the values that each option takes"
                  : cat("for example  ", name, " = ",
                        hint.substr(flag + name.size() + 3, hint.find(' ', flag + name.size() + 3) -
                                                                flag - name.size() - 3)));
}

std::vector<std::string> other_names(const CLI::Option* o) {
  const std::vector<std::string>& all = o->get_lnames();
  return all.size() < 2 ? std::vector<std::string>()
                        : std::vector<std::string>(all.begin() + 1, all.end());
}

}  // namespace

Settings settings_of(CLI::App* command) {
  Settings s;
  s.set_suggestion([command](const std::string& key) { return option_named(*command, key); });
  for (CLI::Option* o : command->get_options()) {
    std::string name = o->get_lnames().empty() ? o->get_name(true) : o->get_lnames()[0];
    if (name == "help" || name == "config") continue;
    if (name == "MODEL") name = "model";
    s.add({name, kind_of(o), o->get_items_expected_max() > 1, o->get_default_str(),
           [command, o, name](const Settings::Values& values, const std::string& from) {
             apply(*command, o, name, values, from);
           },
           other_names(o)});
    if (o->count() == 0) continue;
    Settings::Values given = o->results();
    if (o->get_multi_option_policy() == CLI::MultiOptionPolicy::Join)  // one value, typed in parts
      for (; given.size() > 1; given.pop_back()) given[given.size() - 2] += "," + given.back();
    s.set(name, given, "flag");
  }
  return s;
}

}  // namespace onnxtrain::cli
