// What a loss needs of targets and outputs.
#include "run/data/target_check.hpp"

#include <algorithm>
#include <cmath>

#include "convert/analysis.hpp"
#include "convert/analysis/output_range.hpp"
#include "core/shell.hpp"
#include "model/scores.hpp"
#include "run/data/each_value.hpp"

namespace onnxtrain::run {

namespace {

constexpr int64_t kSummedRows = 10000;
constexpr size_t kShownRows = 3;

bool is_one_of(const std::string& kind, std::initializer_list<const char*> kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const char* k) { return kind == k; });
}

struct Subject {
  std::string kind, output;
  ValueId value = kNone;
  Activation activation;
  OutputRange range;
  int64_t class_axis = 1;

  bool made_by(const Model& m, std::initializer_list<const char*> ops) const {
    if (activation.node < 0) return false;
    const Node& n = m.main.nodes[size_t(activation.node)];
    return std::any_of(ops.begin(), ops.end(), [&](const char* op) { return n.is(op); });
  }
};

Subject subject_of(const Model& m) {
  Subject s;
  s.kind = loss_kind(m);
  const Scores scores = describe_scores(m);
  s.value = scores.value;
  if (s.value == kNone) return s;
  s.output = scores.output;
  s.class_axis = scores.class_axis;
  s.activation = activation_behind(m.main, s.value);
  s.range = output_range(m.main, s.value);
  return s;
}

// " --loss-input NAME": the scores before an activation; "" when they cannot be named.
std::string scores_flag(const Model& m, const Subject& s) {
  const ValueId v = scores_before(m.main, s.value);
  return v == kNone || v == s.value ? std::string()
                                    : cat("--loss-input ", shell_word(m.main.value_name(v)));
}

[[noreturn]] void wrong_output(const std::string& message, const std::string& hint) {
  model_error("OT1290", message, hint);
}

std::string scores_or_other(const Model& m, const Subject& s, std::string kind) {
  const std::string flag = scores_flag(m, s);
  // one score per row behind two probabilities (1 - p, p)
  if (const ValueId v = scores_before(m.main, s.value); v != kNone && kind == "cross_entropy") {
    const TypeInfo& type = m.main.value(v).type;
    if (type.shape && !type.shape->empty() && type.shape->back().known() &&
        type.shape->back().value == 1)
      kind = "bce_logits";
  }
  return flag.empty() ? std::string(
                            "train on the scores before it:  --loss-input NAME   (onnxtrain "
                            "info MODEL --ops)")
                      : cat("train on the scores before it:  --loss ", kind, " ", flag);
}

std::string number_hint(const std::string& value) {
  std::string plain;  // "$ 1,234.5", "369525 EUR": digits, sign and point
  for (char c : value)
    if (std::string_view("0123456789.-+").find(c) != std::string_view::npos) plain += c;
  return csv_number(plain) && plain.find_first_of("0123456789") != std::string::npos
             ? cat("write plain numbers: ", plain, " instead of '", value, "'")
             : std::string();
}

[[noreturn]] void text_for_numbers(const Subject& s, const TargetFacts& t) {
  std::string rows, first;
  size_t shown = 0;
  for (size_t row = 0; row < t.ids.size() && shown < kShownRows; ++row) {
    const std::string& name = t.classes.at(size_t(t.ids[row]));
    if (csv_number(name)) continue;
    rows += cat(shown++ ? ", '" : "'", name, "' at row ", with_commas(int64_t(row)));
    if (first.empty()) first = name;
  }
  std::string hint = number_hint(first);
  if (hint.empty() && t.classes.size() == 2 && s.range.raw)
    hint = cat("two classes and one score per row:  --loss bce_logits");
  data_error("OT2162",
             cat("target '", t.column, "' holds text, the loss ",
                 s.kind.empty() ? "" : s.kind + " ", "learns numbers: ", rows),
             !hint.empty()
                 ? hint
                 : cat("to learn these ", t.classes.size(), " classes the model needs ",
                       t.classes.size(), " scores per row; another target:  --target NAME"));
}

[[noreturn]] void wrong_values(const Subject& s, const TargetFacts& t, const std::string& needs,
                               const std::string& hint) {
  data_error("OT2163",
             cat("loss ", s.kind, " needs targets ", needs, "; '", t.column, "' has values from ",
                 t.min, " to ", t.max),
             hint);
}

