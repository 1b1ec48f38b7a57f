// The data of a run, and what of the training follows from it: the loss, a scale, weights of
// classes.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/shell.hpp"
#include "model/scores.hpp"
#include "run/data/column_relations.hpp"
#include "run/data/target_check.hpp"
#include "run/run.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;

// The data of a resumed run may have moved; synthetic data has no file.
void require_data(const std::string& resume, const DataRequest& q) {
  for (const auto& [flag, path] : {std::pair{"--data", q.data}, std::pair{"--valid", q.valid}}) {
    double fraction = 0;
    if (is_fraction(path, fraction) || path.starts_with("synthetic:") || fs::exists(path)) continue;
    if (path == "-" && isatty(STDIN_FILENO) == 0) continue;
    if (path == "-")
      data_error("OT4001",
                 cat("the data of the run '", resume,
                     "' came from standard input, and it is "
                     "a terminal now"),
                 cat("give the table again:  onnxtrain train --resume ", shell_word(resume), " ",
                     flag, " FILE.csv"));
    data_error("OT4001", cat("the data of the run '", resume, "', '", path, "', is not there"),
               cat("say where it is now:  onnxtrain train --resume ", shell_word(resume), " ", flag,
                   " ", shell_word(fs::path(path).filename().string())));
  }
}

}  // namespace

// As many target columns were named as the output has numbers per row: they are numbers to learn,
// or a 0 or 1 each, where `auto` took the output for the scores of one class per row.
LossChoice Run::choose_by_columns(Start& s) {
  if (s.resumed || !s.prepared || s.chosen.size() != 1 || s.chosen[0].kind != "cross_entropy")
    return {};
  const auto columns = std::count(q_.data.target.begin(), q_.data.target.end(), ',') + 1;
  if (columns < 2 || columns != describe_scores(*s.model).classes) return {};
  LossChoice c = s.chosen[0];
  c.kind = "mse";
  c.because = cat(columns, " target columns are named and '", c.output, "' has ", columns,
                  " numbers per row");
  q_.recipe = [base = q_.recipe] {
    Recipe r = base();
    first_loss(r).kind = "mse";
    return r;
  };
  prepare_again(s, q_.recipe());
  return c;
}

// A scale that is measured becomes part of a model that is prepared here: it then takes raw numbers
// wherever it goes.
void Run::scale_in_graph(Start& s, const Known& known) {
  if (s.resumed || !s.prepared || !is_measured_scale(q_.data.feed.adapt.scale)) return;
  if (data_spec(s.model->metadata).scaled_in_graph()) {
    s.notes.emplace_back("scale", cat(q_.data.feed.adapt.scale,
                                      " is not applied: the model scales its inputs itself"));
    return;
  }
  Observer silent;
  const auto measured =
      load_parts(q_.data, *s.model, fed_inputs(*s.model), at_.seed, known, silent).measured;
  if (measured.empty()) return;
  prepare_again(s, q_.recipe(), [measured](Model m) {
    for (const auto& [input, scale] : measured) {
      InputScale in;
      in.mean = scale.mean;
      in.std = scale.std;
      in.shape = {int64_t(scale.mean.size())};
      m = with_scaled_input(m, input, in, all_ops());
    }
    m.metadata["onnxtrain.scale"] = kScaledInGraph;
    m.metadata.erase("onnxtrain.standard");
    return m;
  });
  s.notes.emplace_back("scale", cat(q_.data.feed.adapt.scale,
                                    ", measured on the training rows and part of the model"));
}

