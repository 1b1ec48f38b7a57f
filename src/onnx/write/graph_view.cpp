// Model -> GraphView. The model is put together as for a file, but its tensors stay where they are;
// the reader then expands functions as the caller wants them.
#include "onnx/graph_view.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "onnx/message/source.hpp"
#include "onnx/read/reader.hpp"
#include "onnx/write/writer.hpp"

namespace onnxtrain {
namespace {

using nlohmann::json;

// ------------------------------------------------------------------ the model once more

// Data stands as "lifted" tensors: neither copied nor written.
class Reassembled {
 public:
  explicit Reassembled(const Model& m) : owner_(m.source) {}

  void graph(GraphOut& from, onnx::GraphProto& to) {
    to.Swap(&from.proto);
    for (TensorOut& t : from.tensors) {
      onnx::TensorProto& p = *to.add_initializer();
      p.Swap(&t.proto);
      if (t.tensor.defined() && t.tensor.bytes() > 0)
        lift(p, std::shared_ptr<void>(t.tensor.owner(), t.tensor.data()), t.tensor.bytes());
      else if (!t.raw.empty())
        lift(p, std::shared_ptr<void>(owner_, const_cast<char*>(t.raw.data())), t.raw.size());
    }
  }
  std::vector<LiftedTensor> lifted;

