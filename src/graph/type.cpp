// Construction and printing of types.
#include "graph/type.hpp"

namespace onnxtrain {

TypeInfo TypeInfo::tensor(DType elem, const Shape& shape) {
  TypeInfo t{Kind::kTensor, elem, std::vector<Dim>{}, nullptr};
  for (int64_t d : shape) t.shape->push_back({d, {}});
  return t;
}

bool TypeInfo::concrete() const {
  if (kind != Kind::kTensor || elem == DType::kUndefined || !shape) return false;
  for (const Dim& d : *shape)
    if (!d.known()) return false;
  return true;
}

Shape TypeInfo::concrete_shape() const {
  Shape s;
  for (const Dim& d : *shape) s.push_back(d.value);
  return s;
}

std::string to_string(const TypeInfo& t) {
  switch (t.kind) {
    case TypeInfo::Kind::kUnknown:
      return "?";
    case TypeInfo::Kind::kSequence:
      return "seq(" + (t.inner ? to_string(*t.inner) : "?") + ")";
    case TypeInfo::Kind::kOptional:
      return "optional(" + (t.inner ? to_string(*t.inner) : "?") + ")";
    case TypeInfo::Kind::kMap:
      return cat("map(", dtype_name(t.elem), ", ", t.inner ? to_string(*t.inner) : "?", ")");
    default:
      break;
  }
  std::string s = t.kind == TypeInfo::Kind::kSparse ? "sparse " : "";
  s += dtype_name(t.elem);
  if (!t.shape) return s + "[...]";
  s += "[";
  for (size_t i = 0; i < t.shape->size(); ++i) {
    const Dim& d = (*t.shape)[i];
    if (i) s += ",";
    s += d.known() ? std::to_string(d.value) : d.symbol.empty() ? "?" : d.symbol;
  }
  return s + "]";
}

}  // namespace onnxtrain
