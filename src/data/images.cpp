// Image folders.
#include "data/images.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/random.hpp"
#include "core/shell.hpp"
#include "data/image_files.hpp"
#include "kernels/image/decode.hpp"

namespace onnxtrain {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = uint64_t(256) << 20;  // of one image file

constexpr const char* kSkipHint =
    "copy or convert it, or go on without damaged images:  --skip-bad";

image::Image read_image(const std::string& path) {
  std::error_code ec;
  if (fs::is_symlink(path, ec) && !fs::exists(path, ec))
    data_error("OT1191", cat("image '", path, "' is a link to a file that is not there"),
               kSkipHint);
  const InputFile file(path, ErrorKind::kData);
  if (file.size() == 0) data_error("OT1191", cat("image '", path, "' is empty"), kSkipHint);
  if (file.size() > kMostBytes)
    data_error("OT2140",
               cat("image '", path, "' has ", with_commas(int64_t(file.size())), " bytes"),
               "images have at most 256 MiB: make it smaller, or remove it");
  std::vector<uint8_t> bytes(size_t(file.size()));
  file.read_at(0, bytes.data(), bytes.size());
  try {
    return image::decode(bytes.data(), int64_t(bytes.size()));
  } catch (const Error& e) {  // which of thousands?
    throw Error(e.kind(), e.code(), cat("image '", path, "': ", e.message()), kSkipHint);
  }
}

std::vector<uint8_t> grey(const image::Image& p) {
  std::vector<uint8_t> pixels(size_t(p.height * p.width));
  for (size_t i = 0; i < pixels.size(); ++i) {
    const uint8_t* c = p.rgb.data() + i * 3;
    pixels[i] = uint8_t((c[0] * 19595 + c[1] * 38470 + c[2] * 7471 + 0x8000) >> 16);
  }
  return pixels;
}

// How a row lies in memory.
struct Form {
  int64_t channels = 3, height = 0, width = 0;
  bool channels_last = false;
  Shape shape() const {
    return channels_last ? Shape{height, width, channels} : Shape{channels, height, width};
  }
};

Form form_for(const Shape& row, const std::string& first) {
  const auto is_channels = [](int64_t n) { return n == 1 || n == 3; };
  Form f;
  if (row.size() == 3 && is_channels(row[0])) {
    f = {row[0], row[1], row[2], false};
  } else if (row.size() == 3 && is_channels(row[2])) {
    f = {row[2], row[0], row[1], true};
  } else if (row.size() == 2) {
    f = {1, row[0], row[1], false};
  }
  if (f.height <= 0 || f.width <= 0) {
    const image::Image p = read_image(first);
    f.height = p.height;
    f.width = p.width;
    if (row.size() == 1 && row[0] == p.height * p.width) f.channels = 1;  // grey and flat
  }
  return f;
}

class ImageColumn final : public Column {
 public:
  // root: the folder that holds those of the classes; "": there is none
  ImageColumn(std::vector<std::string> paths, Form form, bool same_size, const ImageReading& how,
              const std::string& root)
      : Column(how.numbers ? DType::kFloat : DType::kUint8, form.shape(), int64_t(paths.size())),
        paths_(std::move(paths)),
        form_(form),
        same_size_(same_size),
        rule_(how.resize),
        root_(root.empty() ? 0 : root.size() + 1) {}
  bool is_decoded() const override { return true; }
  uint64_t identity(int64_t row) const override {
    const fs::path path = paths_[size_t(row)];
    std::error_code gone;
    const uint64_t size = fs::file_size(path, gone);
    const std::string name = root_ > 0 ? paths_[size_t(row)].substr(root_)
                                       : (path.parent_path().filename() / path.filename()).string();
    return hash64(name.data(), name.size(), size);
  }

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    auto* to = static_cast<char*>(out);
    for (int64_t row : rows) {
      const std::vector<float> pixels = one(paths_[size_t(row)]);
      if (dtype() == DType::kFloat)
        lay_out(pixels, reinterpret_cast<float*>(to), [](float v) { return v; });
      else
        lay_out(pixels, reinterpret_cast<uint8_t*>(to),
                [](float v) { return uint8_t(std::clamp(std::lround(v), 0L, 255L)); });
      to += row_bytes();
    }
  }

 private:
  std::vector<float> one(const std::string& path) const {
    const image::Image p = read_image(path);
    const int64_t channels = form_.channels;
    if (same_size_ && (p.height != form_.height || p.width != form_.width))
      data_error("OT2141",
                 cat("image '", path, "' is ", p.height, " x ", p.width, ", the first one ",
                     form_.height, " x ", form_.width),
                 "the model's input does not say a size; give it one, or make all images alike");
    return resized(channels == 1 ? grey(p) : p.rgb, p.height, p.width, channels, form_.height,
                   form_.width, rule_);
  }