// Rows / (classes * rows of the class): a class of few rows counts as much as one of many.
void Run::balance_classes(Start& s) {
  if (s.resumed || !s.prepared || !q_.balanced) return;
  std::vector<int64_t> labels;
  for (size_t k = 0; k < parts_.train.names.size(); ++k)
    if (parts_.train.names[k] == parts_.train.label)
      labels = labels_by_row(*parts_.train.columns[k]);
  const int64_t classes = describe_scores(*s.model).classes;
  if (labels.empty() || classes < 2)
    usage_error("OT0039", "--class-weights balanced needs one class label per row",
                classes < 2 ? "remove it: the model learns numbers, or one score per row"
                            : "remove it, or choose a loss for classes:  --loss cross_entropy");
  std::vector<double> counts(size_t(classes), 0);
  for (int64_t c : labels)
    if (c >= 0 && c < classes) ++counts[size_t(c)];
  std::vector<float> weights;
  for (double n : counts)
    weights.push_back(n > 0 ? float(double(labels.size()) / (double(classes) * n)) : 1.0F);
  q_.recipe = [base = q_.recipe, weights] {
    Recipe r = base();
    first_loss(r).class_weights = weights;
    return r;
  };
  const auto notes = s.notes;
  prepare_again(s, q_.recipe());
  s.notes = notes;
}

// Which class has which weight: the order of names is not the user's.
void Run::note_class_weights(Start& s) const {
  if (s.resumed || !s.prepared || parts_.data.labels.empty()) return;
  const Recipe r = q_.recipe();
  if (r.losses.size() != 1) return;
  const std::vector<int64_t>& labels = parts_.data.labels;
  if (const auto ignored = r.losses[0].ignore_index;
      ignored && std::find(labels.begin(), labels.end(), *ignored) == labels.end())
    s.notes.emplace_back("note", cat("no row has label ", *ignored,
                                     ": --ignore-index leaves nothing out of the loss"));
  if (r.losses[0].class_weights.empty()) return;
  const std::vector<float>& weights = r.losses[0].class_weights;
  const std::vector<std::string>& names = parts_.data.target.classes;
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t k = 0; k < weights.size() && k < kShown; ++k)
    text +=
        cat(k ? ", " : "", k < names.size() ? cat("'", names[k], "' ") : cat(k, ": "), weights[k]);
  s.notes.emplace_back("weights", cat(text, weights.size() > kShown ? ", ..." : ""));
}

// The data, and the loss as far as it follows from the data.
void Run::open_data(Start& s, Observer& observer) {
  const bool goes_on = s.resumed || s.at.step > 0;
  Known known{data_spec(s.model->metadata), goes_on};
  if (q_.preprocess && s.plain) known.spec.of_run = false;  // it was put in front just now
  if (s.resumed) require_data(q_.resume, q_.data);
  const LossChoice by_columns = choose_by_columns(s);
  scale_in_graph(s, known);
  if (!by_columns.kind.empty()) {
    s.chosen = {by_columns};
    note_loss(s, by_columns);
  }
  parts_ = load_parts(q_.data, *s.model, fed_inputs(*s.model), at_.seed, known, observer);
  // as it was read: a run that is resumed has its own word
  if (const auto layout = parts_.data.metadata.find(kLayoutKey);
      layout != parts_.data.metadata.end())
    settings_.replace("layout", layout->second);
  balance_classes(s);
  note_class_weights(s);
  if (s.chosen.size() == 1) {
    const LossChoice better = better_choice(*s.model, s.chosen[0], parts_.data.target);
    if (!better.kind.empty()) choose_loss_again(s, q_.recipe(), better);
  }
  for (const auto& [label, text] : s.notes) observer.on_note(label, text);
  for (const LeftOut& l : s.left_out) observer.on_warning("OT1285", l.text, l.hint);
  for (const OddSetting& o : s.settings) observer.on_warning("OT3130", o.text, o.hint);
  // which rows the run has not seen yet is known for its own split alone
  if (s.resumed && (settings_.changes("valid") || was_edited(settings_, s, "valid")) &&
      parts_.has_valid && parts_.valid_data.feeds.columns.empty() && q_.data.overfit == 0)
    observer.on_warning("OT3116",
                        cat("--valid ", q_.data.valid,
                            " chooses the validation rows anew: rows that the run was trained on "
                            "are among them, and their figures are better than on new data"),
                        "leave --valid out to keep the split of the run, or give another file:  "
                        "--valid FILE");
  check_data(*s.model, goes_on, observer);
}

}  // namespace onnxtrain::run
