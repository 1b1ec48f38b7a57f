// Types and shapes of a node's outputs through libonnx's rules. What libonnx cannot tell, or tells
// by an exception, stays unknown: the engine works with concrete shapes later.
#include "onnx/defs/parser.h"
#include "onnx/defs/schema.h"
#include "onnx/message/libonnx_call.hpp"
#include "onnx/read/reader.hpp"
#include "onnx/shape_inference/implementation.h"

namespace onnxtrain {
namespace {

constexpr int64_t kMaxKnown = 4096;  // elements of a value that shape rules may look at

bool is_int(const TypeInfo& t) { return t.elem == DType::kInt64 || t.elem == DType::kInt32; }

}  // namespace

// Reads a subgraph when libonnx asks for its output types: at that moment the types of the
// subgraph's inputs are known. Read once; a second question gets the same answer.
class SubgraphInferencer : public onnx::GraphInferencer {
 public:
  SubgraphInferencer(GraphReader& reader, Scope& s, const onnx::GraphProto& p, GraphPtr& result)
      : reader_(reader), scope_(s), proto_(p), result_(result) {}

  std::vector<const onnx::TypeProto*> doInferencing(
      const std::vector<const onnx::TypeProto*>& input_types,
      const std::vector<const onnx::TensorProto*>&) override {
    if (!result_) {
      std::vector<TypeInfo> types;
      for (const auto* t : input_types) types.push_back(t ? read_type(*t) : TypeInfo{});
      result_ = reader_.read_subgraph(proto_, scope_, &types);
      types_.resize(result_->outputs.size());
      for (size_t i = 0; i < types_.size(); ++i)
        write_type(result_->value(result_->outputs[i]).type, types_[i]);
    }
    std::vector<const onnx::TypeProto*> out;
    for (const auto& t : types_) out.push_back(&t);
    return out;
  }

 private:
  GraphReader& reader_;
  Scope& scope_;
  const onnx::GraphProto& proto_;
  GraphPtr& result_;
  std::vector<onnx::TypeProto> types_;
};

namespace {

// What both of libonnx's contexts ask about a node's inputs.
template <class Context>
class NodeInputs : public Context {
 public:
  explicit NodeInputs(const NodeView& v, const Scope& s) : v_(v), types_(v.inputs.size()) {
    for (size_t i = 0; i < v.inputs.size(); ++i)
      if (v.inputs[i] != kNone) write_type(s.graph->value(v.inputs[i]).type, types_[i]);
  }
  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    return v_.attr(name);
  }
  size_t getNumInputs() const override { return v_.inputs.size(); }
  const onnx::TypeProto* getInputType(size_t i) const override {
    const onnx::TypeProto& t = types_.at(i);
    return t.value_case() == onnx::TypeProto::VALUE_NOT_SET ? nullptr : &t;
  }

 protected:
  const NodeView& v_;
  std::vector<onnx::TypeProto> types_;
};

class NodeInference : public NodeInputs<onnx::InferenceContext> {
 public:
  NodeInference(const NodeView& v, const Scope& s, std::vector<const Tensor*> known)
      : NodeInputs(v, s),
        known_(std::move(known)),
        data_(v.inputs.size()),
        partial_(v.inputs.size()),
        outputs_(size_t(v.proto->output_size())) {
    for (size_t i = 0; i < v.inputs.size(); ++i) {
      if (v.inputs[i] == kNone) continue;
      auto it = s.facts->partial.find(v.inputs[i]);
      if (it != s.facts->partial.end()) partial_[i] = &it->second;
    }
  }

  bool hasInput(size_t i) const override { return i < v_.inputs.size() && v_.inputs[i] != kNone; }
  const onnx::TensorProto* getInputData(size_t i) const override {
    const Tensor* t = known_.at(i);
    if (t == nullptr || t->size() > kMaxKnown) return nullptr;
    if (!data_[i]) {
      data_[i] = std::make_unique<onnx::TensorProto>();
      write_tensor(*t, *data_[i]);
    }
    return data_[i].get();
  }
  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(size_t i) const override { return partial_.at(i); }
  size_t getNumOutputs() const override { return outputs_.size(); }
  onnx::TypeProto* getOutputType(size_t i) override { return &outputs_.at(i); }
  bool hasOutput(size_t i) override {
    return i < outputs_.size() && !v_.proto->output(int(i)).empty();
  }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string& name) override {
    auto it = graphs.find(name);
    if (it == graphs.end()) throw std::runtime_error("no graph attribute " + name);
    return it->second.get();
  }