void check_probabilities(const Model& m, const Subject& s, const TargetFacts& t) {
  if (t.outside == 0) return;
  std::string hint = t.signs && s.kind == "bce_logits" ? "for targets -1 and 1:  --loss hinge"
                                                       : "to learn numbers:  --loss mse";
  if (!t.two_wholes.empty() && !t.signs) {
    hint = cat("two classes? write 0 and 1 instead of ", t.two_wholes);
  } else if (s.range.in(0, 1)) {
    const std::string flag = scores_flag(m, s);
    hint =
        flag.empty() ? "divide the targets so that they lie between 0 and 1" : cat(hint, " ", flag);
  }
  wrong_values(s, t, "from 0 to 1", hint);
}

}  // namespace

std::string loss_kind(const Model& m) {
  const auto it = m.metadata.find("onnxtrain.loss");
  return it == m.metadata.end() || it->second == "custom" ? std::string() : it->second;
}

void check_loss(const Model& m) {
  const Subject s = subject_of(m);
  if (s.value == kNone) return;
  const std::string what = cat("loss ", s.kind, " on output '", s.output, "': ");
  if ((s.kind == "nll" || s.kind == "kl") && s.range.raw)
    wrong_output(
        cat(what, "it needs log-probabilities, and the output holds scores"),
        s.kind == "nll" ? "--loss cross_entropy" : "end the model with a LogSoftmax or Softmax");
  if (s.kind == "bce" && s.range.raw)
    wrong_output(cat(what, "it needs probabilities, and the output holds scores"),
                 describe_scores(m).classes > 1
                     ? "one class per row:  --loss cross_entropy   0 or 1 for each score:  --loss "
                       "bce_logits"
                     : "--loss bce_logits");
  if (s.kind == "bce" && s.range.in(-1, 1) && s.range.low < 0)
    wrong_output(cat(what, "it needs probabilities, and the output lies between -1 and 1"),
                 scores_or_other(m, s, "bce_logits"));
  if (s.kind == "bce_logits" && s.range.in(0, 1) && !s.made_by(m, {"Sigmoid"}))
    wrong_output(cat(what, "it applies a sigmoid, and the output holds probabilities already"),
                 "--loss bce");
  if (s.kind == "cross_entropy" && s.range.in(0, 1) && !s.made_by(m, {"Softmax"}))
    wrong_output(cat(what, "it applies a softmax, and the output lies between 0 and 1 already"),
                 scores_or_other(m, s, "cross_entropy"));
  if (s.kind == "cross_entropy" && s.made_by(m, {"Softmax", "LogSoftmax"})) {
    // what the loss reads is the tensor in front of the activation
    const ValueId in = m.main.nodes[size_t(s.activation.node)].inputs[0];
    const ValueId scores = scores_before(m.main, in);
    if (output_range(m.main, in).in(0, 1))
      wrong_output(cat(what, "'", m.main.value_name(in),
                       "' in front of its Softmax lies between 0 and 1 already: two activations, "
                       "one behind the other"),
                   scores == kNone ? std::string("take one of the two out of the model")
                                   : cat("train on the scores before both:  --loss cross_entropy "
                                         "--loss-input ",
                                         shell_word(m.main.value_name(scores))));
  }
}

namespace {

// Probabilities of classes: every row sums to 1.
void check_sums(const Subject& s, const TargetFacts& t, const Column& c) {
  if (c.row_shape().size() != 1 || c.row_elements() < 2) return;
  const int64_t every = c.rows() / kSummedRows + 1;
  Tensor row(c.dtype(), {1, c.row_elements()});
  for (int64_t r = 0; r < c.rows(); r += every) {
    c.read({&r, 1}, row.data());
    double sum = 0;
    for (double v : row.to_doubles()) sum += v;
    if (std::fabs(sum - 1) > 0.01)
      data_error("OT2163",
                 cat("loss ", s.kind, " needs probabilities that sum to 1 in every row; row ",
                     with_commas(c.source_row(r)), " of '", t.column, "' sums to ", sum),
                 "divide every row by its sum; 0 or 1 for each score by itself:  --loss bce");
  }
}

// Two whole numbers that are not 0 and 1 are more often two classes than numbers to learn.
void note_two_values(const Subject& s, const TargetFacts& t, Observer& observer) {
  if (s.kind == "mse" && s.range.raw && !t.two_wholes.empty())
    observer.on_note("note", cat("target '", t.column, "' has two values, ", t.two_wholes,
                                 ", and is learnt as a number; two classes? write 0 and 1: then "
                                 "the loss is bce_logits"));
}

}  // namespace

