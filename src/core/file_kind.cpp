// Signatures of files.
#include "core/file_kind.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/file.hpp"

namespace onnxtrain {

namespace {

using namespace std::string_view_literals;

struct Signature {
  size_t at;
  std::string_view bytes;
  FileKind kind;
};

constexpr Signature kSignatures[] = {
    {0, "\x89HDF\r\n\x1a\n"sv, FileKind::kHdf5},
    {4, "TFL3"sv, FileKind::kTfLite},
    {4, "ORTM"sv, FileKind::kOrt},
    {0, "GGUF"sv, FileKind::kGguf},
    {0, "lmgg"sv, FileKind::kGguf},
    {0, "tjgg"sv, FileKind::kGguf},
    {0, "\x93NUMPY"sv, FileKind::kNpy},
    {0, "\x1f\x8b"sv, FileKind::kGzip},
    {0, "\x28\xb5\x2f\xfd"sv, FileKind::kCompressed},
    {0, "BZh"sv, FileKind::kCompressed},
    {0, "\xfd\x37zXZ"sv, FileKind::kCompressed},
    {257, "ustar"sv, FileKind::kTar},
    {0, "\x89PNG\r\n"sv, FileKind::kImage},
    {0, "\xff\xd8\xff"sv, FileKind::kImage},
    {0, "GIF8"sv, FileKind::kImage},
    {8, "WEBP"sv, FileKind::kImage},
    {0, "%PDF-"sv, FileKind::kPdf},
    {0, "\xd0\xcf\x11\xe0\xa1\xb1"sv, FileKind::kExcel},
    {0, "SQLite format 3"sv, FileKind::kDatabase},
    {0, "ARROW1"sv, FileKind::kColumnar},
    {0, "Obj\x01"sv, FileKind::kColumnar},
    {0, "MATLAB 5.0"sv, FileKind::kMatlab},
    {0, "7z\xbc\xaf"sv, FileKind::kCompressed},
    {0, "Rar!\x1a"sv, FileKind::kCompressed},
    {0,
     "\x7f"
     "ELF"sv,
     FileKind::kProgram},
    // the number that PyTorch wrote first before it used zip files
    {0, "\x80\x02\x8a\x0al\xfc\x9c"sv, FileKind::kTorch},
    {0, "version https://git-lfs"sv, FileKind::kLfsPointer},
};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Names of members stand in front of each and once more at the end.
FileKind zip_kind(std::string_view head, std::string_view tail) {
  auto any = [&](std::string_view name) { return has(head, name) || has(tail, name); };
  if (any("archive_format") || any("models/model.json")) return FileKind::kTorchProgram;
  if (any("data.pkl") || any("constants.pkl") || any(".data/serialization_id"))
    return FileKind::kTorch;
  if (any("model.weights.h5")) return FileKind::kKeras;
  if (any(".npy")) return FileKind::kNpz;
  if (any("xl/workbook") || any("application/vnd.oasis.opendocument.spreadsheet"))
    return FileKind::kExcel;
  return FileKind::kZip;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = char(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_text(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u >= 0x20 || u == '\n' || u == '\r' || u == '\t';
  });
}

FileKind text_kind(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return FileKind::kText;
  const std::string start = lower(head.substr(first, 512));
  if (start.starts_with("<!doctype html") || start.starts_with("<html")) return FileKind::kHtml;
  if (start.starts_with("<?xml") && has(start, "<net")) return FileKind::kOpenVino;
  if (start.starts_with("<?xml") && has(start, "html")) return FileKind::kHtml;
  if (start[0] == '{' || start[0] == '[') return FileKind::kJson;
  return FileKind::kText;
}

// Protobuf messages have no signature: an ONNX model begins with its version (field 1) and a short
// text, a SavedModel with version 1 and a long message, a GraphDef with its first node.
FileKind protobuf_kind(std::string_view head) {
  if (head.size() < 4) return FileKind::kUnknown;
  const bool version = head[0] == 0x08 && (head[2] == 0x12 || head[2] == 0x3a);
  if (version && head[1] == 1 && (has(head, "serve") || has(head, "tensorflow")))
    return FileKind::kSavedModel;
  if (version && head[1] >= 3 && head[1] <= 20) return FileKind::kOnnx;
  if (head[0] == 0x0a && (has(head, "Placeholder") || has(head,
                                                          "\x12\x05"
                                                          "Const")))
    return FileKind::kFrozenGraph;
  return FileKind::kUnknown;
}

bool is_safetensors(std::string_view head, uint64_t size) {
  if (head.size() < 10) return false;
  uint64_t header = 0;
  std::memcpy(&header, head.data(), sizeof header);
  return header >= 2 && header <= size - 8 && head[8] == '{' && (head[9] == '"' || head[9] == '}');
}

}  // namespace

FileKind file_kind(uint64_t size, const std::function<void(uint64_t, void*, size_t)>& read) {
  if (size == 0) return FileKind::kEmpty;
  constexpr uint64_t kPart = 1 << 16;
  std::string head(size_t(std::min(size, kPart)), '\0'), tail;
  read(0, head.data(), head.size());
  for (const Signature& s : kSignatures)
    if (head.size() >= s.at + s.bytes.size() && head.compare(s.at, s.bytes.size(), s.bytes) == 0)
      return s.kind;
  if (head.starts_with("PK\x03\x04")) {
    tail.resize(head.size());
    read(size - tail.size(), tail.data(), tail.size());
    return zip_kind(head, tail);
  }
  if (is_safetensors(head, size)) return FileKind::kSafetensors;
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
    return FileKind::kPickle;
  if (const FileKind kind = protobuf_kind(head); kind != FileKind::kUnknown) return kind;
  return is_text(std::string_view(head).substr(0, 4096)) ? text_kind(head) : FileKind::kUnknown;
}

FileKind file_kind_of(const std::string& path) {
  try {
    const InputFile file(path);
    return file_kind(file.size(),
                     [&](uint64_t at, void* out, size_t n) { file.read_at(at, out, n); });
  } catch (const Error&) {
    return FileKind::kUnknown;
  }
}

std::string unpacking_command(const std::string& file) {
  std::string_view name = file;
  if (name.ends_with('\'')) name.remove_suffix(1);
  constexpr std::pair<const char*, const char*> kTools[] = {{".xz", "xz -dk "},
                                                            {".bz2", "bzip2 -dk "},
                                                            {".zst", "zstd -d "},
                                                            {".7z", "7z x "},
                                                            {".rar", "unrar x "}};
  for (const auto& [ending, tool] : kTools)
    if (name.ends_with(ending) && name.find(".tar.") == std::string_view::npos) return tool + file;
  return "tar -xf " + file;
}

std::string describe(FileKind kind) {
  static const char* const kNames[] = {
      "",
      "empty",
      "a PyTorch file",
      "a PyTorch program (torch.export)",
      "a Keras model",
      "an HDF5 file (Keras writes such)",
      "a TensorFlow Lite model",
      "a TensorFlow SavedModel",
      "a TensorFlow graph",
      "a safetensors file: weights without a graph",
      "a GGUF file (llama.cpp): weights without a graph",
      "a model in ONNX Runtime's own format",
      "an OpenVINO model",
      "a Python pickle (scikit-learn and others write such)",
      "a NumPy array",
      "an npz file of NumPy arrays",
      "a zip archive",
      "compressed with gzip",
      "a compressed file",
      "a tar archive",
      "an image",
      "a PDF document",
      "a spreadsheet (Excel or OpenDocument)",
      "an SQLite database",
      "a table of Arrow, Feather or Avro",
      "a MATLAB file",
      "a program",
      "an HTML page",
      "a Git LFS pointer: the file itself was not downloaded",
      "a JSON file",
      "a text file",
      "an ONNX model",
  };
  static_assert(std::size(kNames) == size_t(FileKind::kCount));
  return kNames[size_t(kind)];
}

}  // namespace onnxtrain
