// The best epoch.
#include "run/best.hpp"

#include <filesystem>

#include "convert/attribute_weights.hpp"
#include "onnx/onnx.hpp"
#include "run/metrics.hpp"

namespace onnxtrain::run {

void judge(EpochResult& e, Position& at) {
  const bool metric = e.has_valid && !e.metrics.empty();
  const bool larger = metric && Metrics::larger_is_better(e.metrics[0].first);
  const double value = metric ? e.metrics[0].second : e.has_valid ? e.valid_loss : e.train_loss;
  const std::string name = metric        ? "valid_" + e.metrics[0].first
                           : e.has_valid ? "valid_loss"
                                         : "train_loss";
  // an accuracy and a loss cannot be compared: another number begins anew
  const bool other = !at.watched.empty() && at.watched != name;
  e.best = at.best_epoch == 0 || other || (larger ? value > at.best : value < at.best);
  at.watched = name;
  if (!e.best) return;
  at.best = value;
  at.best_epoch = e.epoch;
}

void export_inference(Model m, const std::map<std::string, std::string>& metadata,
                      const std::string& path) {
  strip_checkpoint_metadata(m);
  for (const auto& [key, value] : metadata) m.metadata[key] = value;
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