void check_target(const Model& m, const LoadedData& d, Observer& observer) {
  if (d.feeds.label.empty()) return;
  const Subject s = subject_of(m);
  const TargetFacts& t = d.target;
  const bool binary = is_one_of(s.kind, {"bce", "bce_logits"});
  if (!t.ids.empty() && !(binary && t.classes.size() == 2)) text_for_numbers(s, t);
  const int maker = s.value == kNone ? -1 : int(m.main.value(s.value).producer);
  if (s.kind == "cross_entropy" && maker >= 0 && m.main.nodes[size_t(maker)].is("Relu"))
    observer.on_warning("OT3110",
                        cat("output '", s.output,
                            "' is a Relu: scores below 0 are cut off, and a row without a score "
                            "above 0 teaches nothing"),
                        cat("train on the scores before it:  ", scores_flag(m, s)));
  if (t.min > t.max || is_one_of(s.kind, {"cross_entropy", "nll", "output"})) return;
  if (binary || s.kind == "kl") check_probabilities(m, s, t);
  for (size_t k = 0; s.kind == "kl" && k < d.feeds.names.size(); ++k)
    if (d.feeds.names[k] == d.feeds.label) check_sums(s, t, *d.feeds.columns[k]);
  note_two_values(s, t, observer);
  if (s.kind == "hinge" && !t.signs)
    wrong_values(s, t, "-1 and 1",
                 t.two_values ? "for targets 0 and 1:  --loss bce_logits"
                              : "save the targets as -1 and 1, or learn numbers:  --loss mse");
  if (!is_one_of(s.kind, {"mse", "l1", "huber"}) || s.value == kNone) return;
  const double largest = std::max(std::fabs(t.min), std::fabs(t.max));
  if (s.kind == "mse" && largest > 1e18)
    data_error("OT2163",
               cat("target '", t.column, "' has values up to ", largest,
                   ": their squares are larger than float32 can hold, and the loss is infinite"),
               "write the target in a larger unit, or take its logarithm");
  const double slack = 1e-6 * (std::fabs(t.max) + std::fabs(t.min));
  if (t.min >= s.range.low - slack && t.max <= s.range.high + slack) return;
  const std::string what =
      cat("output '", s.output, "' lies between ", s.range.low, " and ", s.range.high,
          ", the target '", t.column, "' between ", t.min, " and ", t.max);
  const std::string flag = scores_flag(m, s);
  const std::string hint =
      flag.empty() ? std::string("scale the target to this range")
                   : cat("train on the tensor before the activation:  --loss ", s.kind, " ", flag);
  if (t.min > s.range.high || t.max < s.range.low || (s.range.in(0, 1) && t.outside > 0.5))
    data_error("OT2166", cat(what, ": it cannot be learnt"), hint);
  observer.on_warning("OT3110", cat(what, ": not every value can be reached"), hint);
}

bool outputs_in_doubt(const Model& m) {
  const Subject s = subject_of(m);
  if (s.value == kNone) return false;
  if (s.kind == "nll") return !s.made_by(m, {"LogSoftmax"});
  if (s.kind == "kl") return !s.made_by(m, {"LogSoftmax", "Softmax"});
  if (s.kind == "bce") return !s.range.in(0, 1);
  return s.kind == "cross_entropy" && !s.range.raw && !s.made_by(m, {"Softmax", "LogSoftmax"});
}

