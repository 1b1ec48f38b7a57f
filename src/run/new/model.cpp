// From data to a network.
#include "run/new/model.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/shell.hpp"
#include "core/text.hpp"
#include "data/adapt.hpp"
#include "data/images.hpp"
#include "onnx/onnx.hpp"
#include "run/data/data_spec.hpp"
#include "run/new/images.hpp"
#include "run/new/parts.hpp"

namespace onnxtrain::run {

namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

Model for_table(const NewRequest& q, const TableProfile& table, const Dataset& data,
                Observer& observer) {
  observer.on_note(
      "data", cat(data.source(), "  ", data.format(), "   ", with_commas(table.rows), " rows, ",
                  table.columns.size(), table.columns.size() == 1 ? " column" : " columns",
                  " besides the target"));
  tell(data, observer);
  if (data.targets().empty())
    data_error("OT2101", cat("'", data.source(), "' has no column besides the target"),
               "name the column to learn:  --target NAME");
  const NewTarget target = find_targets(data, q.task);
  tell_target(target, listed(data.targets()), data.rows(), observer);
  const PreprocessPlan plan = plan_preprocessing(table, q.preprocess, data.source());
  tell(plan, observer);
  NetworkSpec s = network_spec(q, target, {total_width(plan.columns)});
  give_way(plan, s);
  while (std::any_of(s.heads.begin(), s.heads.end(),  // a target called x
                     [&](const NetworkSpec::Head& h) { return h.output == s.input; }))
    s.input += "_in";
  if (q.kind == "cnn" || q.kind == "resnet")
    data_error(
        "OT2170",
        cat("a network of kind '", q.kind, "' is for images, and '", data.source(), "' is a table"),
        cat("onnxtrain new mlp --data ", shell_word(data.source()),
            q.target.empty() ? std::string() : " --target " + shell_word(q.target),
            " -o model.onnx"));
  Model m = in_front(new_network(s, all_ops()), s.input, plan, q.seed);
  note_target(target, data.targets(), m);
  note_reading(data, m.metadata);
  if (!data.dropped().empty()) m.metadata["onnxtrain.drop"] = json(data.dropped()).dump();
  return m;
}

// ------------------------------------------------------------------ arrays and images

// The largest number in a column of token ids; OT2185 when one is negative.
int64_t vocabulary_of(const Dataset& data, const std::string& column) {
  int64_t largest = 0;
  for (double v : data.gather_all(column).to_doubles()) {
    if (v < 0)
      data_error("OT2185", cat("'", column, "' holds ", v, ": token ids count from 0"),
                 "numbers to learn from? save them as float32");
    largest = std::max(largest, int64_t(v));
  }
  if (largest >= int64_t(1) << 20)
    data_error("OT2185",
               cat("'", column, "' holds token ids up to ", largest,
                   ", which is more than a small network can embed"),
               "numbers to learn from? save them as float32");
  return largest + 1;
}

struct ArrayPlan {
  std::string x, y;
  Shape row;  // as the network takes it
  bool image = false, bytes = false;
  int64_t vocabulary = 0;
};

bool is_image_kind(const std::string& kind) { return kind == "cnn" || kind == "resnet"; }

// Names of input and target among the arrays.
void choose_arrays(const NewRequest& q, const Dataset& data, ArrayPlan& a) {
  std::map<std::string, std::string> map;
  if (!q.x.empty()) map["x"] = q.x;
  if (!q.y.empty()) map["y"] = q.y;
  if (q.y.empty() && !data.targets().empty()) map["y"] = data.target_column();
  const auto found = match_columns(data, {"x"}, {"y"}, map);
  a.x = found.at("x");
  a.y = found.at("y");
}

// [64, 64, 3]: nobody has 64 channels of 64 x 3 pixels.
bool looks_channels_last(const NewRequest& q, const Shape& row) {
  constexpr int64_t kSide = 8;  // of a small image
  return !q.nhwc && is_image_kind(q.kind) && row.size() == 3 && row[0] >= kSide &&
         row[1] >= kSide && (row[2] == 1 || row[2] == 3);
}

ArrayPlan plan_arrays(const NewRequest& q, const Dataset& data) {
  ArrayPlan a;
  choose_arrays(q, data, a);
  const Column& x = *data.column(a.x);
  a.row = x.row_shape();
  if (q.nhwc && a.row.size() == 3) std::rotate(a.row.begin(), a.row.end() - 1, a.row.end());
  a.bytes = x.dtype() == DType::kUint8;
  const bool ids = dtype_is_integer(x.dtype()) && !a.bytes && a.row.size() == 1 &&
                   (q.kind == "transformer" || q.kind == "lstm" || q.kind == "gru");
  if (ids) a.vocabulary = vocabulary_of(data, a.x);
  a.image = a.row.size() == 3 || (a.bytes && a.row.size() == 2);
  // one channel that the file does not mention
  if (is_image_kind(q.kind) && a.row.size() == 2 && a.image) a.row.insert(a.row.begin(), 1);
  if (a.row.empty()) a.row = {1};
  return a;
}

// How the graph scales its input, in words; nothing when it does not.
std::string set_input_scale(const NewRequest& q, const Dataset& data, const ArrayPlan& a,
                            InputScale& s) {
  const Column& x = *data.column(a.x);
  const std::string& scale = q.preprocess.scale;
  if (a.vocabulary > 0 || (scale == "none" && !a.bytes)) return {};
  const bool channels = a.row.size() == 3;
  const auto n = size_t(channels ? a.row[0] : a.image ? 1 : num_elements(x.row_shape()));
  const auto source_axis = channels && x.row_shape().size() == 3 ? (q.nhwc ? 2 : 0) : -1;
  if (scale.find(',') != std::string::npos) {
    parse_mean_std(scale, n, channels ? "channels" : "columns", s.mean, s.std);
    const bool of_one =
        a.bytes && std::all_of(s.std.begin(), s.std.end(), [](float v) { return v <= 1; });
    for (size_t k = 0; of_one && k < n; ++k) s.mean[k] *= 255, s.std[k] *= 255;
  } else if (scale == "none" || scale == "minmax" || (a.image && source_axis < 0)) {
    if (!a.bytes) return {};
    s.mean.assign(n, 0);
    s.std.assign(n, scale == "none" ? 1.0F : 255.0F);
  } else if (scale == "auto" || scale == "standard") {
    const Spread found = measure(x, source_axis);
    s.mean = found.mean;
    s.std = found.std;
  } else {
    usage_error("OT0035", cat("--scale ", scale, " is not known"),
                "--scale standard, minmax, none or MEAN,STD");
  }
  s.shape = channels ? Shape{int64_t(n), 1, 1} : a.image ? Shape{1} : a.row;
  if (s.shape != Shape{1} && !channels && num_elements(s.shape) != int64_t(s.mean.size()))
    s.shape = {int64_t(s.mean.size())};
  if (a.bytes) s.read_as = DType::kUint8;
  std::string shown;
  for (size_t k = 0; k < s.mean.size() && s.mean.size() <= 4; ++k)
    shown += cat(k ? ", " : ": ", "(v - ", s.mean[k], ") / ", s.std[k]);
  return cat(channels  ? "per channel"
             : a.image ? "every pixel"
                       : "per column",
             shown, a.bytes ? "; the model takes bytes" : "", "   (--scale to change)");
}

// One 1 and else 0 in every row: classes that a program has spread out.
bool is_one_hot(const Column& y, const Dataset& data, const std::string& name) {
  constexpr int64_t kMost = int64_t(1) << 24;
  const int64_t n = y.row_elements();
  if (n < 2 || y.rows() * n > kMost) return false;
  const std::vector<double> v = data.gather_all(name).to_doubles();
  for (size_t row = 0; row < v.size(); row += size_t(n)) {
    const auto at = v.begin() + int64_t(row);
    if (std::count(at, at + n, 1.0) != 1 || std::count(at, at + n, 0.0) != n - 1) return false;
  }
  return true;
}

Model for_arrays(const NewRequest& q, const Dataset& data, Observer& observer) {
  ArrayPlan a;
  choose_arrays(q, data, a);
  const Shape& row = data.column(a.x)->row_shape();
  if (looks_channels_last(q, row))
    observer.on_note("note", cat("one row of '", a.x, "' is ", to_string(row), ": taken as ",
                                 row[0], " channels of ", row[1], " x ", row[2],
                                 "; images with channels last:  --layout nhwc"));
  if (is_one_hot(*data.column(a.y), data, a.y))
    observer.on_note("note", cat("'", a.y,
                                 "' has one 1 in every row and is learnt as numbers; as "
                                 "classes:  y = y.argmax(1) in numpy"));
  a = plan_arrays(q, data);
  Names wanted{a.x, a.y};
  for (const std::string& name : data.targets())  // of a table that names images
    if (data.has(name)) wanted.push_back(name);
  const Dataset used = data.used(wanted);
  observer.on_note("data", cat(data.source(), "  ", data.format(), "   ",
                               describe_column(*used.column(a.x)), " '", a.x, "'"));
  tell(data, observer);
  const std::string shown = data.targets().empty() ? cat("'", a.y, "'") : listed(data.targets());
  const NewTarget target = data.targets().size() > 1 ? find_targets(used, q.task)
                                                     : find_target(used, a.y, shown, q.task, true);
  tell_target(target, shown, used.rows(), observer);
  NetworkSpec s = network_spec(q, target, a.row);
  s.input = a.x;
  s.vocabulary = a.vocabulary;
  if (a.x == "logits" || a.x == "prediction") s.output = "output";
  Model m = new_network(s, all_ops());
  InputScale scale;
  const std::string text = set_input_scale(q, used, a, scale);
  if (!text.empty()) {
    m = with_scaled_input(m, a.x, scale, all_ops());
    m.metadata["onnxtrain.scale"] = kScaledInGraph;
    observer.on_note("scale", text);
  }
  if (q.nhwc) m.metadata[kLayoutKey] = "nhwc";
  note_target(target, data.targets(), m);
  note_reading(data, m.metadata);
  if (!data.dropped().empty()) m.metadata["onnxtrain.drop"] = json(data.dropped()).dump();
  return m;
}

Model made_for(const NewRequest& q, const Dataset* arrays, Observer& observer) {
  Names kinds;
  for (const NetworkKind& k : network_kinds()) kinds.emplace_back(k.name);
  if (std::find(kinds.begin(), kinds.end(), q.kind) == kinds.end())
    new_network(network_spec(q, {}, {1}), all_ops());  // refuses it with a suggestion
  if (arrays) return for_arrays(q, *arrays, observer);
  OpenOptions open = open_options(q);
  TableProfile table;
  open.csv.profile = &table;
  if (q.text.any()) return new_text_model(q, open, observer);
  set_image_options(q, open);
  const Dataset data = open_dataset(q.data, open);
  if (data.format() != "images" && (q.preprocess.resize != "stretch" || !q.image_size.empty()))
    observer.on_note("note", "--resize and --image-size are for image folders: nothing is resized");
  if (data.is_table()) return for_table(q, table, data, observer);
  if (data.format() == "images") {
    if (!data.has(data.target_column()))
      data_error("OT2186",
                 cat("'", q.data,
                     "' has no folder per class and no column besides the names of "
                     "the images: there is nothing to learn"),
                 "put the images of each class into a folder of its name, or give a csv with a "
                 "column of file names and a column to learn");
    const Dataset images = with_channels(q, data, open, observer);
    return resized_in_model(for_arrays(q, images, observer), q, images.row_shape("x"));
  }
  return for_arrays(q, data, observer);
}

}  // namespace

