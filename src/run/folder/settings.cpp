// Settings from the environment and from toml files, and back to toml.
#include "run/folder/settings.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "core/environment.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "data/columns/dataset.hpp"

namespace onnxtrain::run {

namespace {

std::string environment_name(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : char(std::toupper(c));
  return "ONNXTRAIN_" + name;
}

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
  usage_error("OT0008", cat("'", key, "' in '", path, "' is neither text, number nor true/false"),
              "for example  epochs = 3   or   loss = \"mse\"");
}

Settings::Values typed_values(const toml::node& node, const std::string& key,
                              const std::string& path) {
  Settings::Values values;
  const toml::array* list = node.as_array();
  if (!list) return {typed(node, key, path)};
  for (const auto& item : *list) values.push_back(typed(item, key, path));
  return values;
}

toml::table parsed_text(const std::string& text, const std::string& path) {
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    usage_error("OT0008", cat("'", path, "' line ", e.source().begin.line, ": ", e.description()),
                "each line is like  epochs = 3  or  loss = \"mse\"; each name stands once");
  }
}

// A number that is neither 0 nor 1 is no answer; words that are none the parser refuses.
bool is_yes_or_no(const std::string& v) {
  char* end = nullptr;
  const double x = std::strtod(v.c_str(), &end);
  return v.empty() || *end != '\0' || x == 0 || x == 1;
}

bool is_false(const std::string& v) { return v == "false" || v == "0" || v.empty(); }

std::string toml_value(Settings::Kind kind, const std::string& v) {
  if (kind == Settings::Kind::kFlag) return is_false(v) ? "false" : "true";
  return kind == Settings::Kind::kNumber && !v.empty() ? v : in_quotes(v);
}

// 0.10 is 0.1
bool same_value(const std::string& a, const std::string& b) {
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  const bool numbers = !a.empty() && !b.empty() && *end_a == '\0' && *end_b == '\0';
  return a == b || (numbers && x == y);
}

}  // namespace

std::map<std::string, std::string> settings_in(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  return settings_in_text(read_file(path, 1 << 20, ErrorKind::kUsage), path);
}

std::map<std::string, std::string> settings_in_text(const std::string& text,
                                                    const std::string& path) {
  std::map<std::string, std::string> all;
  for (const auto& [k, node] : parsed_text(text, path)) {
    const std::string name(k.str());
    auto written = [&](const toml::node& n) {
      const std::string text = typed(n, name, path);
      return n.is_string() ? in_quotes(text) : text;
    };
    const toml::array* list = node.as_array();
    std::string items;
    for (size_t i = 0; list && i < list->size(); ++i)
      items += (i ? ", " : "") + written((*list)[i]);
    all[name] = list ? "[" + items + "]" : written(node);
  }
  return all;
}

std::string unquoted(const std::string& value) {
  if (value.size() < 2 || value.front() != '"') return value;
  std::string out;
  for (size_t i = 1; i + 1 < value.size(); ++i) {
    if (value[i] == '\\' && value[i + 1] == 'u' && i + 6 < value.size()) {  // of in_quotes
      out += char(std::stoi(value.substr(i + 2, 4), nullptr, 16));
      i += 5;
      continue;
    }
    if (value[i] == '\\' && i + 2 < value.size()) ++i;
    out += value[i];
  }
  return out;
}

void Settings::add(Key key) { keys_.push_back(std::move(key)); }

const Settings::Key* Settings::find(const std::string& name) const {
  for (const Key& k : keys_)
    if (k.name == name ||
        std::find(k.other_names.begin(), k.other_names.end(), name) != k.other_names.end())
      return &k;
  return nullptr;
}

void Settings::set(const std::string& name, Values values, const std::string& source) {
  OT_ASSERT(find(name) != nullptr);
  values_[name] = std::move(values);
  source_[name] = source;
}

void Settings::take(const Key& key, const Values& values, const std::string& from,
                    const std::string& source) {
  if (key.kind == Kind::kFlag && key.name != "verbose" && !is_yes_or_no(values.back()))
    usage_error("OT0008", cat(from, ": ", key.name, " is ", values.back(), ", it is true or false"),
                cat(key.name, " = true"));
  if (key.apply) key.apply(values, from);
  set(key.name, values, source);
}

void Settings::from_environment() {
  constexpr std::string_view kPrefix = "ONNXTRAIN_";
  std::vector<std::string> variables;
  for (const Key& key : keys_) {
    variables.push_back(environment_name(key.name).substr(kPrefix.size()));
    for (const std::string& name : key.other_names)
      variables.push_back(environment_name(name).substr(kPrefix.size()));
  }
  check_environment(variables);
  for (const Key& key : keys_) {
    std::vector<std::string> names = {key.name};
    names.insert(names.end(), key.other_names.begin(), key.other_names.end());
    for (const std::string& name : names) {
      const std::string variable = environment_name(name);
      const char* value = std::getenv(variable.c_str());
      // the number of threads has its own meaning for the library, with the same name and value
      if (!value || given(key.name)) continue;
      if (*value == '\0')
        usage_error("OT0008", cat("environment variable ", variable, " is empty"),
                    cat("give it a value, or remove it: unset ", variable));
      take(key, {value}, "environment variable " + variable, "environment");
    }
  }
}

