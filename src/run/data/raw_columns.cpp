// Inputs that are columns.
#include "run/data/raw_columns.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace onnxtrain::run {

namespace {

using nlohmann::json;

bool is_any(const Node& n, std::initializer_list<const char*> ops) {
  return n.domain.empty() && std::any_of(ops.begin(), ops.end(), [&](auto o) { return n.op == o; });
}

// One element per row?
bool is_single(const TypeInfo& t) {
  if (!t.is_tensor() || !t.shape || t.shape->empty() || t.shape->size() > 2) return false;
  return t.shape->size() == 1 || (*t.shape)[1].value == 1;
}

constexpr int kMostHops = 8;

bool all_fill(const Graph& g, ValueId v, int hops) {
  bool any = false;
  for (const Node& n : g.nodes) {
    if (std::find(n.inputs.begin(), n.inputs.end(), v) == n.inputs.end()) continue;
    if (n.is("Imputer", kMlDomain) || n.is("IsNaN")) {
      any = true;
      continue;
    }
    if (n.is("Where")) continue;  // chooses by what IsNaN says
    if (hops == 0 ||
        !(is_any(n, {"Concat", "Cast", "Reshape", "Identity", "Flatten", "Unsqueeze", "Squeeze"}) ||
          n.is("FeatureVectorizer", kMlDomain)))
      return false;
    if (!all_fill(g, n.outputs[0], hops - 1)) return false;
    any = true;
  }
  return any;
}

std::vector<std::string> categories_behind(const Graph& g, ValueId v, int hops) {
  for (const Node& n : g.nodes) {
    if (std::find(n.inputs.begin(), n.inputs.end(), v) == n.inputs.end()) continue;
    for (const char* key : {"cats_strings", "keys_strings"})
      if (n.domain == kMlDomain && n.has(key)) return n.strings(key);
    if (n.is("LabelEncoder", kMlDomain))
      if (const Tensor* t = n.has("keys_tensor") ? n.tensor("keys_tensor") : nullptr;
          t && t->dtype() == DType::kString)
        return {t->as<std::string>(), t->as<std::string>() + t->size()};
    if (hops > 0 && is_any(n, {"Reshape", "Identity", "Flatten", "Unsqueeze", "Squeeze"}))
      if (auto found = categories_behind(g, n.outputs[0], hops - 1); !found.empty()) return found;
  }
  return {};
}

struct Read {
  CsvColumn::Kind kind;
  DateOrder order;
  const char* word;
};
constexpr std::array<Read, 4> kReads = {{
    {CsvColumn::Kind::kNumber, DateOrder::kMonthFirst, "number"},
    {CsvColumn::Kind::kText, DateOrder::kMonthFirst, "text"},
    {CsvColumn::Kind::kDate, DateOrder::kMonthFirst, "date"},
    {CsvColumn::Kind::kDate, DateOrder::kDayFirst, "date, day first"},
}};

// Nothing happens for words that are not known.
void read_word(const std::string& word, CsvColumn& c) {
  for (const Read& r : kReads)
    if (word == r.word && r.kind != CsvColumn::Kind::kText) c.kind = r.kind, c.order = r.order;
  if (const auto form = form_of_word(word)) c.form = *form;
}

}  // namespace

CsvColumn column_of_word(const std::string& name, const std::string& word) {
  CsvColumn c;
  c.name = name;
  c.missing = true;
  read_word(word, c);
  return c;
}

bool takes_missing(const Graph& g, ValueId input) { return all_fill(g, input, kMostHops); }

std::vector<std::string> categories_of(const Graph& g, ValueId input) {
  return categories_behind(g, input, kMostHops);
}

std::vector<CsvColumn> raw_columns(const Model& m, const std::map<std::string, std::string>& map,
                                   const std::vector<std::string>& tokens) {
  const auto said = m.metadata.find(kColumnsKey);
  const json words = said == m.metadata.end() ? json() : json::parse(said->second, nullptr, false);
  bool raw = (words.is_object() && !words.empty()) || !tokens.empty();
  std::vector<CsvColumn> all;
  for (const std::string& name : m.input_names()) {
    if (std::find(tokens.begin(), tokens.end(), name) != tokens.end()) continue;
    const ValueId v = m.main.find(name);
    const TypeInfo& type = m.main.value(v).type;
    if (!is_single(type)) return {};
    CsvColumn c;
    c.name = map.count(name) > 0 ? map.at(name) : name;
    if (type.elem == DType::kString) {
      c.kind = CsvColumn::Kind::kText;
      c.categories = categories_of(m.main, v);
      raw = true;
    } else {
      c.missing = takes_missing(m.main, v);
      const auto it = words.is_object() ? words.find(name) : words.end();
      if (words.is_object() && it != words.end() && it->is_string()) read_word(*it, c);
    }
    all.push_back(std::move(c));
  }
  return raw ? all : std::vector<CsvColumn>();
}

void read_raw_columns(const Model& m, const FeedOptions& feed, CsvOptions& csv) {
  std::map<std::string, std::string> map = feed.usual;
  for (const auto& [input, column] : feed.map) map[input] = column;
  csv.columns = raw_columns(m, map, feed.tokens);
  const std::vector<std::string> inputs = m.input_names();
  if (csv.columns.empty()) {
    csv.missing = inputs.size() == 1 && takes_missing(m.main, m.main.find(inputs[0]));
    return;
  }
  csv.features.clear();
  for (const CsvColumn& c : csv.columns) csv.features.push_back(c.name);
}

void note_columns(const std::vector<CsvColumn>& columns, std::map<std::string, std::string>& m) {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  for (const CsvColumn& c : columns)
    for (const Read& r : kReads)
      if (r.kind == c.kind && (r.kind != CsvColumn::Kind::kDate || r.order == c.order))
        j[c.name] = r.kind == CsvColumn::Kind::kNumber ? form_word(c.form) : r.word;
  m[kColumnsKey] = j.dump();
}

}  // namespace onnxtrain::run
