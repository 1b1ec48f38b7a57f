// TypeProto <-> TypeInfo.
#include "onnx/message/tensors.hpp"

namespace onnxtrain {
namespace {

template <class P>
TypeInfo read_tensor_type(const P& p, TypeInfo::Kind kind) {
  TypeInfo t;
  t.kind = kind;
  if (p.elem_type() > 0 && p.elem_type() < kDTypeCount) t.elem = DType(p.elem_type());
  if (!p.has_shape()) return t;
  t.shape.emplace();
  for (const auto& d : p.shape().dim()) {
    Dim dim;
    // a negative number is how some exporters say "unknown"
    if (d.has_dim_value() && d.dim_value() >= 0)
      dim.value = d.dim_value();
    else if (d.has_dim_param())
      dim.symbol = d.dim_param();
    t.shape->push_back(std::move(dim));
  }
  return t;
}

template <class P>
void write_tensor_type(const TypeInfo& t, P& p) {
  p.set_elem_type(int(t.elem));
  if (!t.shape) return;
  p.mutable_shape();
  for (const Dim& d : *t.shape) {
    auto* dim = p.mutable_shape()->add_dim();
    if (d.known())
      dim->set_dim_value(d.value);
    else if (!d.symbol.empty())
      dim->set_dim_param(d.symbol);
  }
}

std::shared_ptr<const TypeInfo> inner_of(const onnx::TypeProto& p) {
  return std::make_shared<const TypeInfo>(read_type(p));
}

}  // namespace

TypeInfo read_type(const onnx::TypeProto& p) {
  TypeInfo t;
  switch (p.value_case()) {
    case onnx::TypeProto::kTensorType:
      return read_tensor_type(p.tensor_type(), TypeInfo::Kind::kTensor);
    case onnx::TypeProto::kSparseTensorType:
      return read_tensor_type(p.sparse_tensor_type(), TypeInfo::Kind::kSparse);
    case onnx::TypeProto::kSequenceType:
      t.kind = TypeInfo::Kind::kSequence;
      t.inner = inner_of(p.sequence_type().elem_type());
      return t;
    case onnx::TypeProto::kOptionalType:
      t.kind = TypeInfo::Kind::kOptional;
      t.inner = inner_of(p.optional_type().elem_type());
      return t;
    case onnx::TypeProto::kMapType:
      t.kind = TypeInfo::Kind::kMap;
      if (p.map_type().key_type() > 0 && p.map_type().key_type() < kDTypeCount)
        t.elem = DType(p.map_type().key_type());
      t.inner = inner_of(p.map_type().value_type());
      return t;
    default:
      return t;
  }
}

void write_type(const TypeInfo& t, onnx::TypeProto& p) {
  switch (t.kind) {
    case TypeInfo::Kind::kUnknown:
      return;
    case TypeInfo::Kind::kTensor:
      write_tensor_type(t, *p.mutable_tensor_type());
      return;
    case TypeInfo::Kind::kSparse:
      write_tensor_type(t, *p.mutable_sparse_tensor_type());
      return;
    case TypeInfo::Kind::kSequence:
      p.mutable_sequence_type()->mutable_elem_type();
      if (t.inner) write_type(*t.inner, *p.mutable_sequence_type()->mutable_elem_type());
      return;
    case TypeInfo::Kind::kOptional:
      p.mutable_optional_type()->mutable_elem_type();
      if (t.inner) write_type(*t.inner, *p.mutable_optional_type()->mutable_elem_type());
      return;
    case TypeInfo::Kind::kMap:
      p.mutable_map_type()->set_key_type(int(t.elem));
      if (t.inner) write_type(*t.inner, *p.mutable_map_type()->mutable_value_type());
      return;
  }
}

TypeInfo merge_types(const TypeInfo& inferred, const TypeInfo& declared) {
  if (inferred.kind == TypeInfo::Kind::kUnknown) return declared;
  if (declared.kind != inferred.kind) return inferred;
  TypeInfo t = inferred;
  if (t.elem == DType::kUndefined) t.elem = declared.elem;
  if (t.inner && declared.inner) {
    t.inner = std::make_shared<const TypeInfo>(merge_types(*t.inner, *declared.inner));
  } else if (!t.inner) {
    t.inner = declared.inner;
  }
  if (!t.shape) {
    t.shape = declared.shape;
  } else if (declared.shape && declared.shape->size() == t.shape->size()) {
    for (size_t i = 0; i < t.shape->size(); ++i) {
      Dim& d = (*t.shape)[i];
      const Dim& other = (*declared.shape)[i];
      if (!d.known() && (other.known() || d.symbol.empty())) d = other;
    }
  }
  return t;
}

}  // namespace onnxtrain
