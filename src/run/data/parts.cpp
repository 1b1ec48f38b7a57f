// Data of a run.
#include "run/data/parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "core/shell.hpp"
#include "core/text.hpp"
#include "data/sampler.hpp"
#include "model/scores.hpp"
#include "model/trained_outputs.hpp"
#include "run/data/column_scale.hpp"
#include "run/data/raw_columns.hpp"
#include "run/data/target_check.hpp"
#include "run/data/usual_values.hpp"

namespace onnxtrain::run {

namespace {

// Outputs that a loss reads: a column of such a name is its target.
std::vector<std::string> learnt_outputs(const Model& m) {
  std::vector<std::string> names;
  for (const OutputLoss& l : output_losses(m.metadata)) names.push_back(l.output);
  if (names.empty()) names.push_back(describe_scores(m).output);
  return names;
}

// The data of a request, read as `known` says.
Dataset opened(const std::string& spec, const DataRequest& q, const Model& m,
               const std::vector<ValueDef>& inputs, DataPart part, const DataSpec& known,
               FeedOptions& feed) {
  OpenOptions open;
  open.part = part;
  open.part_asked = q.part_asked;
  if (!q.target.empty()) open.csv.targets = {q.target};
  if (!q.drop.empty()) open.csv.drop = {q.drop};
  for (const auto& [name, column] : q.feed.map)
    if (is_target(m, name)) open.csv.mapped.push_back(column);
  if (open.csv.mapped.empty()) open.csv.mapped = learnt_outputs(m);
  open.csv.encoding = q.encoding;
  open.csv.separator = csv_separator(q.separator);
  feed = q.feed;
  follow(known, feed, open.csv);
  if (data_spec(m.metadata).scaled_in_graph()) leave_scale_to_graph(feed);
  describe_inputs(m, inputs, open);
  open.csv.text_among = std::count_if(inputs.begin(), inputs.end(),
                                      [&](const ValueDef& d) { return is_target(m, d.name); }) > 1;
  open.images.skip_bad = q.skip_bad;
  open.images.folder = q.images;
  const std::optional<TextRule> text = text_rule_for(m, q.text);
  if (text) feed.tokens = text->inputs();
  read_raw_columns(m, feed, open.csv);
  if (!text) return open_dataset(spec, open);
  read_text_columns(*text, open.csv);
  feed.text = text_json(*text);
  return with_tokens(open_dataset(spec, open), *text);
}

std::vector<int64_t> row_numbers(int64_t n) {
  std::vector<int64_t> rows(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), int64_t(0));
  return rows;
}

// The data of a training that begins from a model that knows other data.
Dataset opened_for_model(const DataRequest& q, const Model& m, const std::vector<ValueDef>& inputs,
                         const Known& known, FeedOptions& feed, Observer& observer) {
  if (q.target.empty() && m.metadata.count(kNewKey) != 0 && !known.spec.targets.empty()) {
    DataRequest named = q;  // the model was made to learn them
    for (const std::string& t : known.spec.targets)
      named.target += cat(named.target.empty() ? "" : ",", t);
    return opened_for_model(named, m, inputs, known, feed, observer);
  }
  // a model whose inputs are columns takes them by name whatever it was trained on
  if (known.strict || !raw_columns(m, q.feed.map).empty() || text_rule_for(m, q.text))
    return opened(q.data, q, m, inputs, DataPart::kTrain, known.spec, feed);
  DataSpec none;  // but for what its bytes mean, where they do not say so themselves
  none.reading = known.spec.reading;
  none.nhwc = known.spec.nhwc;
  Dataset data = opened(q.data, q, m, inputs, DataPart::kTrain, none, feed);
  if (known.spec.features.empty() && known.spec.classes.empty()) return data;
  DataSpec spec = known.spec;  // which columns are targets, and the scale, are this training's
  spec.targets.clear();
  spec.drop.clear();
  spec.map.clear();
  spec.scale.clear();
  spec.standard.clear();
  spec.label_offset = 0;
  if (fits(spec, data)) {
    if (q.target.empty()) {
      DataRequest named = q;
      for (const std::string& t : data.targets()) named.target = t;
      return opened(q.data, named, m, inputs, DataPart::kTrain, spec, feed);
    }
    return opened(q.data, q, m, inputs, DataPart::kTrain, spec, feed);
  }
  observer.on_warning(
      "OT3111",
      cat("the model was trained on other data: columns ", listed(known.spec.features),
          ", classes ", listed(known.spec.classes),
          "; here columns are taken in the order of the file and classes are numbered anew"),
      "");
  return data;
}

// A folder with train/ and val/: the rows of the second are there to be taken.
void note_other_parts(const std::string& data, Observer& observer) {
  namespace fs = std::filesystem;
  std::error_code ec;
  if (!fs::is_directory(data + "/train", ec)) return;
  for (const char* name : {"valid", "val", "validation"})
    if (const std::string part = (fs::path(data) / name).string(); fs::is_directory(part, ec))
      observer.on_note(
          "note", cat("'", part, "' is not read; as validation data:  --valid ", shell_word(part)));
  if (const std::string part = (fs::path(data) / "test").string(); fs::is_directory(part, ec))
    observer.on_note("note", cat("'", part, "' is kept for  onnxtrain eval"));
}

}  // namespace

