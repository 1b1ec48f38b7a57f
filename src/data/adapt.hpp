// Makes columns fit a model's inputs: type, scale, layout, shape; checks labels and missing
// numbers.
#pragma once
#include <optional>

#include "data/columns/dataset.hpp"

namespace onnxtrain {

// An input of the model: dims[0] is the batch; -1 where any size will do; empty when the rank is
// not known.
struct InputSpec {
  std::string name;
  DType dtype = DType::kFloat;
  Shape dims;
};

// The model scales its inputs itself: nothing is done while reading.
inline constexpr const char* kScaledInGraph = "graph";

// The order of channels in images: as the model has them (channels first) unless said otherwise.
// kUsuallyNhwc: the data of the model had them last, and so has this, unless only the rows as they
// are fit.
enum class Layout { kAuto, kNchw, kNhwc, kUsuallyNhwc };
std::string layout_word(Layout l);  // "nchw" or "nhwc"
Layout layout_of_word(const std::string& word);
// What is to be said about it; "": nothing. channels_last: some array has them so.
std::string layout_note(Layout l, bool channels_last);

struct AdaptOptions {
  // "auto": uint8 -> float is divided by 255; "none"; "MEAN,STD": (v - MEAN) / STD, where uint8
  // values are divided by 255 first when MEAN and STD are at most 1
  std::string scale = "auto";
  // Of every element of a row: (v - mean) / std. Empty: not standardised.
  std::vector<float> mean, std;
  bool missing = false;           // NaN may stand in the data: the model fills it in
  bool target = false;            // numbers to learn, not an input
  Layout layout = Layout::kAuto;  // channels that are last are moved to the front
  int64_t label_offset = 0;
  std::optional<int64_t> ignore_index;  // a label value that is always allowed
};

// A column that cannot feed an input: its shape (OT2110) or one of its values (OT2111) does not
// fit.
class Misfit : public Error {
 public:
  enum class What { kShape, kValue };
  Misfit(What what, std::string code, std::string message, std::string hint)
      : Error(ErrorKind::kData, std::move(code), std::move(message), std::move(hint)),
        what_fits_not(what) {}
  What what_fits_not;
};

struct Adapted {
  ColumnPtr column;
  std::string note;            // "uint8 [28,28] -> float32 [1,28,28] / 255"
  bool channels_last = false;  // in the data
};

// The column as the model's input. NaN and infinity are found while reading (OT2120 with row and
// element). Throws OT2110 when the shape does not fit, with the layout that would.
Adapted adapt_input(const Dataset& data, const std::string& column, const InputSpec& input,
                    const AdaptOptions& options = {});

struct LabelSpec {
  InputSpec input;      // where the labels go; int64 or int32
  std::string output;   // the model's output they are compared with, for messages
  int64_t classes = 0;  // 0: not known
};

struct LabelSummary {
  int64_t min = 0, max = 0;           // values seen, after the offset
  int64_t classes = 0;                // different values
  int64_t smallest = 0, largest = 0;  // rows of the rarest and the most frequent class
  std::vector<int64_t> counts;        // of 0..max, when max is at most 65535
  std::string text() const;           // "10 classes (5.4k..6.7k each)"
};

// The column as class labels; every label is looked at once (OT2104 with row and values seen).
Adapted adapt_labels(const Dataset& data, const std::string& column, const LabelSpec& label,
                     const AdaptOptions& options, LabelSummary& summary);

// The same without looking at the values.
Adapted adapt_label_column(const Dataset& data, const std::string& column, const InputSpec& input,
                           const AdaptOptions& options);

// One label per row, for the stratified split; empty when a row has several.
std::vector<int64_t> labels_by_row(const Column& column);

// "mnist/  idx, gzip   60,000 images uint8 [28,28] -> float32 [1,28,28] / 255   10 classes (...)"
std::string data_line(const Dataset& data, const Adapted& input, const LabelSummary* labels);

// The row's shape seen as `target` (-1 = any size): ones added or dropped, flattened or unfolded;
// nullopt when it does not fit.
std::optional<Shape> fit_row(const Shape& row, const Shape& target);

}  // namespace onnxtrain
