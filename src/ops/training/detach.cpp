// Detach: the value of its input, no gradient (PyTorch's detach, a stop of differentiation). ONNX
// has no such operator; in a file it is a local function whose body is Identity.
#include <cstring>

#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make(Prepare& p) {
  size_t bytes = size_t(p.out(0).size()) * dtype_size(p.in(0).dtype);
  return [bytes](const Run& r) {
    if (bytes) std::memcpy(r.outputs[0], r.inputs[0], bytes);
  };
}

void shape(ShapeCtx& c) { c.set(0, c.dtype(0), c.shape(0)); }

std::vector<ValueId> stops(GradBuilder&) { return {kNone}; }

constexpr const char* kFunction = R"(
<domain: "ai.onnxtrain", opset_import: ["" : 15]>
Detach (X) => (Y)
{
  Y = Identity (X)
}
)";

}  // namespace

void register_detach(OpTable& t) {
  t.add({.name = "Detach",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = stops,
         .view_of = 0,
         .function = kFunction});
}

}  // namespace onnxtrain::ops
