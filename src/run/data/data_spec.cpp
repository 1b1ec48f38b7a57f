// What a run knows of its data, to and from metadata.
#include "run/data/data_spec.hpp"

#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "run/data/text.hpp"

namespace onnxtrain::run {

namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

constexpr const char* kEncodingKey = "onnxtrain.encoding";
constexpr const char* kSeparatorKey = "onnxtrain.separator";

std::string metadata_text(const Metadata& m, const char* key) {
  const auto it = m.find(key);
  return it == m.end() ? std::string() : it->second;
}

Names names_of(const Metadata& m, const char* key) {
  Names out;
  const json list = json::parse(metadata_text(m, key), nullptr, false);
  if (!list.is_array()) return out;
  for (const auto& name : list)
    if (name.is_string()) out.push_back(name);
  return out;
}

std::vector<float> numbers_of(const json& list) {
  std::vector<float> out;
  if (list.is_array())
    for (const auto& v : list)
      if (v.is_number()) out.push_back(v);
  return out;
}

}  // namespace

DataSpec data_spec(const Metadata& m) {
  DataSpec s;
  s.features = names_of(m, "onnxtrain.features");
  s.targets = names_of(m, "onnxtrain.target");
  s.drop = names_of(m, "onnxtrain.drop");
  s.classes = names_of(m, "onnxtrain.classes");
  const json several = json::parse(metadata_text(m, kTargetClassesKey), nullptr, false);
  if (several.is_object())
    for (const auto& [column, list] : several.items())
      if (list.is_array() && !list.empty())
        for (const auto& name : list)
          if (name.is_string()) s.target_classes[column].push_back(name);
  const json forms = json::parse(metadata_text(m, kTargetFormsKey), nullptr, false);
  if (forms.is_object())
    for (const auto& [column, word] : forms.items())
      if (word.is_string())
        if (const auto form = form_of_word(word)) s.target_forms[column] = *form;
  s.scale = metadata_text(m, "onnxtrain.scale");
  s.of_run = m.count("onnxtrain.scale") != 0;
  s.reading = {metadata_text(m, kEncodingKey), metadata_text(m, kSeparatorKey)};
  if (!is_csv_encoding(s.reading.encoding)) s.reading.encoding.clear();
  if (!is_csv_separator(s.reading.separator)) s.reading.separator.clear();
  s.nhwc = metadata_text(m, kLayoutKey) == "nhwc";
  s.label_offset = std::strtoll(metadata_text(m, "onnxtrain.label_offset").c_str(), nullptr, 10);
  const json map = json::parse(metadata_text(m, "onnxtrain.map"), nullptr, false);
  if (map.is_object())
    for (const auto& [input, column] : map.items())
      if (column.is_string()) s.map[input] = column;
  const json standard = json::parse(metadata_text(m, "onnxtrain.standard"), nullptr, false);
  if (standard.is_object())
    for (const auto& [input, v] : standard.items())
      if (v.is_object() && v.contains("mean") && v.contains("std"))
        s.standard[input] = {numbers_of(v["mean"]), numbers_of(v["std"])};
  return s;
}

void note_reading(const Dataset& data, Metadata& m) {
  const auto& [encoding, separator] = data.reading();
  if (!encoding.empty()) m[kEncodingKey] = encoding;
  if (!separator.empty()) m[kSeparatorKey] = separator;
}