void Settings::from_file(const std::string& path, const std::string& source,
                         const std::set<std::string>& leave, Unknown unknown) {
  take_table(read_file(path, 1 << 20, ErrorKind::kUsage), path, source, leave, unknown);
}

void Settings::from_checkpoint(const std::string& text, const std::string& path,
                               const std::set<std::string>& leave) {
  take_table(text, path, "run", leave, Unknown::kPassedOver);
}

void Settings::take_table(const std::string& text, const std::string& path,
                          const std::string& source, const std::set<std::string>& leave,
                          Unknown unknown) {
  for (const auto& [k, node] : parsed_text(text, path)) {
    std::string name(k.str());
    std::replace(name.begin(), name.end(), '_', '-');
    const Key* key = find(name);
    if (!key) {
      if (unknown == Unknown::kPassedOver) continue;
      std::vector<std::string> names;
      for (const Key& x : keys_) names.push_back(x.name);
      std::string near = closest(name, names);
      if (const std::string known = suggest_ ? suggest_(name) : ""; find(known)) near = known;
      usage_error("OT0007", cat("'", path, "' has an unknown key '", name, "'"),
                  node.is_table() ? cat("options stand at the top of the file: remove the line [",
                                        std::string(k.str()), "]")
                  : near.empty()  ? "onnxtrain train --help-all   lists them"
                                  : cat("did you mean '", near, "'?"));
    }
    name = key->name;
    if (leave.count(name)) continue;
    const Values values = typed_values(node, name, path);
    if (values.empty() || (values.size() == 1 && values[0].empty())) continue;
    if (source == "run") of_run_[name] = values;
    if (!given(name)) take(*key, values, cat("'", path, "'"), source);
  }
}

Settings::Values Settings::values(const std::string& name) const {
  if (auto it = values_.find(name); it != values_.end()) return it->second;
  const Key* key = find(name);
  OT_ASSERT(key != nullptr);
  if (key->many) return {};
  return {key->kind == Kind::kFlag ? "false" : key->fallback};
}

std::string Settings::value(const std::string& name) const {
  const Values v = values(name);
  return v.empty() ? std::string() : v.back();
}

bool Settings::changes(const std::string& name) const {
  if (!fresh(name)) return false;
  const Key* key = find(name);
  Values now = values(name), before;
  if (auto it = of_run_.find(name); it != of_run_.end()) before = it->second;
  if (before.empty()) before = {key->kind == Kind::kFlag ? "false" : key->fallback};
  if (key->kind == Kind::kFlag) return is_false(value(name)) != is_false(before.back());
  return !std::equal(now.begin(), now.end(), before.begin(), before.end(), same_value);
}

std::vector<Settings::Edited> Settings::edited_since(const std::string& text,
                                                     const std::string& path) const {
  std::vector<Edited> all;
  auto joined = [](const Values& values) {
    std::string out;
    for (const std::string& v : values) out += (out.empty() ? "" : ", ") + v;
    return out;
  };
  for (const auto& [k, node] : parsed_text(text, path)) {
    const Key* key = find(std::string(k.str()));
    if (!key) continue;
    Values before = typed_values(node, key->name, path), now;
    if (auto it = of_run_.find(key->name); it != of_run_.end()) now = it->second;
    const Values usual = {key->kind == Kind::kFlag ? "false" : key->fallback};
    if (before.empty() || before == Values{""}) before = usual;
    if (now.empty()) now = usual;
    const bool same = key->kind == Kind::kFlag ? is_false(now.back()) == is_false(before.back())
                                               : std::equal(now.begin(), now.end(), before.begin(),
                                                            before.end(), same_value);
    if (!same) all.push_back({key->name, joined(now), joined(before)});
  }
  return all;
}

std::string Settings::value_text(const Key& key) const {
  Values list = values(key.name);
  if (auto shown = shown_.find(key.name); shown != shown_.end()) list = {shown->second};
  std::string text;
  for (const std::string& v : list) text += (text.empty() ? "" : ", ") + toml_value(key.kind, v);
  return key.many ? "[" + text + "]" : text;
}

std::string Settings::text() const {
  std::string out = cat("# onnxtrain ", version(), ": every setting of this run and its source\n");
  for (const Key& key : keys_) {
    auto source = source_.find(key.name);
    std::string line = key.name + " = " + value_text(key);
    line.resize(std::max<size_t>(line.size(), 40), ' ');
    out += line + "  # " + (source == source_.end() ? "default" : source->second) + "\n";
  }
  return out;
}

bool is_about_look(const std::string& key) {
  static const std::set<std::string> kLook = {"out",     "resume",  "quiet",         "progress",
                                              "verbose", "threads", "profile",       "dry-run",
                                              "find-lr", "memory",  "deterministic", "json"};
  return kLook.count(key) != 0;
}

std::string Settings::text_for_checkpoint() const {
  std::string out;
  for (const Key& key : keys_)
    if (!is_about_look(key.name)) out += key.name + " = " + value_text(key) + "\n";
  return out;
}

}  // namespace onnxtrain::run
