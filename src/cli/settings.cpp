// Settings from the environment and from toml files.
#include "cli/settings.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "data/dataset.hpp"

namespace onnxtrain::cli {

namespace {

std::string environment_name(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : char(std::toupper(c));
  return "ONNXTRAIN_" + name;
}

bool is_flag(const CLI::Option* o) { return o->get_items_expected_max() == 0; }

// A toml value as it would be typed.
std::string typed(const toml::node& n, const std::string& key, const std::string& path) {
  if (auto v = n.value_exact<std::string>()) return *v;
  if (auto v = n.value_exact<bool>()) return *v ? "true" : "false";
  if (auto v = n.value_exact<int64_t>()) return std::to_string(*v);
  if (auto v = n.value_exact<double>()) {
    char text[40];
    auto [end, bad] = std::to_chars(text, text + sizeof text, *v);
    return {text, end};
  }
  usage_error("OT0008", cat("'", key, "' in '", path, "' is neither text, number nor true/false"));
}

std::string toml_value(const CLI::Option* o, const std::string& v) {
  if (is_flag(o)) return v == "false" || v == "0" || v.empty() ? "false" : "true";
  const std::string type = o->get_type_name();
  bool number = type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT");
  return number && !v.empty() ? v : in_quotes(v);
}

}  // namespace

Settings::Settings(CLI::App* command) : app_(command) {
  for (CLI::Option* o : command->get_options()) {
    std::string name = o->get_lnames().empty() ? o->get_name(true) : o->get_lnames()[0];
    if (name == "help" || name == "config") continue;
    if (name == "MODEL") name = "model";
    options_[name] = o;
    if (o->count() > 0) source_[name] = "flag";
  }
}

void Settings::apply(CLI::Option* o, const std::vector<std::string>& values,
                     const std::string& source) {
  try {
    o->clear();
    for (const std::string& v : values) o->add_result(v);
    o->run_callback();
  } catch (const CLI::ParseError& e) {
    std::string why = e.what();
    if (size_t at = why.find(" not in range 0.000000 to 17976931"); at != std::string::npos)
      why = why.substr(0, at) + " is not a positive number";
    usage_error("OT0008", cat(source, ": ", why));
  }
}

bool Settings::changes(const std::string& name) const {
  if (!fresh(name)) return false;
  const CLI::Option* o = options_.at(name);
  std::vector<std::string> now = o->results(), before;
  if (is_flag(o)) now = {o->as<bool>() ? "true" : "false"};
  if (auto it = of_run_.find(name); it != of_run_.end()) before = it->second;
  if (before.empty()) before = {is_flag(o) ? "false" : o->get_default_str()};
  return !std::equal(
      now.begin(), now.end(), before.begin(), before.end(),
      [](const std::string& a, const std::string& b) {
        char *end_a = nullptr, *end_b = nullptr;
        const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
        const bool numbers = !a.empty() && !b.empty() && *end_a == '\0' && *end_b == '\0';
        return a == b || (numbers && x == y);
      });
}

void Settings::from_environment() {
  for (const auto& [name, o] : options_) {
    const char* value = std::getenv(environment_name(name).c_str());
    // the number of threads has its own meaning for the library, with the same name and value
    if (!value || given(name)) continue;
    apply(o, {value}, "environment variable " + environment_name(name));
    source_[name] = "environment";
  }
}

void Settings::from_file(const std::string& path, const std::string& source,
                         const std::set<std::string>& leave) {
  toml::table table;
  try {
    table = toml::parse(read_file(path, 1 << 20, ErrorKind::kUsage), path);
  } catch (const toml::parse_error& e) {
    usage_error("OT0008", cat("'", path, "' line ", e.source().begin.line, ": ", e.description()));
  }
  for (const auto& [k, node] : table) {
    std::string key(k.str());
    std::replace(key.begin(), key.end(), '_', '-');
    auto it = options_.find(key);
    if (it == options_.end()) {
      std::vector<std::string> names;
      for (const auto& [name, o] : options_) names.push_back(name);
      std::string near = closest(key, names);
      usage_error("OT0007", cat("'", path, "' has an unknown key '", key, "'"),
                  near.empty() ? "onnxtrain train --help-all   lists them"
                               : cat("did you mean '", near, "'?"));
    }
    if (leave.count(key)) continue;
    std::vector<std::string> values;
    if (const toml::array* list = node.as_array())
      for (const auto& item : *list) values.push_back(typed(item, key, path));
    else
      values.push_back(typed(node, key, path));
    if (values.empty() || (values.size() == 1 && values[0].empty())) continue;
    if (source == "run") of_run_[key] = values;
    if (given(key)) continue;
    apply(it->second, values, cat("'", path, "'"));
    source_[key] = source;
  }
}

std::string Settings::text() const {
  std::string out = cat("# onnxtrain ", version(), ": every setting of this run and its source\n");
  for (const CLI::Option* o : app_->get_options()) {
    auto it = std::find_if(options_.begin(), options_.end(),
                           [&](const auto& e) { return e.second == o; });
    if (it == options_.end()) continue;
    std::vector<std::string> values = o->results();
    bool many = o->get_items_expected_max() > 1;
    if (values.empty() && !many) values.push_back(is_flag(o) ? "false" : o->get_default_str());
    if (auto shown = shown_.find(it->first); shown != shown_.end()) values = {shown->second};
    std::string text;
    for (const std::string& v : values) text += (text.empty() ? "" : ", ") + toml_value(o, v);
    if (many) text = "[" + text + "]";
    auto source = source_.find(it->first);
    std::string line = it->first + " = " + text;
    line.resize(std::max<size_t>(line.size(), 40), ' ');
    out += line + "  # " + (source == source_.end() ? "default" : source->second) + "\n";
  }
  return out;
}

}  // namespace onnxtrain::cli
