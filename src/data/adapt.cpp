// Columns as the inputs of a model.
#include "data/adapt.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/shell.hpp"
#include "data/columns/convert.hpp"

namespace onnxtrain {
namespace {

// "[N,3,28,28]"
std::string with_batch(const Shape& dims) {
  std::string out = "[N";
  for (size_t i = 1; i < dims.size(); ++i)
    out += dims[i] < 0 ? ",?" : "," + std::to_string(dims[i]);
  return out + "]";
}

class AdaptedColumn final : public Column {
 public:
  AdaptedColumn(ColumnPtr source, std::string name, Shape shape, RowConversion conversion,
                int64_t channels, const AdaptOptions& options)
      : Column(conversion.to, std::move(shape), source->rows()),
        source_(std::move(source)),
        name_(std::move(name)),
        conversion_(conversion),
        channels_(channels),
        mean_(options.mean),
        std_(options.std),
        label_(options.target) {
    conversion_.prepare();
  }
  int64_t source_row(int64_t row) const override { return source_->source_row(row); }
  bool is_decoded() const override { return source_->is_decoded(); }
  uint64_t identity(int64_t row) const override { return source_->identity(row); }
  const Column* converted() const override { return channels_ > 0 ? nullptr : source_.get(); }

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    thread_local std::vector<char> raw, whole;
    auto* to = static_cast<char*>(out);
    const int64_t n = row_elements();
    if (channels_ > 0) whole.resize(row_bytes());
    for (int64_t row : rows) {
      const void* from = source_->row_pointer(row);
      if (from == nullptr) {
        raw.resize(source_->row_bytes());
        source_->read({&row, 1}, raw.data());
        from = raw.data();
      }
      char* target = channels_ > 0 ? whole.data() : to;
      if (const int64_t bad = convert_row(conversion_, from, target, n); bad >= 0)
        report(row, bad, from);
      if (channels_ > 0) channels_first(whole.data(), to, n);
      if (!mean_.empty()) standardise(to, n);
      to += row_bytes();
    }
  }

 private:
  void standardise(char* row, int64_t n) const {
    dispatch<float, double>(dtype(), "scale", [&]<class T>() {
      T* v = reinterpret_cast<T*>(row);
      for (int64_t i = 0; i < n; ++i) v[i] = (v[i] - T(mean_[size_t(i)])) / T(std_[size_t(i)]);
    });
  }

  void channels_first(const char* from, char* to, int64_t n) const {
    const size_t size = dtype_size(dtype());
    const int64_t pixels = n / channels_;
    for (int64_t c = 0; c < channels_; ++c)
      for (int64_t p = 0; p < pixels; ++p, to += size)
        std::memcpy(to, from + size_t(p * channels_ + c) * size, size);
  }

  [[noreturn]] void report(int64_t row, int64_t element, const void* from) const {
    const size_t size = dtype_size(conversion_.from);
    const char* at = static_cast<const char*>(from) + size_t(element) * size;
    const double v = Tensor(conversion_.from, {1}, const_cast<char*>(at), nullptr).to_doubles()[0];
    Shape place;
    const Shape strides = strides_of(source_->row_shape());
    for (size_t i = 0; i < strides.size(); ++i) {
      place.push_back(element / strides[i]);
      element %= strides[i];
    }
    const std::string where = cat("row ", with_commas(source_row(row)), " of '", name_, "'",
                                  place.empty() ? "" : ", element " + to_string(place));
    if (!std::isfinite(v))
      data_error("OT2120",
                 cat("the data has ", std::isnan(v) ? "a NaN (not a number)" : "an infinity",
                     " at ", where),
                 "fill it in or remove the row before training");
    throw Misfit(
        Misfit::What::kValue, "OT2111",
        cat("the value ", v, " at ", where, " does not fit the type ", type_text(conversion_.to)),
        dtype_is_float(conversion_.to) ? "scale the values down before saving them"
        : label_ ? "save whole numbers that fit; to learn the numbers themselves:  --loss mse"
                 : "the input takes whole numbers of that type: save such, or name another array:  "
                   "--map INPUT=KEY");
  }

