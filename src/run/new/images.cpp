// Images of a new model.
#include "run/new/images.hpp"

#include <algorithm>
#include <cmath>

#include "convert/preprocess/image_input.hpp"
#include "core/text.hpp"
#include "data/adapt.hpp"

namespace onnxtrain::run {

namespace {

constexpr int64_t kMeasuredRows = 2000;  // every n-th row of more
constexpr int64_t kLargestInput = 224;

std::string rule_text(const std::string& resize) {
  const std::string how = "bilinear with antialiasing, in the model";
  if (resize == "crop") return cat("covered, its middle kept; ", how);
  if (resize == "pad") return cat("fitted in, the rest black; ", how);
  return cat("stretched to it; ", how);
}

}  // namespace

// Of every channel, or of every element of a row of numbers. channel_axis: of the row; -1: every
// element on its own.
Spread measure(const Column& c, int64_t channel_axis) {
  const Shape& row = c.row_shape();
  const int64_t n = c.row_elements();
  int64_t groups = n, inner = 1;
  if (channel_axis >= 0) {
    groups = row[size_t(channel_axis)];
    inner = product(row, size_t(channel_axis) + 1, row.size());
  }
  std::vector<double> mean(size_t(groups), 0), square(size_t(groups), 0), count(size_t(groups), 0);
  const int64_t every = c.rows() / kMeasuredRows + 1;
  Tensor one(c.dtype(), {1, n});
  for (int64_t r = 0; r < c.rows(); r += every) {
    c.read({&r, 1}, one.data());
    const std::vector<double> v = one.to_doubles();
    for (int64_t i = 0; i < n; ++i) {
      const auto k = size_t(i / inner % groups);
      const double x = v[size_t(i)];
      if (!std::isfinite(x))
        data_error("OT2120", cat("the data has a NaN or infinity at row ", r),
                   "fill it in or remove the row before training");
      const double d = x - mean[k];
      mean[k] += d / ++count[k];
      square[k] += d * (x - mean[k]);
    }
  }
  Spread s;
  for (size_t k = 0; k < mean.size(); ++k) {
    const double std = std::sqrt(square[k] / std::max(1.0, count[k]));
    s.mean.push_back(float(mean[k]));
    s.std.push_back(std > 1e-7 * std::fabs(mean[k]) && std > 0 ? float(std) : 1.0F);
  }
  return s;
}

void set_image_options(const NewRequest& q, OpenOptions& open) {
  open.largest_side = kLargestInput;
  open.images.resize = q.preprocess.resize;
  open.images.skip_bad = q.skip_bad;
  open.images.folder = q.images;
  open.images.wanted = q.kind == "cnn" || q.kind == "resnet";
  if (!q.image_size.empty()) open.x_shape = {3, q.image_size[0], q.image_size.back()};
}

void set_size_of(const Model& m, const std::string& input, OpenOptions& open) {
  const TypeInfo& t = m.main.value(m.main.find(input)).type;
  if (!t.is_tensor() || !t.shape || t.shape->size() != 4) return;
  Shape row;
  for (size_t k = 1; k < 4; ++k) row.push_back((*t.shape)[k].known() ? (*t.shape)[k].value : -1);
  if (std::all_of(row.begin(), row.end(), [](int64_t n) { return n > 0; })) open.x_shape = row;
}

Dataset with_channels(const NewRequest& q, const Dataset& images, OpenOptions open,
                      Observer& observer) {
  constexpr int64_t kLooked = 64;
  const Column& c = *images.column("x");
  const Shape& row = c.row_shape();  // [3, height, width]
  const int64_t pixels = row[1] * row[2], every = c.rows() / kLooked + 1;
  bool grey = row[0] == 3;
  std::vector<uint8_t> one(c.row_bytes());
  for (int64_t r = 0; r < c.rows() && grey; r += every) {
    c.read({&r, 1}, one.data());
    for (int64_t i = 0; i < pixels && grey; ++i)
      grey = one[size_t(i)] == one[size_t(i + pixels)] &&
             one[size_t(i)] == one[size_t(i + 2 * pixels)];
  }
  observer.on_note("images", cat(row[1], " x ", row[2], ", ", grey ? "grey" : "colour",
                                 "; an image of another size is ", rule_text(q.preprocess.resize),
                                 "   (--image-size H,W and --resize to change)"));
  if (!grey) return images;
  open.x_shape = {1, row[1], row[2]};
  return open_dataset(q.data, open);
}

Model resized_in_model(const Model& m, const NewRequest& q, const Shape& row) {
  return with_image_input(m, m.input_names().at(0), {row[1], row[2], q.preprocess.resize},
                          all_ops());
}

Model images_in_front(const Model& m, const std::string& input, const NewRequest& q,
                      const Dataset& images, Observer& observer) {
  const TypeInfo& t = m.main.value(m.main.find(input)).type;
  const Shape row = images.row_shape("x");
  bool fits = t.is_tensor() && t.shape && t.shape->size() == 4 &&
              (t.elem == DType::kFloat || t.elem == DType::kUint8);
  for (size_t k = 1; fits && k < 4; ++k)
    fits = (*t.shape)[k].known() && (*t.shape)[k].value == row[k - 1];
  if (!fits)
    data_error("OT2203",
               cat("the model's input '", input, "' is ", to_string(t),
                   ": images in front of it need [N,C,H,W] with known sizes, float32 or uint8"),
               "remove --preprocess: images are then resized while they are read");
  Model out = m;
  InputScale s;
  const auto channels = size_t(row[0]);
  const std::string& scale = q.preprocess.scale;
  s.mean.assign(channels, 0);
  s.std.assign(channels, scale == "none" ? 1.0F : 255.0F);
  if (scale == "standard") {
    const Spread found = measure(*images.column("x"), 0);
    s.mean = found.mean;
    s.std = found.std;
  } else if (scale.find(',') != std::string::npos) {
    s.mean.clear();
    s.std.clear();
    parse_mean_std(scale, channels, "channels", s.mean, s.std);
    const bool of_one = std::all_of(s.std.begin(), s.std.end(), [](float v) { return v <= 1; });
    for (size_t k = 0; of_one && k < channels; ++k) s.mean[k] *= 255, s.std[k] *= 255;
  }
  s.shape = {int64_t(channels), 1, 1};
  std::string text;
  if (t.elem == DType::kFloat) {
    s.read_as = DType::kUint8;
    out = with_scaled_input(m, input, s, all_ops());
    for (size_t k = 0; k < channels; ++k)
      text += cat(k ? ", " : "per channel: ", "(v - ", s.mean[k], ") / ", s.std[k]);
    observer.on_note("scale", text + "; the model takes bytes   (--scale to change)");
  }
  observer.on_note("images", cat(row[1], " x ", row[2], "; an image of another size is ",
                                 rule_text(q.preprocess.resize), "   (--resize to change)"));
  out = resized_in_model(out, q, row);
  out.metadata["onnxtrain.scale"] = kScaledInGraph;
  return out;
}

}  // namespace onnxtrain::run
