// What is worth a word about the rows that a run is trained and validated on.
#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "run/column_scale.hpp"
#include "run/parts.hpp"

namespace onnxtrain::run {

namespace {

constexpr int64_t kFewRows = 50;  // of validation: one row is more than 2 %

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

}  // namespace

void warn_about_data(const Parts& p, const Model& m, const FeedOptions& feed, Observer& observer) {
  warn_about_one_class(p.data, observer);
  if (p.has_valid) warn_about_shared_rows(p, observer);
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
  const std::string problem = scale_problem(p.train, m, data_spec(p.data.metadata).features);
  if (!problem.empty())
    observer.on_warning("OT3114", problem, "standardise the columns:  --scale standard");
}

}  // namespace onnxtrain::run