void check_outputs(const Model& m, const Tensor& scores) {
  const Subject s = subject_of(m);
  const Shape& shape = scores.shape();
  const std::vector<double> v = scores.to_doubles();
  if (v.empty()) return;
  const auto [low, high] = std::minmax_element(v.begin(), v.end());
  const std::string what = cat("loss ", s.kind, " on output '", s.output, "': for the first rows ");
  constexpr double kSlack = 1e-3;
  if (s.kind == "bce") {
    if (*low < -kSlack || *high > 1 + kSlack)
      wrong_output(
          cat(what, "it lies between ", *low, " and ", *high, ", the loss needs probabilities"),
          "--loss bce_logits");
    return;
  }
  if (shape.size() < 2) return;
  const auto axis = size_t(std::min<int64_t>(s.class_axis, int64_t(shape.size()) - 1));
  const int64_t outer = product(shape, 0, axis), k = shape[axis],
                inner = product(shape, axis + 1, shape.size());
  if (k < 2) return;
  bool sums = true, exponentials = true;
  double example = 0;
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < inner; ++j) {
      double sum = 0, exp = 0;
      for (int64_t c = 0; c < k; ++c) {
        const double x = v[size_t((i * k + c) * inner + j)];
        sum += x;
        exp += std::exp(x);
      }
      if (exponentials && std::fabs(exp - 1) > 0.05) example = exp;
      sums &= std::fabs(sum - 1) <= kSlack;
      exponentials &= std::fabs(exp - 1) <= 0.05;
    }
  const bool probabilities = sums && *low >= -kSlack && *high <= 1 + kSlack;
  if (s.kind == "cross_entropy" && probabilities)
    wrong_output(cat(what,
                     "its values are probabilities (they sum to 1), the loss would apply a "
                     "second softmax"),
                 scores_or_other(m, s, "cross_entropy"));
  if (s.kind != "cross_entropy" && !exponentials)
    wrong_output(
        cat(what,
            probabilities ? std::string("its values are probabilities")
                          : cat("the exponentials of its values sum to ", example, " instead of 1"),
            ", the loss needs log-probabilities"),
        probabilities     ? scores_or_other(m, s, "cross_entropy")
        : s.kind == "nll" ? "scores?  --loss cross_entropy"
                          : "end the model with a LogSoftmax or Softmax");
}

LossChoice better_choice(const Model& m, const LossChoice& chosen, const TargetFacts& t) {
  if (chosen.kind != "mse" || is_made_for_numbers(m) || !(t.two_values || t.classes.size() == 2))
    return {};
  const ValueId v = find_output(m, chosen.output);
  const TypeInfo& type = m.main.value(v).type;
  // one number per row; an image of black and white pixels is no class
  if (!type.shape || type.shape->size() > 2) return {};
  const OutputRange r = output_range(m.main, v);
  LossChoice c = chosen;
  if (r.raw)
    c.kind = "bce_logits";
  else if (r.in(0, 1))
    c.kind = "bce";
  else
    return {};
  c.because = cat("target '", t.column, "' has two values (",
                  t.classes.size() == 2 ? cat("'", t.classes[0], "', '", t.classes[1], "'")
                                        : std::string("0, 1"),
                  ") and '", c.output, "' ",
                  describe_scores(m).classes > 1 ? "has one score for each of its columns"
                                                 : "is one number per row");
  return c;
}

void rethrow_for_target(const Misfit& e, const Model& m, const Dataset& data,
                        const std::string& column) {
  const Scores scores = describe_scores(m);
  const std::string kind = loss_kind(m);
  std::string hint = e.hint();
  if (e.what_fits_not == Misfit::What::kValue && is_one_of(kind, {"cross_entropy", "nll"}) &&
      scores.classes > 1)
    hint =
        cat("output '", scores.output, "' has ", scores.classes, " scores per row, for classes 0..",
            scores.classes - 1,
            "; to learn numbers take a model with one output, or another target:  --target NAME");
  if (e.what_fits_not == Misfit::What::kShape && data.column(column)->row_elements() == 1 &&
      !kind.empty()) {
    bool whole = true;
    for_each_value(*data.column(column), [&](double v) {
      whole &= v == std::floor(v) && v >= 0 && v < double(std::max<int64_t>(scores.classes, 1));
    });
    if (!whole || scores.classes < 2)
      hint = data.targets().empty()
                 ? cat("the output has ", scores.classes, " numbers per row: save as many per row")
                 : cat("the output has ", scores.classes,
                       " numbers per row: name as many columns:  --target A,B");
    else if (const Subject s = subject_of(m); s.range.in(0, 1) && !s.made_by(m, {"Softmax"}))
      if (const std::string flag = scores_flag(m, s); !flag.empty())
        hint = cat("one number per row: class numbers?  --loss cross_entropy ", flag);
  }
  throw Error(e.kind(), e.code(), e.message(), hint);
}

}  // namespace onnxtrain::run
