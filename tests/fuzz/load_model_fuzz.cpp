// Any bytes as a model file: loading gives a model or an Error, checking gives findings, and what
// loads can be written and loaded again. Seeds: tests/fuzz/load_model_fuzz/, made by
// tests/files/make_models.py.
#include <cstdint>
#include <string_view>

#include "onnx/onnx.hpp"

using namespace onnxtrain;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  LoadOptions options;
  options.limits.nodes = 20'000;  // keeps single runs short; the limit itself is tested elsewhere
  options.limits.dense_bytes = 1 << 20;
  try {
    check_model_bytes(bytes, "", all_ops(), options);
  } catch (const Error&) {
  }
  for (bool check : {true, false}) {
    options.check = check;
    options.keep_unknown = !check;
    try {
      Model m = load_model_bytes(bytes, "", all_ops(), options);
      m.main.verify("loading");
      for (const auto& t : m.training) t.algorithm.verify("loading");
      serialize_model(m, all_ops());
      m.main_generated = true;
      for (auto& t : m.training) t.generated = true;
      load_model_bytes(serialize_model(m, all_ops()), "", all_ops(), options);
    } catch (const Error&) {
    }
  }
  return 0;
}
