// Text of a table for a model that takes token ids.
#include "run/data/text.hpp"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "core/shell.hpp"
#include "core/text.hpp"

namespace onnxtrain::run {

namespace {

constexpr size_t kChunk = 2000;  // texts at a time
constexpr uint64_t kMostTokenizer = uint64_t(128) << 20;
constexpr int64_t kLongest = 1 << 16;

TokenizerFactory& factory() {
  static TokenizerFactory f;
  return f;
}

bool has_word(const std::string& name, const char* word) {
  return name.find(word) != std::string::npos;
}

// Inputs that hold one whole number per token.
bool is_tokens(const TypeInfo& t) {
  return t.is_tensor() && (t.elem == DType::kInt64 || t.elem == DType::kInt32) && t.shape &&
         t.shape->size() == 2 && (*t.shape)[1].value != 1;
}

}  // namespace

int64_t embedding_rows(const Graph& g, ValueId ids) {
  std::vector<ValueId> from = {ids};
  for (size_t k = 0; k < from.size() && k < 8; ++k)
    for (const Node& n : g.nodes) {
      if (n.is("Gather") && n.inputs.size() > 1 && n.inputs[1] == from[k] && n.i("axis", 0) == 0) {
        const TypeInfo& t = g.value(n.inputs[0]).type;
        if (g.value(n.inputs[0]).constant.defined() && t.shape && t.shape->size() == 2)
          return (*t.shape)[0].value;
      }
      if ((n.is("Cast") || n.is("Identity") || n.is("Reshape")) && n.inputs[0] == from[k])
        from.push_back(n.outputs[0]);
    }
  return 0;
}

namespace {

int64_t length_of(const Model& m, const std::string& ids, int64_t asked) {
  const Dim& d = (*m.main.value(m.main.find(ids)).type.shape)[1];
  if (!d.known()) return asked > 0 ? asked : kUsualLength;
  if (asked > 0 && asked != d.value)
    usage_error("OT2224",
                cat("--max-length ", asked, ": input '", ids, "' takes ", d.value, " tokens"),
                cat("--max-length ", d.value));
  return d.value;
}

// Which inputs of the model take what the tokenizer gives.
TextRule rule_for_inputs(const Model& m) {
  TextRule r;
  std::string all;
  for (const std::string& name : m.input_names()) {
    const TypeInfo& t = m.main.value(m.main.find(name)).type;
    all += cat(all.empty() ? "" : ", ", "'", name, "' ", to_string(t));
    if (!is_tokens(t)) continue;
    if (has_word(name, "mask"))
      r.mask = name;
    else if (has_word(name, "type") || has_word(name, "segment"))
      r.types = name;
    else if (r.ids.empty())
      r.ids = name;
  }
  if (r.ids.empty())
    model_error("OT2223",
                cat("--text: no input of the model takes token ids (int64 [N, length]): ", all),
                "onnxtrain new transformer --text COLUMN --tokenizer tokenizer.json makes one");
  r.vocabulary = embedding_rows(m.main, m.main.find(r.ids));
  return r;
}

// Of every row; several columns are joined by a blank.
std::vector<std::string> texts_of(const Dataset& data, const std::vector<std::string>& columns) {
  std::vector<std::string> texts;
  for (const std::string& column : columns) {
    const Tensor t = data.gather_all(column);
    if (t.dtype() != DType::kString)
      data_error("OT2124", cat("column '", column, "' of '", data.source(), "' holds no text"),
                 "name the column that holds the texts");
    texts.resize(size_t(t.size()));
    for (size_t k = 0; k < texts.size(); ++k) {
      const std::string& more = t.as<std::string>()[k];
      if (!texts[k].empty() && !more.empty()) texts[k] += ' ';
      texts[k] += more;
    }
  }
  return texts;
}

void check_ids(const Tensor& ids, size_t first, const TextRule& r) {
  if (r.vocabulary <= 0) return;
  const int64_t width = ids.shape()[1];
  for (int64_t i = 0; i < ids.size(); ++i)
    if (const int64_t id = ids.as<int64_t>()[i]; id < 0 || id >= r.vocabulary)
      data_error(
          "OT2221",
          cat("token ", id, " at row ", with_commas(int64_t(first) + i / width), " of ",
              listed(r.columns), " is beyond the embedding, which has ", with_commas(r.vocabulary),
              " rows: the tokenizer '", r.name, "' is not the model's"),
          "give the tokenizer that the model was made with:  --tokenizer FILE");
}

}  // namespace

std::vector<std::string> TextRule::inputs() const {
  std::vector<std::string> all = {ids};
  for (const std::string& more : {mask, types})
    if (!more.empty()) all.push_back(more);
  return all;
}

std::optional<TextRule> text_rule(const std::map<std::string, std::string>& metadata) {
  const auto it = metadata.find(kTextKey);
  if (it == metadata.end()) return {};
  const auto j = nlohmann::json::parse(it->second, nullptr, false);
  if (!j.is_object()) return {};
  TextRule r;
  auto text = [&](const char* key, std::string& to) {
    const auto v = j.find(key);
    if (v != j.end() && v->is_string()) to = *v;
  };
  auto number = [&](const char* key, int64_t& to) {
    const auto v = j.find(key);
    if (v != j.end() && v->is_number_integer()) to = *v;
  };
  std::string one;
  text("column", one);
  if (!one.empty()) r.columns = {one};
  if (const auto v = j.find("columns"); v != j.end() && v->is_array())
    for (const auto& name : *v)
      if (name.is_string()) r.columns.push_back(name);
  text("ids", r.ids);
  text("mask", r.mask);
  text("types", r.types);
  text("tokenizer", r.tokenizer);
  text("name", r.name);
  number("length", r.length);
  number("vocabulary", r.vocabulary);
  const bool whole = !r.columns.empty() && !r.ids.empty() && !r.tokenizer.empty();
  if (!whole || r.length < 1 || r.length > kLongest) return {};
  return r;
}

std::string text_json(const TextRule& r) {
  nlohmann::ordered_json j;
  if (r.columns.size() == 1)  // as earlier versions wrote it
    j["column"] = r.columns[0];
  else
    j["columns"] = r.columns;
  j.update({{"ids", r.ids},
            {"mask", r.mask},
            {"types", r.types},
            {"length", r.length},
            {"vocabulary", r.vocabulary},
            {"name", r.name},
            {"tokenizer", r.tokenizer}});
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void set_tokenizer_factory(TokenizerFactory f) { factory() = std::move(f); }

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& content, const std::string& name) {
  if (!factory())
    usage_error("OT2220", "text needs a tokenizer, and this program has none",
                "the command line has one with Python:  pip install onnxtrain[text]");
  return factory()(content, name);
}

std::string read_tokenizer(const std::string& path) {
  std::string text = read_file(path, kMostTokenizer);
  const auto j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("model"))
    data_error(
        "OT2222", cat("'", path, "' is no tokenizer: it has no \"model\""),
        "tokenizer.json is what the package tokenizers saves:  tokenizer.save('tokenizer.json')");
  return text;
}

