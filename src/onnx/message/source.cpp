// Bytes -> ModelProto, with the limits of docs/safety.md, 5, checked before and while parsing.
#include "onnx/message/source.hpp"

#include <cstring>
#include <filesystem>

#include "core/file.hpp"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "google/protobuf/stubs/logging.h"
#include "onnx/message/foreign.hpp"
#include "onnx/message/normalise.hpp"

namespace onnxtrain {
namespace {

// protobuf prints parse errors to stderr by itself; only cli/ prints here.
void silence_protobuf() {
  static const bool done = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  (void)done;
}

// What is read, for messages.
struct Origin {
  const MessageBytes& message;
  std::string what;  // "'m.onnx'"
  std::string path;  // empty: it came from memory
  void refuse_foreign() const { onnxtrain::refuse_foreign(message, what, path); }
};

void parse(google::protobuf::io::ZeroCopyInputStream& stream, ModelSource& source, int64_t bytes,
           const Origin& from) {
  silence_protobuf();
  const std::string& what = from.what;
  const LoadLimits& limits = source.limits;
  const bool too_large = bytes > limits.protobuf_bytes || bytes > INT32_MAX;
  if (too_large) from.refuse_foreign();
  if (too_large)
    model_error("OT1003",
                cat(what, " has ", bytes, " bytes; the limit of one protobuf file is ",
                    std::min<int64_t>(limits.protobuf_bytes, INT32_MAX)),
                "save the model with its tensors as external data");
  google::protobuf::io::CodedInputStream in(&stream);
  in.SetTotalBytesLimit(INT32_MAX);
  // a subgraph takes three nested messages: graph, node, attribute
  in.SetRecursionLimit(3 * limits.nesting + 16);
  const bool parsed = source.proto.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
  if (!parsed || !source.proto.has_graph()) from.refuse_foreign();
  if (!parsed)
    model_error(
        "OT1002",
        cat(what, " is not a readable ONNX model: it is damaged, cut short, nested deeper than ",
            limits.nesting, " levels, or another kind of file"),
        "check that the file was copied completely, or export it again");
  if (!source.proto.has_graph())
    model_error("OT1002", cat(what, " is not an ONNX model: it has no graph"));
  normalise(source.proto);
}

// Parses what is left after large tensors were lifted; false: nothing was done.
bool parse_lifted(const Origin& from, ModelSource& source) {
  const MessageBytes& message = from.message;
  if (message.size > uint64_t(source.limits.protobuf_bytes) || message.size > INT32_MAX)
    return false;
  std::vector<LiftedTensor> lifted;
  const std::optional<std::string> rest = lift_tensors(message, lifted);
  if (!rest || lifted.empty()) return false;
  google::protobuf::io::ArrayInputStream stream(rest->data(), int(rest->size()));
  parse(stream, source, int64_t(rest->size()), from);
  source.external.set_lifted(lifted);
  return true;
}

}  // namespace

std::shared_ptr<ModelSource> parse_source(std::string_view bytes, const std::string& base_dir,
                                          const LoadLimits& limits) {
  auto source = std::make_shared<ModelSource>(base_dir, limits);
  MessageBytes message;
  message.size = bytes.size();
  message.read = [&](uint64_t at, void* out, size_t n) { std::memcpy(out, bytes.data() + at, n); };
  const Origin from{message, "the model", {}};
  if (parse_lifted(from, *source)) return source;
  if (bytes.size() > INT32_MAX) {
    google::protobuf::io::ArrayInputStream none(nullptr, 0);
    parse(none, *source, int64_t(bytes.size()), from);
  }
  google::protobuf::io::ArrayInputStream stream(bytes.data(), int(bytes.size()));
  parse(stream, *source, int64_t(bytes.size()), from);
  return source;
}

std::shared_ptr<ModelSource> read_source(const std::string& path, const LoadLimits& limits) {
  refuse_folder(path);
  const InputFile file(path, ErrorKind::kModel);
  std::string dir = std::filesystem::path(path).parent_path().string();
  auto source = std::make_shared<ModelSource>(dir.empty() ? "." : dir, limits);
  // read, not mapped: a file that shrinks meanwhile is then an error and never SIGBUS
  MessageBytes message;
  message.size = file.size();
  message.read = [&](uint64_t at, void* out, size_t n) { file.read_at(at, out, n); };
  message.file = describe_file(file.fd(), path);
  const Origin from{message, cat("'", path, "'"), path};
  if (parse_lifted(from, *source)) return source;
  google::protobuf::io::FileInputStream stream(file.fd(), 1 << 20);
  parse(stream, *source, int64_t(file.size()), from);
  return source;
}

}  // namespace onnxtrain
