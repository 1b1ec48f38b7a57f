// The best epoch.
#include "run/folder/best.hpp"

#include <cmath>
#include <filesystem>

#include "convert/analysis/attribute_weights.hpp"
#include "onnx/onnx.hpp"
#include "run/metrics/metrics.hpp"

namespace onnxtrain::run {

namespace {

// "" when the epoch is not better than the best so far.
std::string better_by(const EpochResult& e, const Position& at, const std::string& metric,
                      double value, bool larger) {
  if (e.has_valid && !std::isfinite(e.valid_loss)) return {};  // its other figures are not true
  const bool lost = at.best_loss && !std::isfinite(*at.best_loss);
  if (!std::isfinite(at.best) || lost)
    return std::isfinite(value) ? std::string("the first with a finite loss") : std::string();
  if (larger ? value > at.best : value < at.best) return cat(larger ? "higher " : "lower ", metric);
  const bool tie = value == at.best && e.has_valid && !e.watches_loss && at.best_loss;
  return tie && e.valid_loss < *at.best_loss ? cat("same ", metric, ", lower loss") : std::string();
}

}  // namespace

void judge(EpochResult& e, Position& at) {
  const bool metric = e.has_valid && !e.metrics.empty() && !e.watches_loss;
  const bool larger = metric && Metrics::larger_is_better(e.metrics[0].first);
  const double value = metric ? e.metrics[0].second : e.has_valid ? e.valid_loss : e.train_loss;
  const std::string name = metric        ? "valid_" + e.metrics[0].first
                           : e.has_valid ? "valid_loss"
                                         : "train_loss";
  // an accuracy and a loss cannot be compared: another number begins anew
  const bool other = !at.watched.empty() && at.watched != name;
  const std::string word = metric ? e.metrics[0].first : e.has_valid ? "valid loss" : "train loss";
  e.best_because = at.best_epoch == 0 ? "first"
                   : other            ? cat(word, " is watched now")
                                      : better_by(e, at, word, value, larger);
  e.best = !e.best_because.empty();
  at.watched = name;
  if (!e.best) return;
  at.best = value;
  at.best_epoch = e.epoch;
  at.best_loss.reset();
  if (e.has_valid) at.best_loss = e.valid_loss;
}

void export_inference(Model m, const std::map<std::string, std::string>& metadata,
                      const std::string& path) {
  for (const auto& [key, value] : metadata) m.metadata[key] = value;
  strip_checkpoint_metadata(m);
  SaveOptions s;
  s.inference_only = true;
  save_model(with_attribute_weights(m, all_ops()), path, all_ops(), s);
}

bool best_is_lost(const Folder& folder, Position& at,
                  const std::map<std::string, std::string>& metadata, Observer& observer) {
  if (at.best_epoch == 0) return false;
  const bool model = std::filesystem::exists(folder.model());
  if (std::filesystem::exists(folder.best())) {
    Position ignored;
    if (!model) export_inference(load_checkpoint(folder.best(), ignored), metadata, folder.model());
    return false;
  }
  // a folder of its own for a run that was resumed elsewhere: nothing was lost in it
  if (!model && folder.logged_epochs() == 0) {
    observer.on_note("note", cat("the best epoch so far (", at.best_epoch,
                                 ") stays in the run that is resumed; here the best of the epochs "
                                 "from now on counts"));
    at.best_epoch = 0;
    return true;
  }
  observer.on_warning(
      "OT3103",
      cat("'", folder.best(), "' (epoch ", at.best_epoch, ") is gone",
          model ? cat("; its inference model '", folder.model(), "' stays until an epoch is better")
                : " and so is its inference model: the best of the epochs from here on counts"),
      "");
  if (!model) at.best_epoch = 0;
  return !model;
}

}  // namespace onnxtrain::run
