// Graph -> GraphProto: numbers become names again, captures by the name of what they capture.
#include <algorithm>

#include "onnx/message/tensors.hpp"
#include "onnx/write/writer.hpp"

namespace onnxtrain {
namespace {

constexpr size_t kSplitBytes = 1024;  // smaller tensors stand in the message

std::vector<char> captured(const Graph& g) {
  std::vector<char> is(g.values.size(), 0);
  for (const auto& c : g.captures) is[size_t(c.inner)] = 1;
  return is;
}

// Constants that the file needs: read by something, an input's default, or asked for by name.
std::vector<char> needed_constants(const Graph& g, const std::unordered_set<std::string>& keep) {
  std::vector<char> need(g.values.size(), 0);
  for (const Node& n : g.nodes)
    for (ValueId v : g.reads(n)) need[size_t(v)] = 1;
  for (ValueId v : g.outputs) need[size_t(v)] = 1;
  for (ValueId v : g.inputs) need[size_t(v)] = 1;
  for (size_t i = 0; i < g.values.size(); ++i)
    if (!g.values[i].state.empty() || keep.count(g.values[i].name) != 0) need[i] = 1;
  return need;
}

void write_value_info(const std::string& name, const TypeInfo& t, onnx::ValueInfoProto& p) {
  p.set_name(name);
  if (t.kind != TypeInfo::Kind::kUnknown) write_type(t, *p.mutable_type());
}

}  // namespace

void GraphWriter::name_values(const Graph& g, const std::vector<std::string>* outer,
                              std::unordered_set<std::string>& taken,
                              std::vector<std::string>& names) {
  names.assign(g.values.size(), {});
  std::vector<char> done(g.values.size(), 0);
  for (const auto& c : g.captures) {
    OT_ASSERT(outer != nullptr);
    names[size_t(c.inner)] = (*outer)[size_t(c.outer)];
    done[size_t(c.inner)] = 1;
  }
  auto give = [&](size_t v) {
    if (done[v]) return;
    done[v] = 1;
    const std::string base = g.values[v].name.empty() ? "value" : g.values[v].name;
    names[v] = base;
    for (int k = 1; !taken.insert(names[v]).second; ++k) names[v] = cat(base, "_", k);
  };
  // what people and bindings know by name comes first
  for (ValueId v : g.inputs) give(size_t(v));
  for (ValueId v : g.outputs) give(size_t(v));
  for (size_t v = 0; v < g.values.size(); ++v)
    if (!g.values[v].state.empty()) give(v);
  for (size_t v = 0; v < g.values.size(); ++v) give(v);
}

void GraphWriter::write(const Graph& g, const std::vector<std::string>* outer,
                        std::unordered_set<std::string>& taken, GraphOut& out,
                        std::vector<std::string>& names, bool split_tensors,
                        const std::unordered_set<std::string>& keep) {
  name_values(g, outer, taken, names);
  onnx::GraphProto& p = out.proto;
  p.set_name(g.name.empty() ? "graph" : g.name);
  for (ValueId v : g.inputs) write_value_info(names[size_t(v)], g.value(v).type, *p.add_input());
  std::vector<char> is_output(g.values.size(), 0);
  for (ValueId v : g.outputs) {
    write_value_info(names[size_t(v)], g.value(v).type, *p.add_output());
    is_output[size_t(v)] = 1;
  }
  const std::vector<char> is_captured = captured(g), need = needed_constants(g, keep);
  for (size_t v = 0; v < g.values.size(); ++v) {
    const ValueDef& def = g.values[v];
    used_.min_ir = std::max(used_.min_ir, ir_for_dtype(def.type.elem));
    if (def.constant.defined() && !is_captured[v] && need[v] && def.producer < 0) {
      const Tensor& t = def.constant;
      used_.min_ir = std::max(used_.min_ir, 4);  // before, an initializer had to be an input too
      if (split_tensors && t.bytes() >= kSplitBytes && t.dtype() != DType::kString &&
          packed_bytes_size(t) == t.bytes()) {
        TensorOut o;
        o.proto.set_name(names[v]);
        o.proto.set_data_type(int(t.dtype()));
        for (int64_t d : t.shape()) o.proto.add_dims(d);
        o.tensor = t;
        out.tensors.push_back(std::move(o));
      } else {
        TensorOut o;
        o.proto.set_name(names[v]);
        write_tensor(t, o.proto);
        if (split_tensors)
          out.tensors.push_back(std::move(o));
        else
          *p.add_initializer() = std::move(o.proto);
      }
    } else if (def.producer >= 0 && !is_output[v] && def.type.kind != TypeInfo::Kind::kUnknown) {
      write_value_info(names[v], def.type, *p.add_value_info());
    }
  }
  for (const Node& n : g.nodes) write_node(g, n, names, taken, *p.add_node());
}

void GraphWriter::write_node(const Graph& g, const Node& n, const std::vector<std::string>& names,
                             std::unordered_set<std::string>& taken, onnx::NodeProto& p) {
  used_.ops[n.domain][n.op].insert(n.version);
  p.set_op_type(n.op);
  if (!n.domain.empty()) p.set_domain(n.domain);
  if (!n.name.empty()) p.set_name(n.name);
  auto count = [](const std::vector<ValueId>& list) {  // omitted ones at the end are left out
    size_t k = list.size();
    while (k > 0 && list[k - 1] == kNone) --k;
    return k;
  };
  for (size_t i = 0; i < count(n.inputs); ++i)
    p.add_input(n.inputs[i] == kNone ? std::string() : names[size_t(n.inputs[i])]);
  for (size_t i = 0; i < count(n.outputs); ++i)
    p.add_output(n.outputs[i] == kNone ? std::string() : names[size_t(n.outputs[i])]);
  for (const auto& [key, a] : n.attrs) write_attr(key, a, names, taken, *p.add_attribute());
  if (!n.is("Gradient", kTrainingDomain)) return;
  // its strings are names of values of this graph: write them as they are written
  auto written = [&](const std::string& name) {
    const ValueId v = g.find(name);
    return v == kNone ? name : names[size_t(v)];
  };
  for (auto& a : *p.mutable_attribute()) {
    if (a.name() == "y") a.set_s(written(a.s()));
    if (a.name() == "xs" || a.name() == "zs")
      for (auto& s : *a.mutable_strings()) s = written(s);
  }
}

void GraphWriter::write_attr(const std::string& name, const Attr& a,
                             const std::vector<std::string>& names,
                             std::unordered_set<std::string>& taken, onnx::AttributeProto& p) {
  using P = onnx::AttributeProto;
  p.set_name(name);
  if (auto* i = std::get_if<int64_t>(&a)) {
    p.set_type(P::INT);
    p.set_i(*i);
  } else if (auto* f = std::get_if<float>(&a)) {
    p.set_type(P::FLOAT);
    p.set_f(*f);
  } else if (auto* s = std::get_if<std::string>(&a)) {
    p.set_type(P::STRING);
    p.set_s(*s);
  } else if (auto* t = std::get_if<Tensor>(&a)) {
    p.set_type(P::TENSOR);
    write_tensor(*t, *p.mutable_t());
  } else if (auto* g = std::get_if<GraphPtr>(&a)) {
    p.set_type(P::GRAPH);
    GraphOut out;
    std::vector<std::string> inner;
    write(**g, &names, taken, out, inner, false, {});
    // sibling subgraphs (then and else) may use the same names
    const std::vector<char> from_outside = captured(**g);
    for (size_t v = 0; v < inner.size(); ++v)
      if (!from_outside[v]) taken.erase(inner[v]);
    *p.mutable_g() = std::move(out.proto);
  } else if (auto* type = std::get_if<TypeInfo>(&a)) {
    p.set_type(P::TYPE_PROTO);
    write_type(*type, *p.mutable_tp());
  } else if (auto* is = std::get_if<std::vector<int64_t>>(&a)) {
    p.set_type(P::INTS);
    p.mutable_ints()->Add(is->begin(), is->end());
  } else if (auto* fs = std::get_if<std::vector<float>>(&a)) {
    p.set_type(P::FLOATS);
    p.mutable_floats()->Add(fs->begin(), fs->end());
  } else if (auto* ss = std::get_if<std::vector<std::string>>(&a)) {
    p.set_type(P::STRINGS);
    for (const auto& x : *ss) p.add_strings(x);
  } else if (auto* ts = std::get_if<std::vector<Tensor>>(&a)) {
    p.set_type(P::TENSORS);
    for (const auto& x : *ts) write_tensor(x, *p.add_tensors());
  } else if (auto* sp = std::get_if<std::shared_ptr<SparseTensor>>(&a)) {
    p.set_type(P::SPARSE_TENSOR);
    auto* st = p.mutable_sparse_tensor();
    write_tensor((*sp)->values, *st->mutable_values());
    write_tensor((*sp)->indices, *st->mutable_indices());
    for (int64_t d : (*sp)->shape) st->add_dims(d);
  }
}

}  // namespace onnxtrain
