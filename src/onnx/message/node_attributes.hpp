// Attributes of a node still in protobuf's words. Internal to onnx/.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "onnx/onnx_pb.h"

namespace onnxtrain {

inline const onnx::AttributeProto* find_attribute(const onnx::NodeProto& n, std::string_view name) {
  for (const onnx::AttributeProto& a : n.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

inline void remove_attribute(onnx::NodeProto& n, std::string_view name) {
  auto* list = n.mutable_attribute();
  for (int k = list->size(); k-- > 0;)
    if (list->Get(k).name() == name) list->DeleteSubrange(k, 1);
}

// A new attribute in the place of one by that name.
inline onnx::AttributeProto& new_attribute(onnx::NodeProto& n, const char* name,
                                           onnx::AttributeProto::AttributeType type) {
  remove_attribute(n, name);
  onnx::AttributeProto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(type);
  return *a;
}

inline void set_int(onnx::NodeProto& n, const char* name, int64_t value) {
  new_attribute(n, name, onnx::AttributeProto::INT).set_i(value);
}

inline void set_string(onnx::NodeProto& n, const char* name, const char* value) {
  new_attribute(n, name, onnx::AttributeProto::STRING).set_s(value);
}

inline void set_ints(onnx::NodeProto& n, const char* name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& a = new_attribute(n, name, onnx::AttributeProto::INTS);
  for (int64_t v : values) a.add_ints(v);
}

}  // namespace onnxtrain
