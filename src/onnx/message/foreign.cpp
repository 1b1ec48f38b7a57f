// What to do with files of other formats.
#include "onnx/message/foreign.hpp"

#include <filesystem>

#include "core/error.hpp"
#include "core/file_kind.hpp"
#include "core/shell.hpp"

namespace onnxtrain {
namespace {

// A command or call that makes an ONNX model of it; `file` as it is typed in a shell.
std::string advice(FileKind kind, const std::string& file) {
  switch (kind) {
    case FileKind::kEmpty:
      return "copy or export the file again";
    case FileKind::kTorch:
      return cat("onnxtrain convert ", file,
                 " model.onnx   or in PyTorch: torch.onnx.export(module, (example,), "
                 "\"model.onnx\", dynamo=True)");
    case FileKind::kTorchProgram:
      return cat("onnxtrain convert ", file, " model.onnx");
    case FileKind::kKeras:
    case FileKind::kHdf5:
      return cat("a Keras model:  onnxtrain convert ", file, " model.onnx");
    case FileKind::kTfLite:
      return cat("python -m tf2onnx.convert --tflite ", file, " --output model.onnx");
    case FileKind::kSavedModel:
      return "python -m tf2onnx.convert --saved-model FOLDER --output model.onnx";
    case FileKind::kFrozenGraph:
      return cat("python -m tf2onnx.convert --graphdef ", file,
                 " --output model.onnx --inputs x:0 --outputs y:0");
    case FileKind::kSafetensors:
      return "export the model that these weights belong to: torch.onnx.export in PyTorch, or "
             "optimum-cli export onnx --model FOLDER onnx/ for a Hugging Face folder";
    case FileKind::kGguf:
      return "export the original model: optimum-cli export onnx --model NAME onnx/";
    case FileKind::kOrt:
      return "use the .onnx file that it was made from";
    case FileKind::kOpenVino:
      return "use the model that it was converted from";
    case FileKind::kPickle:
      return "in Python, a scikit-learn model: open(\"model.onnx\", \"wb\").write(skl2onnx.to_onnx("
             "model, X[:1]).SerializeToString())";
    case FileKind::kNpy:
    case FileKind::kNpz:
      return cat("that is data: onnxtrain train model.onnx --data ", file);
    case FileKind::kZip:
      return cat("unpack it first: unzip ", file);
    case FileKind::kGzip:
      return cat("unpack it first: gzip -dc ", file, " >model.onnx");
    case FileKind::kCompressed:
    case FileKind::kTar:
      return cat("unpack it first: ", unpacking_command(file));
    case FileKind::kLfsPointer:
      return cat("in its repository: git lfs pull --include ", file);
    case FileKind::kHtml:
      return "download the file itself: the address leads to a page about it";
    case FileKind::kJson:
    case FileKind::kText:
    case FileKind::kImage:
    case FileKind::kPdf:
    case FileKind::kExcel:
    case FileKind::kDatabase:
    case FileKind::kColumnar:
    case FileKind::kMatlab:
    case FileKind::kProgram:
      return "give the path of a .onnx file";
    default:
      return {};
  }
}

}  // namespace

void refuse_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return;
  const std::string file = shell_word(path);
  auto has = [&](const char* name) { return fs::exists(fs::path(path) / name, ignored); };
  if (has("saved_model.pb"))
    model_error("OT4002",
                cat("'", path, "' is the folder of a TensorFlow SavedModel, not an ONNX model"),
                cat("onnxtrain convert ", file, " model.onnx"));
  std::string first;
  for (fs::directory_iterator it(path, ignored), end; !ignored && it != end; it.increment(ignored))
    if (const std::string name = it->path().filename().string();
        name.ends_with(".onnx") && (first.empty() || name < first))
      first = name;
  model_error("OT4002", cat("'", path, "' is a folder, not an ONNX model"),
              first.empty()
                  ? "give the path of a .onnx file"
                  : cat("did you mean ", shell_word((fs::path(path) / first).string()), "?"));
}

void refuse_foreign(const MessageBytes& message, const std::string& what, const std::string& path) {
  const FileKind kind = file_kind(message.size, message.read);
  if (kind == FileKind::kUnknown || kind == FileKind::kOnnx) return;
  model_error("OT1002", cat(what, " is ", describe(kind), ", not an ONNX model"),
              advice(kind, path.empty() ? "FILE" : shell_word(path)));
}

}  // namespace onnxtrain
