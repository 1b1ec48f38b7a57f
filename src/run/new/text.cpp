// A new model for a table with a column of texts.
#include "core/text.hpp"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "core/shell.hpp"
#include "onnx/onnx.hpp"
#include "run/data/data_spec.hpp"
#include "run/new/parts.hpp"

namespace onnxtrain::run {

using nlohmann::json;

namespace {

using Names = std::vector<std::string>;

TextRule text_of(const NewRequest& q) {
  if (q.kind != "transformer" && q.kind != "lstm" && q.kind != "gru")
    usage_error("OT2225",
                cat("a network of kind '", q.kind, "' takes no text; transformer, lstm and gru do"),
                cat("onnxtrain new transformer --data ", shell_word(q.data),
                    q.target.empty() ? std::string() : " --target " + shell_word(q.target),
                    " --text ", shell_word(q.text.column), " --tokenizer ",
                    shell_word(q.text.tokenizer.empty() ? "tokenizer.json" : q.text.tokenizer)));
  if (q.text.tokenizer.empty())
    usage_error("OT2224", cat("--text ", q.text.column, " needs a tokenizer"),
                "--tokenizer tokenizer.json");
  TextRule r;
  r.columns = text_columns(q.text);
  if (r.columns.empty())
    usage_error("OT2224", "--tokenizer needs the column that holds the texts", "--text COLUMN");
  r.ids = "input_ids";
  r.mask = "attention_mask";
  r.length = q.text.max_length > 0 ? q.text.max_length : kUsualLength;
  r.tokenizer = read_tokenizer(q.text.tokenizer);
  r.name = q.text.tokenizer;
  return r;
}

// The longest text; the rule's length becomes it.
void shorten(const Dataset& data, TextRule& rule, Observer& observer) {
  const std::vector<int64_t> there = data.gather_all(rule.mask).to_ints();
  int64_t longest = 1;
  for (size_t at = 0; at < there.size(); at += size_t(rule.length))
    longest =
        std::max(longest, std::accumulate(there.begin() + long(at),
                                          there.begin() + long(at) + rule.length, int64_t(0)));
  const int64_t cut = rule.length;
  rule.length = longest;
  observer.on_note("text", cat(listed(rule.columns), rule.columns.size() > 1 ? " joined," : "",
                               " as at most ", longest, " tokens of ", with_commas(rule.vocabulary),
                               longest == cut ? ", longer texts cut" : "",
                               "   (--max-length to change); the tokenizer is part of the model"));
}

// The columns beside the texts and the target; none when there is nothing to learn from.
PreprocessPlan plan_beside(const NewRequest& q, const TextRule& rule, OpenOptions open,
                           const Names& targets, Observer& observer) {
  TableProfile table;
  open.csv.profile = &table;
  open.csv.targets = targets;
  const Dataset data = open_dataset(q.data, open);
  std::erase_if(table.columns, [&](const ColumnProfile& c) {
    return std::find(rule.columns.begin(), rule.columns.end(), c.name) != rule.columns.end();
  });
  PreprocessPlan plan = plan_preprocessing(table, q.preprocess, data.source(), false);
  plan.matrix = false;
  tell(plan, observer);
  return plan;
}

}  // namespace

Model new_text_model(const NewRequest& q, const OpenOptions& open, Observer& observer) {
  TextRule rule = text_of(q);
  OpenOptions texts = open;
  read_text_columns(rule, texts.csv);
  texts.csv.profile = nullptr;
  Dataset data = open_dataset(q.data, texts);
  if (!data.is_table())
    usage_error("OT2224",
                cat("'", q.data, "' is ", data.format(), ": --text names a column of a table"),
                "give a csv, tsv or parquet file");
  observer.on_note(
      "data", cat(data.source(), "  ", data.format(), "   ", with_commas(data.rows()), " rows"));
  tell(data, observer);
  if (data.targets().empty())
    data_error("OT2101", cat("'", data.source(), "' has no column besides the text"),
               "name the column to learn:  --target NAME");
  rule.vocabulary = make_tokenizer(rule.tokenizer, rule.name)->vocabulary();
  data = with_tokens(std::move(data), rule);
  shorten(data, rule, observer);
  const NewTarget target = find_targets(data, q.task);
  tell_target(target, listed(data.targets()), data.rows(), observer);
  const PreprocessPlan beside = plan_beside(q, rule, open, data.targets(), observer);
  NetworkSpec s = network_spec(q, target, {rule.length});
  s.input = rule.ids;
  s.mask = rule.mask;
  s.vocabulary = rule.vocabulary;
  s.beside = total_width(beside.columns);
  give_way(beside, s);
  Model m = new_network(s, all_ops());
  if (s.beside > 0) m = in_front(m, kBeside, beside, q.seed);
  note_target(target, data.targets(), m);
  note_reading(data, m.metadata);
  if (!data.dropped().empty()) m.metadata["onnxtrain.drop"] = json(data.dropped()).dump();
  m.metadata[kTextKey] = text_json(rule);
  return m;
}

}  // namespace onnxtrain::run
