// ONNX's text syntax through libonnx's parser.
#include "onnx/defs/parser.h"
#include "onnx/message/libonnx_call.hpp"
#include "onnx/message/normalise.hpp"
#include "onnx/read/reader.hpp"

namespace onnxtrain {

Model parse_model(std::string_view text, const OpTable& ops, const LoadOptions& o) {
  auto source = std::make_shared<ModelSource>(std::string(), o.limits);
  std::string reason;
  const std::string complaint = libonnx_complaint([&] {  // numbers out of range
    onnx::OnnxParser parser(text);
    const auto status = parser.Parse(source->proto);
    if (!status.IsOK())
      reason = status.ErrorMessage();
    else if (!parser.EndOfInput())
      reason = "text follows the model";
  });
  if (!complaint.empty()) reason = complaint;
  if (!reason.empty()) model_error("OT1004", cat("not a model in ONNX's text syntax: ", reason));
  normalise(source->proto);
  return load_source(std::move(source), ops, o);
}

}  // namespace onnxtrain