  // Interleaved pixels in the order of the row, each as `as` makes it.
  template <class T, class As>
  void lay_out(const std::vector<float>& pixels, T* to, const As& as) const {
    const int64_t m = form_.height * form_.width, channels = form_.channels;
    if (form_.channels_last) {
      std::transform(pixels.begin(), pixels.end(), to, as);
      return;
    }
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < m; ++i) *to++ = as(pixels[size_t(i * channels + c)]);
  }

  std::vector<std::string> paths_;
  Form form_;
  bool same_size_;
  std::string rule_;
  size_t root_;  // characters of the path before the name of the class
};

// Paths and labels without the damaged images; what to say about them, "" when there are none.
std::string leave_out_bad(const std::string& folder, const std::vector<std::string>& classes,
                          std::vector<std::string>& paths, std::vector<int64_t>& labels) {
  std::vector<std::string> bad;
  const std::vector<char> readable = readable_images(paths, bad);
  if (bad.empty()) return {};
  if (bad.size() == paths.size()) none_readable(folder, bad);
  const size_t all = paths.size();
  std::vector<std::string> good;
  std::vector<int64_t> good_labels;
  std::vector<int64_t> left(classes.size(), 0);
  for (size_t k = 0; k < paths.size(); ++k) {
    if (readable[k] == 0) continue;
    good.push_back(paths[k]);
    if (labels.empty()) continue;
    good_labels.push_back(labels[k]);
    ++left[size_t(labels[k])];
  }
  for (size_t c = 0; c < classes.size(); ++c)
    if (left[c] == 0)
      data_error("OT2201",
                 cat("no image of class '", classes[c], "' can be read: ", listed_plain(bad, 3)),
                 cat("copy them again, or remove the folder '", classes[c], "'"));
  paths = std::move(good);
  labels = std::move(good_labels);
  return skipped_note(bad, all);
}

// Files that look as if they were meant: beside the folders of classes, or no image.
class Strays {
 public:
  void look(const std::string& folder, bool of_class) {
    std::error_code ec;
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
      const std::string name = it->path().filename().string();
      if (is_hidden_name(name) || !it->is_regular_file(ec)) continue;
      if (is_other_image_name(name))
        other_.push_back(it->path().string());
      else if (is_image_name(name) != of_class)
        (of_class ? no_images_ : beside_).push_back(it->path().string());
    }
  }
  void tell(Dataset& data) {
    std::sort(beside_.begin(), beside_.end());
    std::sort(no_images_.begin(), no_images_.end());
    std::sort(other_.begin(), other_.end());
    if (!other_.empty())
      data.add_note(cat("not used: ", listed(other_, 3),
                        "   (images of this format are not read: convert them to png or jpg)"));
    if (!no_images_.empty())
      data.add_note(cat("not used: ", listed(no_images_, 3), "   (by their names no images)"));
    if (!beside_.empty())
      data.add_note(cat("not used: ", listed(beside_, 3),
                        "   (images lie in one folder per class, and nowhere else)"));
  }

 private:
  std::vector<std::string> beside_, no_images_, other_;
};

// The same bytes under two labels: one of them is wrong. At most this much is read for it.
constexpr uint64_t kCompared = uint64_t(64) << 20;
std::string twice_labelled(const std::vector<std::string>& paths,
                           const std::vector<int64_t>& labels) {
  std::map<uint64_t, std::vector<size_t>> by_size;
  for (size_t k = 0; k < labels.size(); ++k) {
    std::error_code ec;
    const uint64_t size = fs::file_size(paths[k], ec);
    if (!ec && size > 0) by_size[size].push_back(k);
  }
  uint64_t read = 0;
  std::vector<std::string> found;
  for (const auto& [size, same] : by_size) {
    if (same.size() < 2 || (read += size * same.size()) > kCompared) continue;
    std::map<uint64_t, size_t> seen;
    for (size_t k : same) {
      const std::string bytes = read_file(paths[k], size_t(size), ErrorKind::kData);
      const auto [it, fresh] = seen.try_emplace(hash64(bytes.data(), bytes.size()), k);
      if (!fresh && labels[it->second] != labels[k])
        found.push_back(cat(paths[it->second], "' and '", paths[k]));
    }
  }
  return found.empty() ? std::string()
                       : cat("the same image lies in two classes: ", listed(found, 3),
                             "   (one of the labels is wrong)");
}

std::string part_folder(const std::string& folder, DataPart part) {
  const std::vector<std::string> wanted = part == DataPart::kTrain
                                              ? std::vector<std::string>{"train", "training"}
                                              : std::vector<std::string>{"test", "valid", "val"};
  for (const std::string& name : wanted)
    if (fs::is_directory(folder + "/" + name)) return folder + "/" + name;
  return folder;
}

}  // namespace

