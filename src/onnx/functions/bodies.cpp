// The standard's body of AffineGrid fails on a batch of one (it squeezes every dimension of size 1)
// and divides by zero when the corners of a size of 1 are aligned; the operator's own words and the
// reference implementation have a meaning for both.
#include "onnx/functions/bodies.hpp"

#include <onnx/defs/parser.h>

#include "core/error.hpp"

namespace onnxtrain {

namespace {

constexpr const char* kAffineGrid = R"(<domain: "", opset_import: ["" : 20]>
AffineGrid <align_corners> (theta, size) => (grid) {
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  ones_1 = Constant <value_ints = [1]> ()
  two_1 = Constant <value_ints = [2]> ()
  end = Constant <value_ints = [9]> ()
  last = Constant <value_ints = [-1]> ()
  before = Constant <value_ints = [-9]> ()
  sizes = Slice (size, two_1, end)
  k = Shape (sizes)
  square = Concat <axis = 0> (k, k)
  all = Expand (one, square)
  above = Trilu <upper = 1> (all, one)
  inner = Cast <to = 9> (above)
  factors = Where (inner, sizes, one)
  strides = ReduceProd <keepdims = 0> (factors, ones_1)
  points = ReduceProd <keepdims = 0> (sizes)
  number = Range (zero, points, one)
  column = Unsqueeze (number, ones_1)
  over = Div (column, strides)
  index = Mod (over, sizes)
  i = CastLike (index, theta)
  n = CastLike (sizes, theta)
  one_f = CastLike (one, theta)
  two_f = Add (one_f, one_f)
  twice = Mul (i, two_f)
  fewer = Sub (n, one_f)
  gaps = Max (fewer, one_f)
  at_corners = Div (twice, gaps)
  odd = Add (twice, one_f)
  at_centres = Div (odd, n)
  said = Constant <value_int: int = @align_corners> ()
  aligned = Cast <to = 9> (said)
  from_0 = Where (aligned, at_corners, at_centres)
  zyx = Sub (from_0, one_f)
  xyz = Slice (zyx, last, before, ones_1, last)
  count = Unsqueeze (points, zero)
  ones_shape = Concat <axis = 0> (count, ones_1)
  ones = Expand (one_f, ones_shape)
  base = Concat <axis = 1> (xyz, ones)
  turned = Transpose <perm = [0, 2, 1]> (theta)
  flat = MatMul (base, turned)
  zero_1 = Constant <value_ints = [0]> ()
  batch = Slice (size, zero_1, ones_1)
  shape = Concat <axis = 0> (batch, sizes, k)
  grid = Reshape <allowzero = 1> (flat, shape)
})";

}  // namespace

const onnx::FunctionProto* corrected_body(const std::string& domain, const std::string& op) {
  if (!domain.empty() || op != "AffineGrid") return nullptr;
  static const onnx::FunctionProto body = [] {
    onnx::FunctionProto f;
    const auto status = onnx::OnnxParser::Parse(f, kAffineGrid);
    OT_ASSERT(status.IsOK());
    return f;
  }();
  return &body;
}

}  // namespace onnxtrain
