// What a run says about its data before the first step, and whether it is the data of before.
#include "core/text.hpp"
#include "run/data/column_relations.hpp"
#include "run/data/target_check.hpp"
#include "run/data/usual_values.hpp"
#include "run/run.hpp"

namespace onnxtrain::run {

namespace {

constexpr const char* kValidRows = "onnxtrain.valid_data";

}  // namespace

void Run::check_data(const Model& m, bool goes_on, Observer& observer) {
  if (!goes_on) check_loss(m);
  check_target(m, parts_.data, observer);
  check_indices(parts_.data.feeds, m, observer);
  try {
    check_indices(parts_.valid_data.feeds, m, observer);
    check_target(m, parts_.valid_data, observer);
  } catch (const Error& e) {
    rethrow_of(e, "validation data", q_.data.valid);
  }
  const std::vector<std::string> features = data_spec(parts_.data.metadata).features;
  FeedColumns before = parts_.train;
  if (!goes_on) before.label.clear();  // a new training may learn something else
  warn_unlike(before, m.metadata, features, observer);
  warn_unlike(parts_.valid_data.feeds, parts_.data.metadata, features, observer,
              "validation data: ");
  const std::string now = parts_.all.text();
  const auto then = m.metadata.find("onnxtrain.data");
  if (goes_on && then != m.metadata.end() && then->second != now)
    observer.on_warning("OT3116",
                        cat("the data is not what this run was trained on so far (", then->second,
                            " then, ", now, " now): training goes on with it",
                            parts_.has_valid && parts_.valid_data.feeds.columns.empty()
                                ? ", and rows of validation may have been trained on"
                                : ""),
                        "a run of its own for other data:  --out runs/other");
  parts_.data.metadata["onnxtrain.data"] = now;
  if (parts_.valid_data.feeds.columns.empty()) return;
  const std::string valid_now = parts_.valid_rows.text();
  const auto valid_before = m.metadata.find(kValidRows);
  if (goes_on && valid_before != m.metadata.end() && valid_before->second != valid_now)
    observer.on_warning(
        "OT3116",
        cat("the validation data is not what it was (", valid_before->second, " then, ", valid_now,
            " now): figures of earlier epochs cannot be compared with new ones"),
        "validate on the rows of before, or begin a run of its own:  --out "
        "runs/other");
  parts_.data.metadata[kValidRows] = valid_now;
}

}  // namespace onnxtrain::run