 private:
  void lift(onnx::TensorProto& p, std::shared_ptr<void> data, size_t bytes) {
    p.clear_external_data();
    p.set_data_location(onnx::TensorProto_DataLocation_EXTERNAL);
    auto* kv = p.add_external_data();
    kv->set_key("location");
    kv->set_value(lifted_location(lifted.size()));
    lifted.push_back({std::move(data), bytes});
  }
  std::shared_ptr<const ModelSource> owner_;
};

std::shared_ptr<ModelSource> reassemble(const Model& m, const OpTable& ops) {
  FileParts parts = make_parts(m, ops, {});
  auto source = std::make_shared<ModelSource>("", LoadLimits{});
  onnx::ModelProto& p = source->proto;
  p.Swap(&parts.head);
  Reassembled made(m);
  made.graph(parts.graph, *p.mutable_graph());
  for (FileParts::Training& t : parts.training) {
    onnx::TrainingInfoProto& to = *p.add_training_info();
    to.Swap(&t.bindings);
    if (t.has_initialization) made.graph(t.initialization, *to.mutable_initialization());
    if (t.has_algorithm) made.graph(t.algorithm, *to.mutable_algorithm());
  }
  source->external.set_lifted(made.lifted);
  return source;
}

// ------------------------------------------------------------------ JSON

json number(double x) {  // JSON has no infinities
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

// Other texts may be any bytes, which JSON cannot say: they travel as tensors.
bool is_ascii(const std::string& s) {
  return std::all_of(s.begin(), s.end(), [](unsigned char c) { return c < 0x80; });
}

json type_json(const TypeInfo& t) {
  json j{{"dtype", int(t.elem)}};
  if (!t.shape) return j;
  json dims = json::array();
  for (const Dim& d : *t.shape)
    dims.push_back(d.known() ? json(d.value) : d.symbol.empty() ? json(nullptr) : json(d.symbol));
  j["shape"] = std::move(dims);
  return j;
}

class Describe {
 public:
  Describe(GraphView& out, const onnx::ModelProto& p) : out_(out) {
    note(p.graph());
    for (const auto& t : p.training_info()) note(t.algorithm());
  }

  json graph(const Graph& g) {
    std::vector<char> is_capture(g.values.size(), 0);
    for (const auto& c : g.captures) is_capture[size_t(c.inner)] = 1;
    json types = json::object(), constants = json::array(), captures = json::array();
    for (size_t v = 0; v < g.values.size(); ++v) {
      const ValueDef& d = g.values[v];
      if (is_capture[v])
        captures.push_back(d.name);
      else if (d.constant.defined())
        constants.push_back(
            {{"name", d.name}, {"tensor", keep(d.constant)}, {"initializer", d.initializer}});
      if (d.type.is_tensor()) types[d.name] = type_json(d.type);
    }
    json nodes = json::array();
    for (const Node& n : g.nodes) nodes.push_back(node(g, n));
    return {{"name", g.name},
            {"inputs", names(g, g.inputs)},
            {"outputs", names(g, g.outputs)},
            {"captures", std::move(captures)},
            {"constants", std::move(constants)},
            {"types", std::move(types)},
            {"nodes", std::move(nodes)}};
  }

 private:
  // Metadata of nodes is not part of the IR: it is found by what they make.
  void note(const onnx::GraphProto& g) {
    for (const onnx::NodeProto& n : g.node()) {
      if (n.output_size() > 0 && n.metadata_props_size() > 0) noted_.emplace(n.output(0), &n);
      for (const auto& a : n.attribute())
        if (a.has_g()) note(a.g());
    }
  }
  size_t keep(const Tensor& t) {
    out_.tensors.push_back(t);
    return out_.tensors.size() - 1;
  }
  static json names(const Graph& g, const std::vector<ValueId>& values) {
    json list = json::array();
    for (ValueId v : values) list.push_back(v == kNone ? "" : g.value_name(v));
    return list;
  }
  json node(const Graph& g, const Node& n) {
    json attributes = json::object();
    for (const auto& [name, a] : n.attrs) attributes[name] = attribute(a);
    json j{{"op", n.op},
           {"domain", n.domain},
           {"version", n.version},
           {"name", n.name},
           {"inputs", names(g, n.inputs)},
           {"outputs", names(g, n.outputs)},
           {"attributes", std::move(attributes)}};
    auto it = n.outputs.empty() || n.outputs[0] == kNone ? noted_.end()
                                                         : noted_.find(g.value_name(n.outputs[0]));
    if (it != noted_.end() && it->second->op_type() == n.op)
      for (const auto& kv : it->second->metadata_props()) j["metadata"][kv.key()] = kv.value();
    return j;
  }
  json attribute(const Attr& a) {
    if (auto* i = std::get_if<int64_t>(&a)) return {{"int", *i}};
    if (auto* f = std::get_if<float>(&a)) return {{"float", number(double(*f))}};
    if (auto* s = std::get_if<std::string>(&a)) {
      if (is_ascii(*s)) return {{"string", *s}};
      return {{"text", keep(Tensor::scalar<std::string>(*s))}};
    }
    if (auto* t = std::get_if<Tensor>(&a)) return {{"tensor", keep(*t)}};
    if (auto* g = std::get_if<GraphPtr>(&a)) return {{"graph", graph(**g)}};
    if (auto* t = std::get_if<TypeInfo>(&a)) return {{"type", to_string(*t)}};
    if (auto* v = std::get_if<std::vector<int64_t>>(&a)) return {{"ints", *v}};
    if (auto* v = std::get_if<std::vector<std::string>>(&a)) {
      if (std::all_of(v->begin(), v->end(), is_ascii)) return {{"strings", *v}};
      return {{"text", keep(Tensor::vector<std::string>(*v))}};
    }
    json list = json::array();
    if (auto* v = std::get_if<std::vector<float>>(&a)) {
      for (float x : *v) list.push_back(number(double(x)));
      return {{"floats", std::move(list)}};
    }
    if (auto* v = std::get_if<std::vector<Tensor>>(&a)) {
      for (const Tensor& t : *v) list.push_back(keep(t));
      return {{"tensors", std::move(list)}};
    }
    const SparseTensor& s = *std::get<std::shared_ptr<SparseTensor>>(a);
    return {{"sparse", {{"values", keep(s.values)}, {"indices", keep(s.indices)}}},
            {"shape", std::vector<int64_t>(s.shape.begin(), s.shape.end())}};
  }

  GraphView& out_;
  std::unordered_map<std::string, const onnx::NodeProto*> noted_;
};

json bindings_json(const std::vector<TrainingStep::Binding>& list) {
  json j = json::array();
  for (const auto& [key, value] : list) j.push_back({key, value});
  return j;
}

json functions_json(const onnx::ModelProto& p) {
  json list = json::array();
  for (const auto& f : p.functions())
    list.push_back({{"domain", normal_domain(f.domain())},
                    {"name", f.name()},
                    {"inputs", std::vector<std::string>(f.input().begin(), f.input().end())},
                    {"outputs", std::vector<std::string>(f.output().begin(), f.output().end())}});
  return list;
}

}  // namespace

GraphView view_model(
    const Model& m, const OpTable& ops,
    const std::function<bool(const std::string& domain, const std::string& op)>& keep) {
  const std::shared_ptr<ModelSource> source = reassemble(m, ops);
  LoadOptions o;
  o.check = false;
  o.keep_unknown = true;
  o.keep = keep;
  const Model read = load_source(source, ops, o);
  GraphView out;
  Describe describe(out, source->proto);
  json j{{"ir_version", read.ir_version}, {"metadata", read.metadata}, {"opsets", json::object()}};
  for (const auto& [domain, version] : read.opsets) j["opsets"][domain] = version;
  j["functions"] = functions_json(source->proto);
  j["main"] = describe.graph(read.main);
  j["training"] = json::array();
  for (const TrainingStep& t : read.training)
    j["training"].push_back({{"initialization", describe.graph(t.initialization)},
                             {"algorithm", describe.graph(t.algorithm)},
                             {"initialization_binding", bindings_json(t.initialization_binding)},
                             {"update_binding", bindings_json(t.update_binding)}});
  out.json = j.dump(-1, ' ', false, json::error_handler_t::replace);  // names may be no UTF-8
  return out;
}

}  // namespace onnxtrain