Dataset images_at(const std::string& source, const std::vector<std::string>& paths,
                  const OpenOptions& options, bool several, const std::string& root) {
  const Shape& row = options.x_shape;
  Form form = form_for(row, paths[0]);
  bool same_size = row.size() < 2 || form.shape() != row;
  if (const int64_t largest = options.largest_side; row.empty() && largest > 0 && several) {
    const int64_t side = std::max({form.height, form.width, largest});
    form.height = std::max<int64_t>(1, form.height * largest / side);
    form.width = std::max<int64_t>(1, form.width * largest / side);
    same_size = false;
  }
  auto images = std::make_shared<ImageColumn>(paths, form, row.size() == 2 ? false : same_size,
                                              options.images, root);
  Dataset out(source, "images");
  ColumnPtr x = images;
  if (uint64_t(images->rows()) * images->row_bytes() <= eager_limit()) {
    Dataset all;
    all.add("x", x);
    x = memory_column(all.gather_all("x"));
  }
  out.add("x", x);
  out.set_row_names(paths);
  return out;
}

std::vector<char> readable_images(const std::vector<std::string>& paths,
                                  std::vector<std::string>& bad) {
  std::vector<char> good(paths.size(), 1);
  for (size_t k = 0; k < paths.size(); ++k) {
    try {
      read_image(paths[k]);
    } catch (const Error& e) {
      good[k] = 0;
      bad.push_back(e.message());
    }
  }
  return good;
}

std::string skipped_note(const std::vector<std::string>& bad, size_t all) {
  return cat(bad.size(), bad.size() == 1 ? " damaged image" : " damaged images", " of ", all,
             bad.size() == 1 ? " is" : " are", " left out: ", listed_plain(bad, 5));
}

void none_readable(const std::string& where, const std::vector<std::string>& bad) {
  data_error("OT2200",
             cat("none of the ", bad.size(), " images in '", where,
                 "' can be read: ", listed_plain(bad, 3)),
             "copy the images again, or convert them to png");
}

Tensor image_tensor(const std::string& path, int64_t channels) {
  const image::Image p = read_image(path);
  const std::vector<uint8_t> pixels = channels == 1 ? grey(p) : p.rgb;
  Tensor out(DType::kUint8, {1, channels, p.height, p.width});
  const int64_t n = p.height * p.width;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < n; ++i) out.as<uint8_t>()[c * n + i] = pixels[size_t(i * channels + c)];
  return out;
}

Dataset open_image(const std::string& path, const OpenOptions& options) {
  return images_at(path, {path}, options, false);
}

bool open_image_folder(const std::string& folder, const OpenOptions& options, Dataset& out) {
  const std::string root = part_folder(class_root(folder), options.part);
  std::vector<std::string> paths, classes, empty;
  std::vector<int64_t> labels;
  if (const auto deeper = classes_one_deeper(root); !deeper.empty()) {
    const std::string first = folders_in(root)[0];
    data_error("OT2202",
               cat("every folder in '", root, "' holds the folders ", listed(deeper, 5),
                   ": either may be the classes"),
               cat("if these are the classes, name one of the folders:  --data ",
                   shell_word(root + "/" + first), "; else put the images of '", first, "' into '",
                   root, "/", first, "' itself"));
  }
  for (const std::string& name : folders_in(root)) {
    const std::vector<std::string> files = images_below(root + "/" + name);
    if (files.empty()) {
      empty.push_back(name);
      continue;
    }
    for (const std::string& f : files) {
      paths.push_back(root + "/" + name + "/" + f);
      labels.push_back(int64_t(classes.size()));
    }
    classes.push_back(name);
  }
  if (classes.empty())
    for (const std::string& f : images_in(root)) paths.push_back(root + "/" + f);
  if (paths.empty()) {
    if (const std::string other = other_image_below(root); !other.empty())
      data_error("OT2200",
                 cat("'", folder, "' holds images of a format that is not read: '", other, "'"),
                 "convert them to png or jpg");
    return false;
  }
  if (!classes.empty() && !empty.empty())
    data_error("OT2161",
               cat("class folder '", root, "/", empty[0], "' holds no images: its number among ",
                   classes.size() + empty.size(), " classes would be missing"),
               cat("put images there, or remove it:  rm -r ", shell_word(root + "/" + empty[0])));
  std::string skipped;
  if (options.images.skip_bad) skipped = leave_out_bad(folder, classes, paths, labels);
  out = images_at(folder, paths, options, true, classes.empty() ? "" : root);
  out.set_of_part(root != class_root(folder));
  if (!skipped.empty()) out.add_note(skipped);
  Strays strays;
  if (!classes.empty()) strays.look(root, false);
  for (const std::string& name : classes) strays.look(root + "/" + name, true);
  strays.tell(out);
  if (const std::string text = twice_labelled(paths, labels); !text.empty()) out.add_note(text);
  if (!classes.empty()) {
    Tensor y(DType::kInt64, {int64_t(labels.size())});
    std::copy(labels.begin(), labels.end(), y.as<int64_t>());
    out.add("y", memory_column(std::move(y)));
    out.set_class_names("y", std::move(classes));
  }
  return true;
}

std::string class_order(const Dataset& data, const std::string& column) {
  const std::vector<std::string>& names = data.class_names(column);
  if (data.format() != "images" || names.empty()) return {};
  return cat("classes in order: ", listed(names, 20));
}

}  // namespace onnxtrain
