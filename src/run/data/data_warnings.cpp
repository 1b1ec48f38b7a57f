// What is worth a word about the rows that a run is trained and validated on.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "core/text.hpp"
#include "model/scores.hpp"
#include "run/data/column_relations.hpp"
#include "run/data/column_scale.hpp"
#include "run/data/parts.hpp"
#include "run/data/windows.hpp"

namespace onnxtrain::run {

namespace {

constexpr int64_t kFewRows = 50;  // of validation: one row is more than 2 %

bool is_half(int64_t shared, int64_t rows) { return 2 * shared >= rows && rows >= kFewRows / 5; }

// One validation row in twenty, and more than twice as many as the rows that the training data
// itself has twice: those are what chance gives where columns have few values.
bool is_no_chance(int64_t shared, int64_t rows, const RowHashes& train) {
  if (shared < 3 || 20 * shared < rows) return false;
  const std::set<uint64_t> different(train.hashes.begin(), train.hashes.end());
  const int64_t twice = train.rows - int64_t(different.size());
  return shared * train.rows > 2 * twice * rows;
}

void warn_about_shared_rows(const Parts& p, Observer& observer) {
  const RowHashes &train = p.train_rows, &valid = p.valid_rows;
  if (!train.all() || !valid.all() || valid.rows == 0) return;
  const int64_t shared = shared_rows(valid, train);
  if (valid.text() == train.text())
    observer.on_warning("OT3112",
                        "the validation data is the training data: its figures say nothing about "
                        "new data",
                        "keep rows for validation:  --valid 0.1");
  else if (shared == valid.rows)
    observer.on_warning("OT3112",
                        cat("each of the ", with_commas(shared),
                            " validation rows is a training row, too: their figures say nothing "
                            "about new data"),
                        "keep rows for validation:  --valid 0.1");
  else if (is_half(shared, valid.rows) || is_no_chance(shared, valid.rows, train))
    observer.on_warning("OT3112",
                        cat(with_commas(shared), " of ", with_commas(valid.rows),
                            " validation rows are training rows, too: their figures say little "
                            "about new data"),
                        "remove rows that are there twice");
}

void warn_about_one_class(const LoadedData& d, Observer& observer) {
  const std::vector<int64_t>& labels = d.labels;
  if (labels.empty() ||
      std::any_of(labels.begin(), labels.end(), [&](int64_t label) { return label != labels[0]; }))
    return;
  const auto k = size_t(labels[0]);
  observer.on_warning(
      "OT3120",
      cat("every row has class ", labels[0],
          k < d.target.classes.size() ? cat(" ('", d.target.classes[k], "')") : "",
          ": there is nothing to tell apart, and the model learns to say it always"),
      "add rows of other classes; another column:  --target NAME");
}

// Classes that the output has and the data lacks.
void note_missing_classes(const Parts& p, const Model& m, Observer& observer) {
  constexpr int64_t kMost = 1000;
  const Scores scores = describe_scores(m);
  const std::vector<int64_t>& labels = p.data.labels;
  if (labels.empty() || scores.classes < 2 || scores.classes > kMost) return;
  std::vector<bool> seen(size_t(scores.classes), false);
  for (int64_t label : labels)
    if (label >= 0 && label < scores.classes) seen[size_t(label)] = true;
  std::vector<std::string> missing;
  const std::vector<std::string>& names = p.data.target.classes;
  for (size_t k = 0; k < seen.size(); ++k)
    if (!seen[k]) missing.push_back(k < names.size() ? names[k] : std::to_string(k));
  // that labels count from 1 is said elsewhere
  if (missing.empty() || (missing.size() == 1 && !seen[0])) return;
  observer.on_note("note", cat("output '", scores.output, "' has ", scores.classes,
                               " classes; no row has class ", listed_plain(missing, 10)));
}

std::set<int64_t> classes_of(const FeedColumns& rows) {
  for (size_t k = 0; k < rows.names.size(); ++k)
    if (rows.names[k] == rows.label && dtype_is_integer(rows.columns[k]->dtype())) {
      const std::vector<int64_t> labels = labels_by_row(*rows.columns[k]);
      return {labels.begin(), labels.end()};
    }
  return {};
}

// Classes that only one of training and validation has.
void warn_about_unmet_classes(const Parts& p, const Model& m, Observer& observer) {
  const std::set<int64_t> train = classes_of(p.train), valid = classes_of(p.valid);
  if (train.empty() || valid.empty()) return;
  const std::vector<std::string>& names = p.data.target.classes;
  const std::optional<int64_t> ignored = describe_scores(m).ignore_index;
  auto only = [&](const std::set<int64_t>& here, const std::set<int64_t>& there) {
    std::vector<std::string> found;
    for (int64_t k : here)
      if (there.count(k) == 0 && ignored != k)
        found.push_back(k >= 0 && size_t(k) < names.size() ? names[size_t(k)] : std::to_string(k));
    return found;
  };
  if (const auto unseen = only(valid, train); !unseen.empty())
    observer.on_warning("OT3120",
                        cat("validation rows have class ", listed_plain(unseen, 10),
                            ", which no training row has: they can only be wrong"),
                        "training rows of that class, or validation without it");
  if (const auto untested = only(train, valid); !untested.empty())
    observer.on_note("note", cat("no validation row has class ", listed_plain(untested, 10),
                                 ": the figures say nothing about it"));
}

void warn_about_similar_classes(const LoadedData& d, Observer& observer) {
  if (const std::string text = similar_classes(d.target.classes); !text.empty())
    observer.on_warning("OT3125", text, "write both alike in the data, where they are one class");
}

}  // namespace

std::string similar_classes(const std::vector<std::string>& names) {
  std::map<std::string, std::string> plain;
  for (const std::string& name : names) {
    std::string key;
    for (char c : name)
      if (std::isspace(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-')
        key += char(std::tolower(static_cast<unsigned char>(c)));
    const auto [it, fresh] = plain.try_emplace(key, name);
    if (!fresh && !key.empty())
      return cat("classes '", it->second, "' and '", name,
                 "' differ only in capital letters, blanks or dashes: they are learnt as two");
  }
  return {};
}

void warn_about_data(const Parts& p, const Model& m, const FeedOptions& feed, Observer& observer,
                     const std::string& table) {
  warn_about_one_class(p.data, observer);
  warn_about_similar_classes(p.data, observer);
  note_missing_classes(p, m, observer);
  warn_about_columns(p, m, table, observer);
  if (p.has_valid) warn_about_shared_rows(p, observer);
  if (p.has_valid) warn_about_unmet_classes(p, m, observer);
  if (p.has_valid && p.valid_data.feeds.columns.empty())
    if (const std::string windows = overlapping_rows(p.data.feeds); !windows.empty())
      observer.on_warning("OT3135", windows,
                          "validate on the end of the series:  --valid LATER.npz");
  if (p.has_valid && p.valid.rows() < kFewRows)
    observer.on_warning(
        "OT3113",
        cat("the validation data has ", p.valid.rows(), p.valid.rows() == 1 ? " row" : " rows",
            p.data.labels.empty()
                ? std::string()
                : cat(", one of them is ", std::round(1000.0 / double(p.valid.rows())) / 10,
                      " % of the accuracy"),
            ": its figures and the choice of the best epoch are rough"),
        p.valid.rows() < p.train.rows() / 3 ? "more rows for validation:  --valid 0.3" : "");
  if (feed.adapt.scale != "auto") return;
  if (const std::string twice = scaled_twice(p.data.feeds, m); !twice.empty())
    observer.on_warning("OT3114", twice, "give the bytes as they are:  --scale none");
  const std::string problem = scale_problem(p.train, m, data_spec(p.data.metadata).features);
  if (!problem.empty())
    observer.on_warning("OT3114", problem,
                        problem.starts_with("images")
                            ? "divide by 255:  --scale 0,255"
                            : "standardise the columns:  --scale standard");
}

}  // namespace onnxtrain::run
