// Types of graph values: element type plus a shape whose dimensions may be numbers, symbols or
// unknown, or whose rank itself is unknown.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace onnxtrain {

struct Dim {
  int64_t value = -1;  // >= 0: known
  std::string symbol;  // named but unknown; empty and value < 0: unknown
  bool known() const { return value >= 0; }
  bool operator==(const Dim&) const = default;
};

struct TypeInfo {
  enum class Kind : uint8_t { kUnknown, kTensor, kSparse, kSequence, kOptional, kMap };
  Kind kind = Kind::kUnknown;
  DType elem = DType::kUndefined;         // tensor, sparse; key type of a map
  std::optional<std::vector<Dim>> shape;  // nullopt: unknown rank
  std::shared_ptr<const TypeInfo> inner;  // sequence, optional, map value

  static TypeInfo tensor(DType elem) { return {Kind::kTensor, elem, std::nullopt, nullptr}; }
  static TypeInfo tensor(DType elem, const Shape& shape);
  bool is_tensor() const { return kind == Kind::kTensor; }
  // true when rank and every dimension are numbers
  bool concrete() const;
  Shape concrete_shape() const;  // only when concrete()
};

// "float[N,3,?]", "seq(float[?])"
std::string to_string(const TypeInfo& t);

}  // namespace onnxtrain
