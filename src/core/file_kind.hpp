// What a file is, by its first and last bytes: for messages about a file that is not what was
// expected.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace onnxtrain {

enum class FileKind {
  kUnknown,
  kEmpty,
  kTorch,         // zip or older form: module, state_dict, TorchScript
  kTorchProgram,  // .pt2
  kKeras,         // .keras
  kHdf5,          // .h5 of Keras, or any other
  kTfLite,
  kSavedModel,  // TensorFlow
  kFrozenGraph,
  kSafetensors,
  kGguf,
  kOrt,  // ONNX Runtime's own format
  kOpenVino,
  kPickle,
  kNpy,
  kNpz,
  kZip,
  kGzip,
  kCompressed,  // zstd, bzip2, xz
  kTar,
  kImage,
  kPdf,
  kExcel,     // .xlsx, .xls
  kDatabase,  // SQLite
  kColumnar,  // Arrow, ORC, Avro
  kMatlab,
  kProgram,
  kHtml,
  kLfsPointer,
  kJson,
  kText,
  kOnnx,
  kCount
};

// size bytes, of which read(offset, out, n) gives some.
FileKind file_kind(uint64_t size, const std::function<void(uint64_t, void*, size_t)>& read);
FileKind file_kind_of(const std::string& path);  // kUnknown when it cannot be read

// "xz -dk table.csv.xz", "tar -xf all.tar.gz": by the ending of a name, which may stand in quotes.
std::string unpacking_command(const std::string& file);

// "a PyTorch file", "an HTML page"; "" for kUnknown.
std::string describe(FileKind kind);

}  // namespace onnxtrain
