// What a training shows while it runs: a table of epochs, and on a terminal a bar under it.
#pragma once
#include <string>

#include "cli/common/narration.hpp"

namespace onnxtrain::cli {

// "98.13 %" for accuracies, "0.0611" otherwise.
std::string format_metric(const std::string& name, double value);

// "0.0611"; "1.118e+10" and "2.5e-05" where four decimals would be too many digits or none.
std::string format_loss(double value);

// Samples per second: "4,031"; "0.42" for slow steps.
std::string format_speed(double samples_per_second);

// "a constant guess (the mean) gives mae 3.1, rmse 4.2"; "" for none.
// `beside`: the metric that stands before it; figures of another one are named.
std::string constant_guess_text(const std::vector<std::pair<std::string, double>>& guess,
                                const std::string& beside = "accuracy");

class Progress : public Narrator {
 public:
  // mode: auto|bar|lines|json|none; auto = a bar on a terminal, otherwise one line per epoch
  Progress(const std::string& mode, int64_t epochs);
  void set_epochs(int64_t epochs) { epochs_ = epochs; }
  void on_step(int64_t epoch, int64_t batch, int64_t batches, double loss, double speed) override;
  void on_epoch(const run::EpochResult& e) override;
  void on_warning(const std::string& code, const std::string& text,
                  const std::string& hint) override;
  void finish();

 private:
  void clear_bar();
  bool has_line(const run::EpochResult& e) const;
  bool every_;  // a line for every epoch was asked for
  bool bar_, lines_, json_, header_ = false, bar_shown_ = false;
  int64_t epochs_;
  double last_draw_ = 0, epoch_begin_ = 0;
  int64_t epoch_ = 0, first_batch_ = 0;
};

}  // namespace onnxtrain::cli