void note_spec(const Dataset& data, const std::map<std::string, std::string>& columns,
               const std::vector<std::string>& inputs, const std::string& label,
               const FeedOptions& o, Metadata& m) {
  m["onnxtrain.scale"] = o.adapt.scale;
  m[kLayoutKey] = o.adapt.layout == Layout::kNhwc ? "nhwc" : "nchw";
  note_reading(data, m);
  if (!o.text.empty()) m[kTextKey] = o.text;
  if (o.adapt.label_offset) m["onnxtrain.label_offset"] = std::to_string(o.adapt.label_offset);
  auto names = [&](const char* key, const Names& list) {
    if (!list.empty()) m[key] = json(list).dump();
  };
  if (!label.empty()) names("onnxtrain.classes", data.class_names(columns.at(label)));
  if (!o.map.empty()) m["onnxtrain.map"] = json(o.map).dump();
  if (!inputs.empty()) names("onnxtrain.features", data.feature_names(columns.at(inputs[0])));
  names("onnxtrain.target", data.target_names());
  json several = json::object();
  for (const std::string& column : data.target_names())
    if (data.target_names().size() > 1 && data.has(column) && !data.class_names(column).empty())
      several[column] = data.class_names(column);
  if (!several.empty()) m[kTargetClassesKey] = several.dump();
  json forms = json::object();
  for (const auto& [column, form] : data.target_forms()) forms[column] = form;
  if (!forms.empty()) m[kTargetFormsKey] = forms.dump();
  names("onnxtrain.drop", data.dropped());
  json standard;
  for (const auto& [input, s] : o.standard) standard[input] = {{"mean", s.mean}, {"std", s.std}};
  if (!standard.empty()) m["onnxtrain.standard"] = standard.dump();
}

void leave_scale_to_graph(FeedOptions& feed) {
  const std::string& asked = feed.adapt.scale;
  if (asked.find(',') != std::string::npos)
    usage_error("OT0034",
                cat("the model scales its inputs itself: --scale ", asked, " would scale twice"),
                "remove --scale");
  feed.adapt.scale = kScaledInGraph;
  feed.standard.clear();
}

namespace {

void follow_layout(const DataSpec& s, FeedOptions& feed) {
  if (s.nhwc && feed.adapt.layout == Layout::kAuto) feed.adapt.layout = Layout::kUsuallyNhwc;
}

}  // namespace

void follow(const DataSpec& s, FeedOptions& feed, CsvOptions& csv) {
  if (s.scaled_in_graph()) leave_scale_to_graph(feed);
  if (feed.adapt.scale == "auto" && !s.scale.empty()) feed.adapt.scale = s.scale;
  if (is_measured_scale(feed.adapt.scale) && feed.standard.empty()) feed.standard = s.standard;
  follow_layout(s, feed);
  if (feed.adapt.label_offset == 0) feed.adapt.label_offset = s.label_offset;
  if (feed.map.empty()) feed.usual = s.map;
  if (feed.classes.empty()) feed.classes = s.classes;
  if (s.of_table() && !csv.classes) csv.classes = s.classes;
  csv.usual_encoding = s.reading.encoding;
  csv.usual_separator = s.reading.separator;
  if (csv.features.empty()) csv.features = s.features;
  csv.of_run = csv.of_run || s.of_table();
  feed.unnamed_classes = feed.unnamed_classes || (s.of_run && s.classes.empty());
  if (csv.targets.empty()) csv.targets = s.targets;
  if (csv.target_classes.empty()) csv.target_classes = s.target_classes;
  if (csv.target_forms.empty()) csv.target_forms = s.target_forms;
  if (csv.drop.empty()) csv.drop = s.drop;
}

void follow_arrays(const DataSpec& s, FeedOptions& feed) {
  follow_layout(s, feed);
  if (s.scaled_in_graph()) return leave_scale_to_graph(feed);
  if (!is_measured_scale(s.scale) || s.standard.empty()) return;
  if (feed.adapt.scale != "auto" && !is_measured_scale(feed.adapt.scale)) return;
  feed.adapt.scale = s.scale;
  feed.standard = s.standard;
}

bool fits(const DataSpec& s, const Dataset& data) {
  auto has = [](const Names& all, const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  for (const std::string& name : s.features)
    if (!has(data.feature_names("x"), name)) return false;
  for (const std::string& column : data.columns())
    for (const std::string& name : data.class_names(column))
      if (!has(s.classes, name)) return false;
  return true;
}

}  // namespace onnxtrain::run