void rethrow_of(const Error& e, const std::string& what, const std::string& file) {
  if (e.message().find(file) != std::string::npos) throw Error(e);
  throw Error(e.kind(), e.code(), cat(what, " '", file, "': ", e.message()), e.hint());
}

LoadedData load_data(const std::string& spec, const DataRequest& q, const Model& m,
                     const std::vector<ValueDef>& inputs, DataPart part, const DataSpec& known) {
  FeedOptions feed;
  const Dataset data = opened(spec, q, m, inputs, part, known, feed);
  return feeds_for(data, m, inputs, feed);
}

bool is_fraction(const std::string& text, double& fraction) {
  char* end = nullptr;
  fraction = std::strtod(text.c_str(), &end);
  return *end == '\0';
}

Parts split_parts(const Dataset& data, const Model& m, const std::vector<ValueDef>& inputs,
                  FeedOptions feed, const RowChoice& rows) {
  Parts p;
  p.data = feeds_for(data, m, inputs, feed);
  const int64_t n = p.data.feeds.rows();
  std::vector<int64_t> train = row_numbers(n), valid;
  if (rows.overfit > 0) {
    train = valid = row_numbers(std::min(rows.overfit, n));
  } else if (rows.valid > 0) {
    if (n < 2)
      data_error("OT2101", "one row cannot be split into training and validation",
                 "train without validation:  --valid 0");
    Split split = split_rows(n, rows.valid, rows.seed, p.data.labels);
    train = std::move(split.train);
    valid = std::move(split.valid);
  }
  if (is_measured_scale(feed.adapt.scale) && feed.standard.empty()) {
    feed.standard = measured_scale(p.data.feeds.subset(train), m, feed.adapt.scale);
    p.measured = feed.standard;
    p.data = feeds_for(data, m, inputs, feed);
  }
  p.all = hash_rows(p.data.feeds.columns);
  p.train_rows = p.all.subset(train);
  const bool whole = rows.overfit == 0 && rows.valid == 0;
  p.train = whole ? p.data.feeds : p.data.feeds.subset(train);
  if (std::string values = usual_values(p.train, m); !values.empty())
    p.data.metadata[kValuesKey] = std::move(values);
  p.has_valid = !valid.empty();
  if (!p.has_valid) return p;
  p.valid = p.data.feeds.subset(valid);
  p.valid_rows = p.all.subset(valid);
  return p;
}

void set_valid(Parts& p, LoadedData valid) {
  p.valid_data = std::move(valid);
  p.valid = p.valid_data.feeds;
  p.has_valid = true;
  p.valid_rows = hash_rows(p.valid.columns);
}

Parts load_parts(const DataRequest& q, const Model& m, const std::vector<ValueDef>& inputs,
                 uint64_t seed, const Known& known, Observer& observer) {
  double fraction = 0;
  const bool file = q.overfit == 0 && !is_fraction(q.valid, fraction);
  if (!file && !(fraction >= 0 && fraction < 1))
    usage_error("OT0003", cat("--valid ", q.valid, " is neither a file nor from 0 up to 1"),
                "--valid 0.1");
  if (file && q.valid.ends_with("%"))
    usage_error("OT0003", cat("--valid ", q.valid, " is written as a fraction"),
                cat("--valid ", std::strtod(q.valid.c_str(), nullptr) / 100));
  FeedOptions feed;
  const Dataset data = opened_for_model(q, m, inputs, known, feed, observer);
  Parts p = split_parts(data, m, inputs, feed, {q.overfit, file ? 0 : fraction, seed});
  observer.on_note("data", p.data.line);
  for (const std::string& note : p.data.notes) observer.on_note("note", note);
  if (q.overfit > 0) {
    observer.on_note("overfit", cat(p.train.rows() < q.overfit ? "all " : "", p.train.rows(),
                                    " rows, for training and validation alike   (--overfit 0 "
                                    "for all rows)",
                                    p.train.rows() < q.overfit
                                        ? cat("; the data has no more than these, --overfit ",
                                              q.overfit, " asks for more")
                                        : std::string()));
  } else if (file) {
    // as the training reads its data, whatever the order of columns and classes in this file
    try {
      // the flags are about --data; what it needed is in the metadata, for text that needs it, too
      DataRequest other = q;
      other.encoding.clear();
      other.separator.clear();
      set_valid(p,
                load_data(q.valid, other, m, inputs, DataPart::kTest, data_spec(p.data.metadata)));
    } catch (const Error& e) {
      rethrow_of(e, "validation data", q.valid);
    }
    observer.on_note("valid", p.valid_data.line);
    for (const std::string& note : p.valid_data.notes) observer.on_note("note", note);
  } else if (fraction > 0) {
    if (fraction > 0.5)
      observer.on_warning("OT3113",
                          cat(fraction * 100, " % of the rows are for validation, only ",
                              with_commas(p.train.rows()), " are trained on"),
                          cat("--valid is the fraction for validation:  --valid ",
                              std::round((1 - fraction) * 100) / 100));
    observer.on_note(
        "split", cat(with_commas(p.train.rows()), " train   ", with_commas(p.valid.rows()),
                     " valid (", fraction * 100, " %", p.data.labels.empty() ? "" : ", stratified",
                     ", seed ", seed, ")"));
    note_other_parts(q.data, observer);
  }
  if (q.overfit == 0) warn_about_data(p, m, feed, observer, q.data);
  return p;
}

}  // namespace onnxtrain::run
