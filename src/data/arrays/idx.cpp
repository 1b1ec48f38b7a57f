// idx: two zero bytes, type, number of dimensions, dimensions and elements, all big-endian.
#include "data/arrays/idx.hpp"

#include <algorithm>
#include <filesystem>

#include "data/arrays/inflate.hpp"

namespace onnxtrain {
namespace {

namespace fs = std::filesystem;

DType idx_type(unsigned char code) {
  switch (code) {
    case 0x08:
      return DType::kUint8;
    case 0x09:
      return DType::kInt8;
    case 0x0B:
      return DType::kInt16;
    case 0x0C:
      return DType::kInt32;
    case 0x0D:
      return DType::kFloat;
    case 0x0E:
      return DType::kDouble;
    default:
      return DType::kUndefined;
  }
}

[[noreturn]] void bad_idx(const std::string& path, const std::string& why) {
  data_error("OT2148", cat("'", path, "' is not a sound idx file: ", why),
             "copy or download the file again");
}

struct IdxHeader {
  DType dtype = DType::kUndefined;
  Shape shape;
  size_t bytes = 0;  // of the header
  uint64_t data_bytes = 0;
};

// `read(p, n)` delivers the next n bytes or throws.
template <class Read>
IdxHeader read_header(const std::string& path, Read&& read) {
  unsigned char head[4];
  read(head, 4);
  IdxHeader h;
  h.dtype = idx_type(head[2]);
  if (head[0] != 0 || head[1] != 0 || h.dtype == DType::kUndefined)
    bad_idx(path, "it does not begin like one");
  if (head[3] == 0 || head[3] > 8) bad_idx(path, cat("it claims ", int(head[3]), " dimensions"));
  int64_t bytes = int64_t(dtype_size(h.dtype));
  for (int i = 0; i < head[3]; ++i) {
    unsigned char d[4];
    read(d, 4);
    h.shape.push_back(int64_t(d[0]) << 24 | d[1] << 16 | d[2] << 8 | d[3]);
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(h.shape.back(), 1), &bytes))
      bad_idx(path, cat("its shape ", to_string(h.shape), " is impossibly large"));
  }
  h.bytes = 4 + 4 * size_t(head[3]);
  h.data_bytes = uint64_t(num_elements(h.shape)) * dtype_size(h.dtype);
  return h;
}

ColumnPtr open_gzip(const InputFile& file) {
  InflateStream stream(file, 0, file.size(), InflateStream::Format::kGzip);
  const IdxHeader h =
      read_header(file.path(), [&](unsigned char* p, size_t n) { stream.read_exactly(p, n); });
  if (h.data_bytes / kMaxDeflateRatio > file.size())
    bad_idx(file.path(),
            cat("shape ", to_string(h.shape), " cannot come from ", file.size(), " bytes"));
  Tensor t(h.dtype, h.shape);
  stream.read_exactly(t.data(), t.bytes());
  if (!stream.at_end())
    bad_idx(file.path(), cat("it goes on after the elements of shape ", to_string(h.shape)));
  swap_bytes(t.data(), dtype_size(h.dtype), size_t(t.size()));
  return memory_column(std::move(t));
}

bool is_gzip(const InputFile& file) {
  unsigned char magic[2];
  if (file.size() < 2) return false;
  file.read_at(0, magic, 2);
  return magic[0] == 0x1F && magic[1] == 0x8B;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.rfind(from);
  return at == std::string::npos ? "" : text.replace(at, from.size(), to);
}

// The file of `folder` whose name begins so (train-images-idx3-ubyte.gz, train-images.idx3-ubyte).
std::string find_beginning(const std::string& folder, const std::string& beginning) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename().string();
    if (name.starts_with(beginning) && name.find(".tmp") == std::string::npos)
      found.push_back(name);
  }
  if (found.empty()) return "";
  return folder + "/" + *std::min_element(found.begin(), found.end());  // plain before .gz
}

// Images and labels as x and y.
Dataset pair_of(const std::string& source, const std::string& images, const std::string& labels) {
  const bool gz = images.ends_with(".gz");
  Dataset d(source, gz ? "idx, gzip" : "idx");
  if (!images.empty()) d.add("x", open_idx(images));
  if (!labels.empty()) d.add("y", open_idx(labels));
  return d;
}

// labels for images, whatever the number in the middle: images-idx3-ubyte, labels-idx1-ubyte
std::string labels_beside(const std::string& images) {
  const std::string file = fs::path(images).filename().string();
  const size_t at = file.find("images");
  if (at == std::string::npos) return "";
  std::string folder = fs::path(images).parent_path().string();
  if (folder.empty()) folder = ".";
  return find_beginning(folder, replaced(file.substr(0, at + 6), "images", "labels"));
}

}  // namespace

bool looks_like_idx(std::string_view head) {
  return head.size() >= 4 && head[0] == 0 && head[1] == 0 &&
         idx_type(static_cast<unsigned char>(head[2])) != DType::kUndefined && head[3] > 0 &&
         head[3] <= 8;
}

ColumnPtr open_idx(const std::string& path) {
  const auto file = std::make_shared<const InputFile>(path, ErrorKind::kData);
  if (is_gzip(*file)) return open_gzip(*file);
  uint64_t at = 0;
  const IdxHeader h = read_header(path, [&](unsigned char* p, size_t n) {
    if (at + n > file->size()) bad_idx(path, "it is cut off");
    file->read_at(at, p, n);
    at += n;
  });
  if (file->size() - at != h.data_bytes)
    bad_idx(path, cat("shape ", to_string(h.shape), " needs ", h.data_bytes,
                      " bytes, the file has ", file->size() - at));
  const bool swap = dtype_size(h.dtype) > 1;
  if (h.data_bytes > eager_limit())
    return file_column(file, at, h.dtype, Shape(h.shape.begin() + 1, h.shape.end()), h.shape[0],
                       swap);
  return memory_column(read_tensor(*file, at, h.dtype, h.shape, swap));
}

Dataset open_idx_file(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  if (name.find("labels") != std::string::npos) return pair_of(path, "", path);
  return pair_of(path, path, labels_beside(path));
}

bool open_idx_folder(const std::string& folder, DataPart part, Dataset& out) {
  const std::string train = find_beginning(folder, "train-images");
  std::string test = find_beginning(folder, "t10k-images");
  if (test.empty()) test = find_beginning(folder, "test-images");
  if (train.empty() && test.empty()) return false;
  // a folder with test files only (interface: --data t10k/) serves either part
  const std::string& images = part == DataPart::kTest ? test : train.empty() ? test : train;
  if (images.empty())
    data_error("OT2109", cat("'", folder, "' has no test images (t10k-images...)"),
               "put t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte beside the training files, "
               "or leave --part out");
  out = pair_of(folder, images, labels_beside(images));
  out.set_of_part(part == DataPart::kTest || !train.empty());
  return true;
}

}  // namespace onnxtrain
