// Tensors that are still those of the file are copied from its message; others are written anew.
#include "onnx/write/copy_graph.hpp"

#include <unordered_map>

#include "onnx/message/tensors.hpp"

namespace onnxtrain {
namespace {

using ValueMap = std::unordered_map<std::string, const ValueDef*>;

ValueMap constants_by_name(const Graph& g) {
  std::vector<char> is_captured(g.values.size(), 0);
  for (const auto& c : g.captures) is_captured[size_t(c.inner)] = 1;
  ValueMap map;
  for (size_t v = 0; v < g.values.size(); ++v)
    if (g.values[v].constant.defined() && !is_captured[v])
      map.emplace(g.values[v].name, &g.values[v]);
  return map;
}

// Where the tensor's data was when the file was loaded.
const void* original_data(const ModelSource& source, const onnx::TensorProto& p) {
  if (auto it = source.converted.find(&p); it != source.converted.end()) return it->second.data();
  if (p.has_raw_data() && !p.raw_data().empty()) return p.raw_data().data();
  if (p.float_data_size() > 0) return p.float_data().data();
  if (p.double_data_size() > 0) return p.double_data().data();
  if (p.int64_data_size() > 0) return p.int64_data().data();
  if (p.uint64_data_size() > 0) return p.uint64_data().data();
  if (p.int32_data_size() > 0) return p.int32_data().data();
  return nullptr;
}

bool changed(const ModelSource& source, const onnx::TensorProto& p, const ValueDef* now) {
  if (now == nullptr || now->constant.size() == 0) return false;
  if (is_lifted(p)) return true;  // only the value has the data
  return now->constant.data() != original_data(source, p);
}

void set_data(TensorOut& out, const Tensor& t) {
  if (t.dtype() != DType::kString && packed_bytes_size(t) == t.bytes()) {
    write_tensor(Tensor(t.dtype(), {0}), out.proto);  // clears every data field
    out.proto.clear_raw_data();
    out.proto.clear_dims();
    for (int64_t d : t.shape()) out.proto.add_dims(d);
    out.tensor = t;
  } else {
    write_tensor(t, out.proto);
  }
}

// Data that was lifted and that no value of the graph holds.
void embed_lifted(const ModelSource& source, const onnx::TensorProto& p, onnx::TensorProto& to) {
  const ExternalFiles::Range r = source.external.lifted(lifted_number(p), p.name());
  to = p;
  to.clear_external_data();
  to.clear_data_location();
  to.set_raw_data(r.data, r.size);
}

TensorOut copy_tensor(const ModelSource& source, const onnx::TensorProto& p, const ValueDef* now) {
  TensorOut out;
  out.was_external = p.data_location() == onnx::TensorProto_DataLocation_EXTERNAL && !is_lifted(p);
  const bool has_raw = p.has_raw_data() && p.raw_data().size() >= 1024;
  if (has_raw || changed(source, p, now)) {  // all but the data
    out.proto.set_name(p.name());
    if (p.has_data_type()) out.proto.set_data_type(p.data_type());
    *out.proto.mutable_dims() = p.dims();
    if (p.has_doc_string()) out.proto.set_doc_string(p.doc_string());
    *out.proto.mutable_metadata_props() = p.metadata_props();
    if (p.has_data_location() && !is_lifted(p)) out.proto.set_data_location(p.data_location());
    out.proto.mutable_unknown_fields()->MergeFrom(p.unknown_fields());
  }
  if (changed(source, p, now))
    set_data(out, now->constant);
  else if (is_lifted(p)) {
    embed_lifted(source, p, out.proto);
  } else if (out.was_external) {  // the new file stands elsewhere: bring the data along
    out.proto = p;
    auto it = source.converted.find(&p);
    set_data(out, it != source.converted.end() ? it->second : read_external(p, source));
  } else if (has_raw)
    out.raw = p.raw_data();
  else
    out.proto = p;
  return out;
}

// Tensors of Constant nodes are initializers for the user; a new value goes back into the node.
void update_constants(const ModelSource& source, const onnx::GraphProto& from, const ValueMap& now,
                      onnx::GraphProto& to) {
  for (int i = 0; i < from.node_size(); ++i) {
    const onnx::NodeProto& n = from.node(i);
    if (n.op_type() != "Constant" || !normal_domain(n.domain()).empty() || n.output_size() != 1)
      continue;
    auto it = now.find(n.output(0));
    if (it == now.end()) continue;
    for (int k = 0; k < n.attribute_size(); ++k)
      if (n.attribute(k).has_t() && changed(source, n.attribute(k).t(), it->second))
        write_tensor(it->second->constant, *to.mutable_node(i)->mutable_attribute(k)->mutable_t());
  }
}

}  // namespace

void copy_graph(const ModelSource& source, const onnx::GraphProto& p, const Graph& g,
                const std::unordered_set<std::string>& state, GraphOut& out) {
  const ValueMap now = constants_by_name(g);
  auto find = [&](const std::string& name) {
    auto it = now.find(name);
    return it == now.end() ? nullptr : it->second;
  };
  onnx::GraphProto& q = out.proto;
  if (p.has_name()) q.set_name(p.name());
  if (p.has_doc_string()) q.set_doc_string(p.doc_string());
  *q.mutable_node() = p.node();
  *q.mutable_input() = p.input();
  *q.mutable_output() = p.output();
  *q.mutable_value_info() = p.value_info();
  *q.mutable_quantization_annotation() = p.quantization_annotation();
  *q.mutable_metadata_props() = p.metadata_props();
  q.mutable_unknown_fields()->MergeFrom(p.unknown_fields());
  for (const auto& t : p.initializer())
    out.tensors.push_back(copy_tensor(source, t, find(t.name())));
  for (const auto& t : p.sparse_initializer()) {
    const ValueDef* value = find(t.values().name());
    auto it = source.densified.find(&t);
    const bool same = value == nullptr || it == source.densified.end() ||
                      value->constant.data() == it->second.data();
    if (same && (value == nullptr || state.count(t.values().name()) == 0)) {
      *q.add_sparse_initializer() = t;
      continue;
    }
    TensorOut dense;  // what is trained is not sparse any more
    dense.proto.set_name(t.values().name());
    set_data(dense, value->constant);
    out.tensors.push_back(std::move(dense));
  }
  update_constants(source, p, now, q);
}

}  // namespace onnxtrain