Model new_model(const NewRequest& q, const Dataset* arrays, Observer& observer) {
  Model m = made_for(q, arrays, observer);
  m.metadata[kNewKey] = q.kind;
  return m;
}

Model preprocessed(const Model& m, const NewRequest& q, Observer& observer) {
  const Names inputs = m.input_names();
  if (!m.training.empty())
    data_error("OT2173", "the model carries its training already: preprocessing comes before it",
               "onnxtrain export MODEL -o plain.onnx leaves the training out");
  if (inputs.size() != 1)
    data_error("OT2187",
               cat("preprocessing makes one input out of columns, and the model has ",
                   inputs.size(), ": ", listed(inputs)),
               "onnxtrain new makes a model that fits the data");
  OpenOptions open = open_options(q);
  TableProfile table;
  open.csv.profile = &table;
  set_image_options(q, open);
  set_size_of(m, inputs[0], open);
  const Dataset data = open_dataset(q.data, open);
  if (data.format() == "images") return images_in_front(m, inputs[0], q, data, observer);
  if (!data.is_table())
    data_error(
        "OT2187",
        cat("preprocessing is for tables and image folders, and '", q.data, "' is ", data.format()),
        "remove --preprocess, --impute, --one-hot, --embed and --resize");
  const PreprocessPlan plan = plan_preprocessing(table, q.preprocess, q.data);
  tell(plan, observer);
  Model out = in_front(m, inputs[0], plan, q.seed);
  note_reading(data, out.metadata);
  if (!data.dropped().empty()) out.metadata["onnxtrain.drop"] = json(data.dropped()).dump();
  return out;
}

}  // namespace onnxtrain::run