  ColumnPtr source_;
  std::string name_;
  RowConversion conversion_;
  int64_t channels_;               // > 0: channels last in the source
  std::vector<float> mean_, std_;  // per element; empty: none
  bool label_ = false;             // what is to be learnt
};

[[noreturn]] void refuse_scale(const std::string& scale) {
  const std::string near = closest(scale, {"auto", "none", "standard", "minmax"});
  usage_error("OT2132",
              cat("--scale ", scale, " is neither auto, none, standard, minmax nor MEAN,STD"),
              near.empty() ? std::string("for example --scale 0.1307,0.3081")
                           : cat("did you mean  --scale ", near, "?"));
}

double parse_number(std::string_view text, const std::string& whole) {
  double v = 0;
  const auto [stop, bad] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (bad != std::errc() || stop != text.data() + text.size() || !std::isfinite(v))
    refuse_scale(whole);
  return v;
}

void set_scale(const std::string& scale, RowConversion& c, std::string& note) {
  const bool bytes = c.from == DType::kUint8 && dtype_is_float(c.to);
  if (scale == "none" || scale == kScaledInGraph || !dtype_is_float(c.to)) return;
  if (scale == "auto") {
    if (!bytes) return;
    c.scaled = true;
    c.divide = 255;
    note = " / 255";
    return;
  }
  const size_t comma = scale.find(',');
  if (comma == std::string::npos) parse_number(scale + "?", scale);
  const double mean = parse_number(std::string_view(scale).substr(0, comma), scale);
  const double std = parse_number(std::string_view(scale).substr(comma + 1), scale);
  if (!(std > 0))
    usage_error(
        "OT2132", cat("--scale ", scale, ": STD must be larger than 0"),
        "MEAN,STD, for example  --scale 0.5,0.25   or let it be measured:  --scale standard");
  c.scaled = true;
  c.mean = float(mean);
  c.std = float(std);
  if (bytes && std::fabs(mean) <= 1 && std <= 1) c.divide = 255;
  note = cat(" = (v", c.divide == 255 ? " / 255" : "", " - ", mean, ") / ", std);
}

Shape target_of(const InputSpec& input, const Shape& row) {
  if (input.dims.empty()) return row;
  return Shape(input.dims.begin() + 1, input.dims.end());
}

// The sizes of `target`, -1 standing for any.
bool is_of(const Shape& row, const Shape& target) {
  return row.size() == target.size() &&
         std::equal(row.begin(), row.end(), target.begin(),
                    [](int64_t have, int64_t want) { return want < 0 || have == want; });
}

// Some order of `row` that fits, in words for the hint; "" when there is none.
std::string layout_hint(const Shape& row, int64_t rows, const Shape& target, bool nhwc,
                        bool label) {
  Shape order = row;
  if (nhwc && row == target) return "the rows have this order already: leave --layout nhwc out";
  if (row.size() == target.size() && row.size() >= 3) {
    std::rotate(order.begin(), order.end() - 1, order.end());
    if (!nhwc && fit_row(order, target))
      return "same sizes in another order; channels last?  --layout nhwc";
  }
  order = row;
  std::sort(order.begin(), order.end());
  Shape sorted = target;
  std::sort(sorted.begin(), sorted.end());
  if (order == sorted) return "same sizes in another order; transpose the array before saving it";
  if (label && row.empty()) return "one number per row: class numbers?  --loss cross_entropy";
  if (!label && row.empty() && target == Shape{rows})
    return "a single row? give it a first dimension: x[None] in Python";
  const bool known = std::all_of(target.begin(), target.end(), [](int64_t d) { return d >= 0; });
  if (known && num_elements(row) == num_elements(target))
    return cat("as many values in another shape: reshape the rows to ", to_string(target),
               " before saving them");
  if (row.size() == target.size() && row.size() >= 3)
    return "images of another size: resize them before saving them";
  return cat("the model takes rows of shape ", to_string(target), ", the data has rows of shape ",
             to_string(row),
             ": save the array with these sizes, or name another one:  --map INPUT=KEY");
}

// Columns that are left out first: those that look like row numbers, then the last ones.
std::string surplus(std::vector<std::string> features, int64_t wanted) {
  std::string out;
  auto take = [&](size_t k) {
    out += (out.empty() ? "" : ",") + features[k];
    features.erase(features.begin() + long(k));
  };
  for (size_t k = 0; k < features.size() && int64_t(features.size()) > wanted;) {
    std::string lower = features[k];
    for (char& c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
    if (lower == "id" || lower == "index" || lower.ends_with("_id"))
      take(k);
    else
      ++k;
  }
  while (int64_t(features.size()) > wanted) take(features.size() - 1);
  return out;
}

// Text goes in as it is.
Adapted adapt_text(const ColumnPtr& source, const InputSpec& input, const std::string& name) {
  const Shape target =
      input.dims.empty() ? source->row_shape() : Shape(input.dims.begin() + 1, input.dims.end());
  const std::optional<Shape> fitted = fit_row(source->row_shape(), target);
  if (!fitted)
    data_error("OT2110",
               cat("data '", name, "' has rows of text ", to_string(source->row_shape()),
                   ", input '", input.name, "' wants ", with_batch(input.dims)),
               "one text per row belongs in a column");
  return {*fitted == source->row_shape() ? source : reshaped_column(source, *fitted), "text"};
}

// Are the channels of these rows last?
bool has_channels_last(const Shape& row, const Shape& target, Layout layout) {
  if (row.size() < 3 || (layout != Layout::kNhwc && layout != Layout::kUsuallyNhwc)) return false;
  if (layout == Layout::kNhwc) return true;
  Shape moved = row;
  std::rotate(moved.begin(), moved.end() - 1, moved.end());
  if (is_of(moved, target)) return true;
  return !is_of(row, target) && fit_row(moved, target).has_value();
}

Adapted adapt(const Dataset& data, const std::string& name, const InputSpec& input,
              const AdaptOptions& options, bool label) {
  const ColumnPtr& source = data.column(name);
  if (source->dtype() == DType::kString && input.dtype == DType::kString && !label)
    return adapt_text(source, input, name);
  if (!convertible(source->dtype()) || !convertible(input.dtype))
    data_error("OT2112",
               cat("data '", name, "' of type ", type_text(source->dtype()), " cannot feed input '",
                   input.name, "' of type ", type_text(input.dtype)),
               cat("save it in another type: array.astype('", type_text(input.dtype), "')"));
  Shape row = source->row_shape();
  int64_t channels = 0;
  const Shape wanted_row = target_of(input, row);
  const bool nhwc = !label && has_channels_last(row, wanted_row, options.layout);
  if (nhwc) {
    channels = row.back();
    std::rotate(row.begin(), row.end() - 1, row.end());
    if (num_elements(row) == 0) channels = 0;
  }
  std::optional<Shape> fitted = fit_row(row, target_of(input, row));
  // as many numbers, but the rows have the order of the model already: they would be transposed
  if (nhwc && row != wanted_row && source->row_shape() == wanted_row) fitted.reset();
  if (!fitted) {
    Shape file{source->rows()};
    file.insert(file.end(), source->row_shape().begin(), source->row_shape().end());
    const bool one_hot = label && input.dims.size() == 1 && file.size() == 2;
    const std::string fit = cat("data does not fit input '", input.name, "': file has ",
                                to_string(file), ", model wants ", with_batch(input.dims));
    const std::vector<std::string>& features = data.feature_names(name);
    const Shape wanted = target_of(input, row);
    if (!features.empty() && wanted.size() == 1 && wanted[0] > 0)
      throw Misfit(
          Misfit::What::kShape, "OT2110",
          cat(fit, "\n  feature columns are ", listed(features, 20)),
          wanted[0] < int64_t(features.size())
              ? cat("leave columns out:  --drop ", shell_word(surplus(features, wanted[0])))
          : data.dropped().empty()
              ? std::string("the model needs more columns than the table has; is the target "
                            "the right one?  --target NAME")
              : cat("columns are missing that --drop leaves out: ", listed(data.dropped(), 20)));
    throw Misfit(Misfit::What::kShape, "OT2110", fit,
                 one_hot
                     ? "one-hot labels? save the class numbers: y.argmax(1); numbers to learn?  "
                       "--loss mse"
                     : layout_hint(source->row_shape(), source->rows(), target_of(input, row), nhwc,
                                   label || options.target));
  }
  RowConversion c;
  c.from = source->dtype();
  c.to = input.dtype;
  c.missing = options.missing && !label && !options.target;
  std::string scale_note;
  if (label)
    c.offset = options.label_offset, c.keep = options.ignore_index;
  else
    set_scale(options.scale, c, scale_note);
  if (!options.mean.empty()) {
    const auto n = size_t(num_elements(*fitted));
    if (options.mean.size() != n || options.std.size() != n ||
        (c.to != DType::kFloat && c.to != DType::kDouble))
      data_error("OT2132",
                 cat("--scale standard: input '", input.name, "' has ", n, " values of type ",
                     type_text(c.to), " in a row, the scale was measured for ", options.mean.size(),
                     " of float32 or float64"));
    scale_note = ", standardised";
  }
  std::string before = type_text(c.from), after = type_text(c.to);
  if (!source->row_shape().empty()) before += " " + to_string(source->row_shape());
  if (!fitted->empty()) after += " " + to_string(*fitted);
  after += scale_note;
  const std::string note = before == after ? before : before + " -> " + after;
  const bool same = c.from == c.to && !c.scaled && c.offset == 0 && channels == 0 &&
                    *fitted == source->row_shape() && !dtype_is_float(c.from) &&
                    options.mean.empty();
  if (same) return {source, note, nhwc};
  return {std::make_shared<AdaptedColumn>(source, name, *fitted, c, channels, options), note, nhwc};
}

}  // namespace

std::string layout_word(Layout l) {
  return l == Layout::kNhwc || l == Layout::kUsuallyNhwc ? "nhwc" : "nchw";
}

std::string layout_note(Layout l, bool channels_last) {
  if (l == Layout::kNhwc && !channels_last)
    return "--layout nhwc is about images: no array here has channels";
  return l == Layout::kUsuallyNhwc && channels_last
             ? "channels last, as in the data that the model was made for   (--layout nchw to "
               "change)"
             : "";
}

Layout layout_of_word(const std::string& word) {
  return word == "nhwc" ? Layout::kNhwc : word == "nchw" ? Layout::kNchw : Layout::kAuto;
}

std::optional<Shape> fit_row(const Shape& row, const Shape& target) {
  const auto fits = [&](const Shape& s) { return is_of(s, target); };
  if (fits(row)) return row;
  for (const size_t at : {size_t(0), row.size()}) {  // [28,28] -> [1,28,28]
    Shape s = row;
    s.insert(s.begin() + long(at), 1);
    if (fits(s)) return s;
  }
  for (size_t at = 0; at < row.size(); ++at) {
    Shape s = row;
    if (s[at] != 1) continue;
    s.erase(s.begin() + long(at));
    if (fits(s)) return s;
  }
  const bool known = std::all_of(target.begin(), target.end(), [](int64_t d) { return d >= 0; });
  if (!known || num_elements(target) != num_elements(row)) return std::nullopt;
  Shape bare_row, bare_target;
  std::copy_if(row.begin(), row.end(), std::back_inserter(bare_row),
               [](int64_t d) { return d != 1; });
  std::copy_if(target.begin(), target.end(), std::back_inserter(bare_target),
               [](int64_t d) { return d != 1; });
  // the same but for ones, or one side flat
  if (bare_row == bare_target || bare_row.size() <= 1 || bare_target.size() <= 1) return target;
  return std::nullopt;
}

Adapted adapt_input(const Dataset& data, const std::string& column, const InputSpec& input,
                    const AdaptOptions& options) {
  return adapt(data, column, input, options, false);
}

Adapted adapt_label_column(const Dataset& data, const std::string& column, const InputSpec& input,
                           const AdaptOptions& options) {
  return adapt(data, column, input, options, true);
}

std::string data_line(const Dataset& data, const Adapted& input, const LabelSummary* labels) {
  // images that are flattened for the model are images still
  const bool image = data.format() == "images" || (input.note.starts_with("uint8 [") &&
                                                   input.note.find(',') < input.note.find(']'));
  std::string out = cat(data.source(), "  ", data.format(), "   ", with_commas(data.rows()),
                        image ? " image" : " row", data.rows() == 1 ? " " : "s ", input.note);
  if (labels != nullptr) out += "   " + labels->text();
  return out;
}

}  // namespace onnxtrain