  std::vector<onnx::TypeProto>& outputs() { return outputs_; }
  std::map<std::string, std::unique_ptr<SubgraphInferencer>> graphs;

 private:
  std::vector<const Tensor*> known_;
  mutable std::vector<std::unique_ptr<onnx::TensorProto>> data_;
  std::vector<const onnx::TensorShapeProto*> partial_;
  std::vector<onnx::TypeProto> outputs_;
};

class DataPropagation : public NodeInputs<onnx::DataPropagationContext> {
 public:
  DataPropagation(const NodeView& v, const Scope& s, std::vector<const Tensor*> known,
                  const std::vector<ValueId>& outputs)
      : NodeInputs(v, s),
        facts_(*s.facts),
        known_(std::move(known)),
        out_(outputs),
        made_(v.inputs.size()),
        out_types_(outputs.size()) {
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] != kNone) write_type(s.graph->value(outputs[i]).type, out_types_[i]);
  }

  size_t getNumOutputs() const override { return out_types_.size(); }
  const onnx::TypeProto* getOutputType(size_t i) const override { return &out_types_.at(i); }
  const onnx::TensorShapeProto* getInputData(size_t i) override {
    const ValueId id = v_.inputs.at(i);
    if (id == kNone) return nullptr;
    if (auto it = facts_.partial.find(id); it != facts_.partial.end()) return &it->second;
    if (made_[i]) return made_[i].get();
    auto shape = std::make_unique<onnx::TensorShapeProto>();
    const Tensor* t = known_[i];
    if (t != nullptr && t->rank() <= 1 && t->size() <= kMaxKnown &&
        (t->dtype() == DType::kInt64 || t->dtype() == DType::kInt32)) {
      for (int64_t d : t->to_ints()) shape->add_dim()->set_dim_value(d);
    } else {
      const onnx::TypeProto& type = types_[i];
      if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return nullptr;
      const auto& dims = type.tensor_type().shape();
      if (dims.dim_size() != 1 || !dims.dim(0).has_dim_value() || dims.dim(0).dim_value() > 64)
        return nullptr;
      for (int64_t k = 0; k < dims.dim(0).dim_value(); ++k) shape->add_dim();
    }
    made_[i] = std::move(shape);
    return made_[i].get();
  }
  void addOutputData(size_t i, onnx::TensorShapeProto&& value) override {
    const ValueId id = out_.at(i);
    if (id != kNone && value.dim_size() <= kMaxKnown) facts_.partial[id] = std::move(value);
  }

 private:
  GraphFacts& facts_;
  std::vector<const Tensor*> known_;
  const std::vector<ValueId>& out_;
  std::vector<std::unique_ptr<onnx::TensorShapeProto>> made_;
  std::vector<onnx::TypeProto> out_types_;
};

// libonnx's rules trust arity, presence and kinds of attributes: true when they may be called.
bool safe_to_infer(const NodeView& v, const Scope& s) {
  bool has_graph = false;
  onnx::NodeProto node;
  node.set_op_type(v.proto->op_type());
  node.set_domain(v.domain);
  *node.mutable_output() = v.proto->output();
  for (size_t i = 0; i < v.inputs.size(); ++i)
    node.add_input(v.inputs[i] == kNone ? std::string() : v.proto->input(int(i)));
  for (const auto& [name, a] : v.attrs) {
    auto* copy = node.add_attribute();
    copy->set_name(name);
    copy->set_type(attribute_type(*a));
    has_graph = has_graph || a->has_g();
    // only what Verify looks at; tensors and graphs may be large
    switch (copy->type()) {
      case onnx::AttributeProto::INT:
        copy->set_i(a->i());
        break;
      case onnx::AttributeProto::FLOAT:
        copy->set_f(a->f());
        break;
      case onnx::AttributeProto::STRING:
        copy->set_s(a->s());
        break;
      case onnx::AttributeProto::TENSOR:
        copy->mutable_t();
        if (!a->has_t()) return false;
        break;
      case onnx::AttributeProto::GRAPH:
        copy->mutable_g();
        if (!a->has_g()) return false;
        break;
      case onnx::AttributeProto::SPARSE_TENSOR:
        copy->mutable_sparse_tensor();
        break;
      case onnx::AttributeProto::TYPE_PROTO:
        copy->mutable_tp();
        break;
      default:
        break;
    }
  }
  for (ValueId id : v.inputs)
    if (id != kNone && !has_graph && s.graph->value(id).type.kind == TypeInfo::Kind::kUnknown)
      return false;
  v.schema->Verify(node);
  return true;
}

}  // namespace