std::optional<TextRule> text_rule_for(const Model& m, const TextRequest& q) {
  std::optional<TextRule> r = text_rule(m.metadata);
  if (!q.any()) return r;
  const std::optional<TextRule> own = r;
  if (!r && q.column.empty() && q.tokenizer.empty())
    usage_error("OT2224", cat("--max-length ", q.max_length, " is of --text, which was not given"),
                "leave it out, or name the column of texts:  --text COLUMN --tokenizer FILE");
  if (!r) r = rule_for_inputs(m);
  if (!q.column.empty()) r->columns = text_columns(q);
  if (!q.tokenizer.empty()) {
    r->tokenizer = read_tokenizer(q.tokenizer);
    r->name = q.tokenizer;
  }
  if (r->tokenizer.empty())
    usage_error("OT2224", cat("--text ", q.column, " needs a tokenizer"),
                "--tokenizer tokenizer.json");
  if (r->columns.empty())
    usage_error("OT2224", "--tokenizer needs the column that holds the texts", "--text COLUMN");
  const int64_t asked = q.max_length > 0 ? q.max_length : own ? own->length : 0;
  r->length = length_of(m, r->ids, asked);
  if (r->length > kLongest)
    usage_error("OT2224", cat("--max-length ", r->length, " is more than ", kLongest),
                "--max-length 512");
  return r;
}

std::vector<std::string> text_columns(const TextRequest& q) {
  std::vector<std::string> out;
  for (size_t at = 0; at < q.column.size();) {
    const size_t end = std::min(q.column.find(',', at), q.column.size());
    if (end > at) out.push_back(q.column.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

void read_text_columns(const TextRule& rule, CsvOptions& csv) {
  if (csv.columns.empty()) csv.features.clear();
  for (const std::string& name : rule.columns) {
    CsvColumn c;
    c.kind = CsvColumn::Kind::kText;
    c.name = name;
    csv.columns.push_back(c);
    csv.features.push_back(name);
  }
}

Dataset with_tokens(Dataset data, const TextRule& rule) {
  for (const std::string& column : rule.columns) {
    if (data.has(column)) continue;
    if (data.has(rule.ids)) return data;  // arrays that hold token ids already
    data_error("OT2160",
               cat("'", data.source(), "' has no column '", column, "', which holds the texts"),
               cat("name the column:  --text COLUMN --tokenizer ", shell_word(rule.name)));
  }
  const std::vector<std::string> texts = texts_of(data, rule.columns);
  const auto rows = int64_t(texts.size());
  Tensor ids(DType::kInt64, {rows, rule.length}), mask(DType::kInt64, {rows, rule.length});
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(rule.tokenizer, rule.name);
  for (size_t at = 0; at < texts.size(); at += kChunk) {
    const size_t end = std::min(at + kChunk, texts.size());
    const auto [some, there] =
        tokenizer->encode({texts.begin() + long(at), texts.begin() + long(end)}, rule.length);
    OT_ASSERT(some.size() == int64_t(end - at) * rule.length && there.size() == some.size());
    check_ids(some, at, rule);
    const int64_t offset = int64_t(at) * rule.length;
    std::memcpy(ids.as<int64_t>() + offset, some.data(), some.bytes());
    std::memcpy(mask.as<int64_t>() + offset, there.data(), there.bytes());
  }
  data.set(rule.ids, memory_column(ids));
  if (!rule.mask.empty()) data.set(rule.mask, memory_column(mask));
  if (!rule.types.empty()) {
    Tensor zeros(DType::kInt64, ids.shape());
    std::fill_n(zeros.as<int64_t>(), zeros.size(), 0);
    data.set(rule.types, memory_column(zeros));
  }
  return data;
}

}  // namespace onnxtrain::run
