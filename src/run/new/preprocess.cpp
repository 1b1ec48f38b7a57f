// Rules of --preprocess auto.
#include "run/new/preprocess.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/shell.hpp"
#include "core/text.hpp"
#include "data/table/csv_column.hpp"
#include "run/new/number_texts.hpp"

namespace onnxtrain::run {

namespace {

using Kind = CsvColumn::Kind;
using Names = std::vector<std::string>;

constexpr size_t kMostOneHot = 16;  // categories; more become vectors
constexpr size_t kMostCategories = 10000;
constexpr size_t kMatrixFrom = 129;  // number columns that make one input

bool has(const Names& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

double median(std::vector<double> v) {
  const size_t half = v.size() / 2;
  std::nth_element(v.begin(), v.begin() + long(half), v.end());
  const double upper = v[half];
  if (v.size() % 2 == 1) return upper;
  return (upper + *std::max_element(v.begin(), v.begin() + long(half))) / 2;
}

double mean_of(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum / double(v.size());
}

double most_frequent(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  double best = v[0];
  size_t most = 0;
  for (size_t i = 0; i < v.size();) {
    size_t end = i;
    while (end < v.size() && v[end] == v[i]) ++end;
    if (end - i > most) most = end - i, best = v[i];
    i = end;
  }
  return best;
}

double number_in(const std::string& text, const std::string& flag) {
  double v = 0;
  const auto [stop, bad] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (bad != std::errc() || stop != text.data() + text.size() || !std::isfinite(v))
    usage_error("OT0035", cat(flag, ": '", text, "' is no number"),
                "--impute constant:0   --scale 0.5,0.25");
  return v;
}

double fill_value(const std::string& impute, const ColumnProfile& p) {
  if (impute == "auto" || impute == "median") return median(p.numbers);
  if (impute == "mean") return mean_of(p.numbers);
  if (impute == "most_frequent") return most_frequent(p.numbers);
  if (impute == "constant") return 0;
  if (impute.starts_with("constant:")) return number_in(impute.substr(9), "--impute " + impute);
  usage_error("OT0035", cat("--impute ", impute, " is not known"),
              "--impute median, mean, most_frequent, constant or constant:NUMBER");
}

// Mean and deviation, or smallest value and range, after missing values were filled in.
void set_scale(const std::string& scale, const ColumnProfile& p, ColumnTransform& t) {
  if (scale == "none") return;
  const double rows = double(p.rows), missing = double(p.missing);
  if (scale == "minmax") {
    const auto [low, high] = std::minmax_element(p.numbers.begin(), p.numbers.end());
    t.offset = missing > 0 ? std::min(*low, t.fill) : *low;
    const double range = (missing > 0 ? std::max(*high, t.fill) : *high) - t.offset;
    t.scale = range > 0 ? 1 / range : 1;
    return;
  }
  const double mean = (mean_of(p.numbers) * (rows - missing) + missing * t.fill) / rows;
  double square = missing * (t.fill - mean) * (t.fill - mean);
  for (double v : p.numbers) square += (v - mean) * (v - mean);
  const double std = std::sqrt(square / rows);
  t.offset = mean;
  t.scale = std > 1e-7 * std::fabs(mean) && std > 0 ? 1 / std : 1;
}

ColumnTransform number_transform(const ColumnProfile& p, const PreprocessOptions& o,
                                 const std::string& scale) {
  ColumnTransform t;
  t.name = p.name;
  t.fill = fill_value(o.impute, p);
  if (scale.find(',') == std::string::npos) set_scale(scale, p, t);
  return t;
}

ColumnTransform category_transform(const ColumnProfile& p, const PreprocessOptions& o, bool embed) {
  ColumnTransform t;
  t.kind = ColumnTransform::Kind::kCategory;
  t.name = p.name;
  if (p.missing > 0 && o.impute != "most_frequent") t.categories.emplace_back();
  int64_t most = 0;
  for (const auto& [text, count] : p.texts) {
    t.categories.push_back(text);
    if (o.impute == "most_frequent" && count > most) most = count, t.missing_as = text;
  }
  if (embed)
    t.embedding = std::clamp<int64_t>(
        int64_t(std::lround(1.6 * std::pow(double(t.categories.size()), 0.56))), 2, 50);
  return t;
}

// Several words each, not names.
bool holds_sentences(const ColumnProfile& p) {
  constexpr size_t kWords = 4;
  size_t blanks = 0;
  for (const auto& [text, count] : p.texts)
    blanks += size_t(std::count(text.begin(), text.end(), ' '));
  return blanks >= (kWords - 1) * p.texts.size();
}

void refuse_stray(const ColumnProfile& p, const std::string& source) {
  if (p.stray.empty()) return;
  const std::string where =
      cat("'", source, "' line ", with_commas(p.stray_line), ", column '", p.name, "'");
  const std::string category =
      cat("correct the value, empty the field, or take the column as categories:  --one-hot ",
          shell_word(p.name));
  if (p.kind == Kind::kDate)
    data_error("OT2181", cat("no date: ", csv_shown(p.stray), " in ", where), category);
  const std::string comma = decimal_comma_hint(p.stray);
  data_error("OT2124", cat("text where a number is needed: ", csv_shown(p.stray), " in ", where),
             comma.empty() ? category : comma);
}

void refuse_infinity(const ColumnProfile& p, const std::string& source) {
  if (std::all_of(p.numbers.begin(), p.numbers.end(), [](double v) { return std::isfinite(v); }))
    return;
  data_error("OT2120", cat("column '", p.name, "' of '", source, "' has an infinity"),
             "correct the value, or empty the field: the model fills it in");
}

void check_names(const TableProfile& table, const Names& names, const char* flag) {
  Names all;
  for (const ColumnProfile& p : table.columns) all.push_back(p.name);
  for (const std::string& name : names) {
    if (name == "all" || has(all, name)) continue;
    const std::string near = closest(name, all);
    data_error("OT2182",
               cat("there is no column '", name, "' for ", flag, "; there are ", listed(all, 20)),
               near.empty() ? cat(flag, " all") : cat(flag, " ", shell_word(near)));
  }
}

// The columns while they are being sorted into kinds.
class Planner {
 public:
  Planner(const PreprocessOptions& o, const std::string& source)
      : o_(o), source_(source), scale_(o.scale == "auto" ? "standard" : o.scale) {
    if (scale_ != "standard" && scale_ != "minmax" && scale_ != "none" &&
        scale_.find(',') == std::string::npos)
      usage_error("OT0035", cat("--scale ", scale_, " is not known"),
                  "--scale standard, minmax, none or MEAN,STD");
  }

  void add(const ColumnProfile& p) {
    const bool asked = has(o_.one_hot, p.name) || has(o_.embed, p.name);
    if (p.empty()) return leave_out(p.name, "empty");
    if (p.constant()) return leave_out(p.name, cat("always ", csv_shown(p.texts.begin()->first)));
    if (!asked && p.counts_rows()) return leave_out(p.name, "counts the rows");
    if (!asked && p.is_id()) return leave_out(p.name, "an id, different in every row");
    if (asked || p.kind == Kind::kText) return add_category(p, asked);
    refuse_stray(p, source_);
    refuse_infinity(p, source_);
    CsvColumn read;
    read.kind = p.kind;
    read.name = p.name;
    read.order = p.order;
    read.form = p.form;
    read.missing = true;
    if (!p.form.around.empty()) note_form(p);
    if (p.kind == Kind::kDate) {
      dates_.push_back(p.name);
      if (p.order_open) open_dates_.push_back(p.name);
    }
    if (p.missing > 0) missing_.push_back(cat("'", p.name, "' (", p.missing, ")"));
    plan_.columns.push_back(number_transform(p, o_, scale_));
    plan_.reading.push_back(read);
  }

  PreprocessPlan finish(bool some) {
    if (some && plan_.columns.empty() && categories_.empty())
      data_error(
          "OT2180",
          cat("no column of '", source_, "' can be learnt from: ", listed_plain(plan_.left_out)),
          text_column_.empty() ? std::string("add a column whose values differ between the rows")
          : sentences_ ? cat("texts to be read word by word, by lstm, gru or transformer:  --text ",
                             shell_word(text_column_), " --tokenizer tokenizer.json")
                       : cat("name a column of text that is to be used all the same:  --embed ",
                             shell_word(text_column_)));
    const size_t numbers = plan_.columns.size();
    if (scale_.find(',') != std::string::npos) set_given_scale();
    plan_.matrix =
        categories_.empty() && dates_.empty() && forms_.empty() && numbers >= kMatrixFrom;
    if (numbers > 0)
      plan_.lines.push_back(cat(numbers, numbers == 1 ? " number" : " numbers", ": ", scale_text(),
                                ", missing values become ", impute_text()));
    if (!missing_.empty())
      plan_.lines.push_back(cat("missing values in ", listed_plain(missing_, 8)));
    if (!forms_.empty())
      plan_.lines.push_back("units and groups of digits taken off: " + listed_plain(forms_, 8));
    if (!dates_.empty())
      plan_.lines.push_back(cat("dates as days since 1970-01-01: ", listed(dates_, 8)));
    if (!open_dates_.empty())
      plan_.lines.push_back(cat("dates such as 3/4/2020 read with the month first: ",
                                listed(open_dates_, 8), "   (write 2020-03-04 to be sure)"));
    Names hot, vectors;
    for (const ColumnTransform& t : categories_) {
      (t.embedding > 0 ? vectors : hot)
          .push_back(t.embedding > 0
                         ? cat("'", t.name, "' (", t.categories.size(), " to ", t.embedding, ")")
                         : cat("'", t.name, "' (", t.categories.size(), ")"));
      CsvColumn read;
      read.kind = Kind::kText;
      read.name = t.name;
      plan_.columns.push_back(t);
      plan_.reading.push_back(read);
    }
    if (!hot.empty()) plan_.lines.push_back("one-hot: " + listed_plain(hot, 12));
    if (!vectors.empty()) plan_.lines.push_back("embedding: " + listed_plain(vectors, 12));
    if (!disguised_.empty())
      plan_.lines.push_back("text that may be numbers: " + listed_plain(disguised_, 12));
    return std::move(plan_);
  }

 private:
  // Numbers that are written so that they are text.
  static std::string numbers_in(const ColumnProfile& p) {
    Names all;
    for (const auto& [text, count] : p.texts) all.push_back(text);
    return numbers_in_texts(all);
  }

  // With the longest value, which shows the most.
  void note_form(const ColumnProfile& p) {
    const std::string* longest = &p.texts.begin()->first;
    for (const auto& [text, count] : p.texts)
      if (text.size() > longest->size()) longest = &text;
    forms_.push_back(cat("'", p.name, "' (", csv_shown(*longest), " is ",
                         all_digits(number_of_form(*longest, p.form).value_or(0)), ")"));
  }

  void leave_out(const std::string& name, const std::string& why) {
    plan_.left_out.push_back(cat("'", name, "' (", why, ")"));
  }

  void add_category(const ColumnProfile& p, bool asked) {
    const size_t n = p.texts.size();
    if (!p.all_texts || n > kMostCategories) {
      if (asked)
        data_error("OT2183",
                   cat("column '", p.name, "' has more than ", with_commas(kMostCategories),
                       " different values: too many for categories"),
                   cat("leave it out:  --drop ", shell_word(p.name)));
      return leave_out(p.name, cat("more than ", with_commas(kMostCategories), " texts"));
    }
    // names and numbers of things: a text that hardly ever comes again teaches nothing
    if (!asked && !has(o_.embed, "all") && !has(o_.one_hot, "all") && n > kMostOneHot &&
        2 * int64_t(n) > p.rows - p.missing) {
      if (text_column_.empty()) text_column_ = p.name, sentences_ = holds_sentences(p);
      const std::string numbers = numbers_in(p);
      return leave_out(p.name, cat(n, " different texts in ", p.rows, " rows",
                                   numbers.empty() ? "" : "; " + numbers));
    }
    if (const std::string numbers = numbers_in(p); !asked && n > kMostOneHot && !numbers.empty())
      disguised_.push_back(cat("'", p.name, "' (", numbers, ")"));
    const bool one_hot = has(o_.one_hot, p.name), embed = has(o_.embed, p.name);
    const bool vectors =
        !one_hot &&
        (embed || (!has(o_.one_hot, "all") && (has(o_.embed, "all") || n > kMostOneHot)));
    categories_.push_back(category_transform(p, o_, vectors));
  }

  void set_given_scale() {
    std::vector<float> mean, std;
    parse_mean_std(scale_, plan_.columns.size(), "number columns", mean, std);
    for (size_t k = 0; k < plan_.columns.size(); ++k) {
      plan_.columns[k].offset = mean[k];
      plan_.columns[k].scale = 1 / double(std[k]);
    }
  }

  std::string scale_text() const {
    if (scale_ == "standard") return "(v - mean) / deviation";
    if (scale_ == "minmax") return "(v - min) / (max - min)";
    return scale_ == "none" ? std::string("as they are") : cat("(v - MEAN) / STD of ", scale_);
  }
  std::string impute_text() const {
    if (o_.impute == "auto" || o_.impute == "median") return "the median";
    if (o_.impute == "mean") return "the mean";
    if (o_.impute == "most_frequent") return "the most frequent value";
    return o_.impute == "constant" ? std::string("0") : o_.impute.substr(9);
  }

  const PreprocessOptions& o_;
  const std::string& source_;
  std::string scale_;
  PreprocessPlan plan_;
  std::vector<ColumnTransform> categories_;
  Names dates_, open_dates_, missing_, disguised_, forms_;
  std::string text_column_;  // the first that is left out
  bool sentences_ = false;   // it holds running text
};

}  // namespace

void parse_mean_std(const std::string& scale, size_t n, const char* what, std::vector<float>& mean,
                    std::vector<float>& std) {
  const size_t comma = scale.find(',');
  auto list = [&](const std::string& text, std::vector<float>& out) {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(':', at), text.size());
      out.push_back(float(number_in(text.substr(at, end - at), "--scale " + scale)));
      at = end + 1;
    }
    if (out.size() == 1) out.resize(n, out[0]);
    if (out.size() != n)
      usage_error("OT0035",
                  cat("--scale ", scale, " has ", out.size(), " numbers for ", n, " ", what),
                  "one number for all, or one for each with colons:  --scale 0.5:0.4,0.2:0.3");
  };
  list(scale.substr(0, comma), mean);
  list(comma == std::string::npos ? std::string("1") : scale.substr(comma + 1), std);
  for (float s : std)
    if (!(s > 0))
      usage_error("OT0035", cat("--scale ", scale, ": STD must be larger than 0"),
                  "--scale 0.5,0.25");
}

PreprocessPlan plan_preprocessing(const TableProfile& table, const PreprocessOptions& o,
                                  const std::string& source, bool some) {
  check_names(table, o.one_hot, "--one-hot");
  check_names(table, o.embed, "--embed");
  for (const std::string& name : o.one_hot)
    if (has(o.embed, name))
      usage_error("OT0035", cat("'", name, "' is named by --one-hot and by --embed"),
                  "name it in one of the two");
  Planner planner(o, source);
  for (const ColumnProfile& p : table.columns) planner.add(p);
  return planner.finish(some);
}

}  // namespace onnxtrain::run
