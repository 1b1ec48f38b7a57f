// AttributeProto -> Attr, and what an attribute may never be whatever the inputs are. The second
// runs before libonnx's shape functions, which trust their attributes.
#include <algorithm>
#include <cmath>

#include "onnx/read/reader.hpp"

namespace onnxtrain {

using onnx::AttributeProto;

AttributeProto::AttributeType attribute_type(const AttributeProto& a) {
  if (a.type() != AttributeProto::UNDEFINED) return a.type();
  // files of 2017 have no type: the field in use tells
  if (a.has_f()) return AttributeProto::FLOAT;
  if (a.has_i()) return AttributeProto::INT;
  if (a.has_s()) return AttributeProto::STRING;
  if (a.has_t()) return AttributeProto::TENSOR;
  if (a.has_g()) return AttributeProto::GRAPH;
  if (a.has_sparse_tensor()) return AttributeProto::SPARSE_TENSOR;
  if (a.has_tp()) return AttributeProto::TYPE_PROTO;
  if (a.floats_size() > 0) return AttributeProto::FLOATS;
  if (a.ints_size() > 0) return AttributeProto::INTS;
  if (a.strings_size() > 0) return AttributeProto::STRINGS;
  if (a.tensors_size() > 0) return AttributeProto::TENSORS;
  return AttributeProto::UNDEFINED;
}

Attr read_attribute(const AttributeProto& a, const TensorContext& c, const std::string& where) {
  switch (attribute_type(a)) {
    case AttributeProto::FLOAT:
      return a.f();
    case AttributeProto::INT:
      return int64_t(a.i());
    case AttributeProto::STRING:
      return a.s();
    case AttributeProto::TENSOR:
      return read_tensor(a.t(), c);
    case AttributeProto::SPARSE_TENSOR:
      return read_sparse(a.sparse_tensor(), c);
    case AttributeProto::TYPE_PROTO:
      return read_type(a.tp());
    case AttributeProto::FLOATS:
      return std::vector<float>(a.floats().begin(), a.floats().end());
    case AttributeProto::INTS:
      return std::vector<int64_t>(a.ints().begin(), a.ints().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(a.strings().begin(), a.strings().end());
    case AttributeProto::TENSORS: {
      std::vector<Tensor> list;
      for (const auto& t : a.tensors()) list.push_back(read_tensor(t, c));
      return list;
    }
    case AttributeProto::UNDEFINED:  // an empty list, or nothing at all
      return std::vector<int64_t>{};
    default:
      model_error("OT1056", cat("attribute ", where, " is of a kind that no operator has (",
                                AttributeProto::AttributeType_Name(a.type()), ")"));
  }
}

namespace {

// Lower and upper bound of an integer, or of each number of a list.
struct Bound {
  const char* name;
  int64_t low, high;
  const char* not_for = nullptr;  // an operator that this name means something else in
};
constexpr int64_t kBig = int64_t(1) << 31;
constexpr int64_t kDim = int64_t(1) << 48;
constexpr Bound kBounds[] = {
    {"strides", 1, kBig},
    {"dilations", 1, kBig},
    {"kernel_shape", 1, kBig},
    {"group", 1, kBig},
    {"pads", 0, kBig, "Pad"},
    {"paddings", -kBig, kBig},
    {"output_padding", 0, kBig},
    {"axis", -64, 64},
    {"axes", -64, 64},
    {"split", 0, kDim},
    {"blocksize", 1, 1 << 20},
    {"num_outputs", 1, 1 << 20},
    {"num_groups", 1, kBig},
    {"offset_group", 1, kBig},
    {"hidden_size", 1, kBig},
    {"num_heads", 1, kBig},
    {"q_num_heads", 1, kBig},
    {"kv_num_heads", 1, kBig},
    {"block_size", 0, kBig},
    {"batch_dims", -64, 64},
    {"num_scan_inputs", 0, 1 << 20},
    {"output_height", 1, kBig},
    {"output_width", 1, kBig},
    {"sampling_ratio", 0, kBig},
    {"rotary_embedding_dim", 0, kBig},
    {"sample_size", 1, kBig},
    {"output_shape", 0, kDim},
    {"size", 1, kBig, "Upsample"},
    {"batch_axis", -64, 64},
    {"time_axis", -64, 64},
    {"perm", 0, 63},
};

std::string number_problem(const std::string& name, int64_t v, int64_t low, int64_t high) {
  if (v >= low && v <= high) return {};
  return cat("attribute '", name, "' has the value ", v, "; allowed are ", low, " to ", high);
}

std::string perm_problem(const AttributeProto& a) {
  std::vector<int64_t> sorted(a.ints().begin(), a.ints().end());
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != int64_t(i)) return "attribute 'perm' is not a permutation of 0..rank-1";
  return {};
}

std::string shape_problem(const AttributeProto& a, int64_t low) {
  int64_t product = 1;
  for (int64_t d : a.ints()) {
    std::string p = number_problem("shape", d, low, kDim);
    if (!p.empty()) return p;
    if (d > 0 && __builtin_mul_overflow(product, d, &product))
      return "the product of 'shape' overflows";
  }
  return {};
}

}  // namespace

std::string attribute_problem(const std::string& domain, const std::string& op,
                              const std::string& name, const AttributeProto& a) {
  if (!domain.empty() && domain != kMlDomain && domain != kTrainingDomain) return {};
  if (!domain.empty() && name != "axis") return {};
  const auto type = attribute_type(a);
  for (const Bound& b : kBounds) {
    if (name != b.name || (b.not_for != nullptr && op == b.not_for)) continue;
    if (type == AttributeProto::INT) return number_problem(name, a.i(), b.low, b.high);
    for (int64_t v : a.ints()) {
      std::string p = number_problem(name, v, b.low, b.high);
      if (!p.empty()) return p;
    }
  }
  if (name == "perm") return perm_problem(a);
  if (name == "shape" && type == AttributeProto::INTS)
    return shape_problem(a, op == "Reshape" ? -1 : 0);
  if ((name == "to" || name == "dtype" || name == "output_dtype") && type == AttributeProto::INT)
    // 0 is "not given" for some operators
    return number_problem(name, a.i(), op == "Cast" ? 1 : 0, kDTypeCount - 1);
  if (name == "scales" && op == "Upsample")
    for (float f : a.floats())
      if (!(f >= 1e-6f && f <= 1e6f)) return cat("attribute 'scales' has the value ", f);
  return {};
}

}  // namespace onnxtrain