const Tensor* GraphReader::known_value(const Scope& s, ValueId v) const {
  if (auto it = s.facts->known.find(v); it != s.facts->known.end()) return &it->second;
  const ValueDef& def = s.graph->value(v);
  if (!def.constant.defined() || def.constant.size() > kMaxKnown) return nullptr;
  if (s.facts->overridable.count(v) != 0 || state_names.count(def.name) != 0) return nullptr;
  return &def.constant;
}

std::vector<TypeInfo> GraphReader::infer(const NodeView& v, Scope& s,
                                         std::map<std::string, GraphPtr>& graphs) {
  std::vector<TypeInfo> types(size_t(v.proto->output_size()));
  if (v.domain == kTrainingDomain && v.proto->op_type() == "Gradient") {
    for (size_t i = 0; i < types.size() && i < v.inputs.size(); ++i)
      if (v.inputs[i] != kNone) types[i] = s.graph->value(v.inputs[i]).type;
    return types;
  }
  const Op* op = find_op(v.domain, v.proto->op_type(), v.version).op;
  const bool by_text = v.schema == nullptr && op != nullptr && op->function != nullptr;
  if (v.schema == nullptr && !by_text) return types;
  std::vector<const Tensor*> known;
  for (ValueId id : v.inputs) known.push_back(id == kNone ? nullptr : known_value(s, id));
  NodeInference context(v, s, std::move(known));
  for (const auto& [name, a] : v.attrs)
    if (a->has_g())
      context.graphs[name] = std::make_unique<SubgraphInferencer>(*this, s, a->g(), graphs[name]);
  // where libonnx complains, unknown stays unknown; an Error comes from reading a subgraph
  libonnx_accepts([&] {
    if (by_text) {
      if (const onnx::FunctionProto* f = own_function(*op))
        onnx::shape_inference::InferShapeForFunctionNode(*f, onnx::OpSchemaRegistry::Instance(),
                                                         context, onnx::ShapeInferenceOptions(),
                                                         own_function_map());
    } else if (!safe_to_infer(v, s)) {
      return;
    } else if (v.schema->has_type_and_shape_inference_function()) {
      v.schema->GetTypeAndShapeInferenceFunction()(context);
    } else if (v.schema->HasFunction()) {
      onnx::shape_inference::InferShapeForFunctionNode(*v.schema->GetFunction(),
                                                       onnx::OpSchemaRegistry::Instance(), context);
    }
  });
  for (size_t i = 0; i < types.size(); ++i) types[i] = read_type(context.outputs()[i]);
  return types;
}

void GraphReader::propagate(const NodeView& v, Scope& s, const std::vector<ValueId>& outputs) {
  if (v.schema == nullptr || !v.schema->has_data_propagation_function() || outputs.empty()) return;
  if (outputs[0] == kNone || !is_int(s.graph->value(outputs[0]).type)) return;
  std::vector<const Tensor*> known;
  for (ValueId id : v.inputs) known.push_back(id == kNone ? nullptr : known_value(s, id));
  DataPropagation context(v, s, std::move(known), outputs);
  // where libonnx complains, nothing is known of this value
  libonnx_accepts([&] { v.schema->GetDataPropagationFunction()(context); });
}

const onnx::FunctionProto* GraphReader::own_function(const Op& op) {
  auto [it, fresh] = own_functions_.try_emplace(&op);
  if (fresh) {
    auto f = std::make_unique<onnx::FunctionProto>();
    if (onnx::OnnxParser::Parse(*f, op.function).IsOK()) it->second = std::move(f);
  }
  return it->second.get();
}

// Bodies call each other: libonnx looks them up by "domain:name".
const std::unordered_map<std::string, const onnx::FunctionProto*>& GraphReader::own_function_map() {
  if (own_map_.empty())
    for (const Op* op : ops_.all())
      if (op->function != nullptr)
        if (const onnx::FunctionProto* f = own_function(*op))
          own_map_.emplace(cat(op->domain, ":", op->name), f);
  return own_map_;
}

}  // namespace onnxtrain
