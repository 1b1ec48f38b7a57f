// Types are exchanged in the file's words, then the loader infers and checks everything anew.
#include "onnx/in_double.hpp"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <set>
#include <string>

#include "onnx/message/load_converted.hpp"
#include "onnx/message/node_attributes.hpp"
#include "onnx/message/source.hpp"
#include "onnx/message/tensors.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {

namespace {

constexpr int64_t kDouble = onnx::TensorProto::DOUBLE;

bool narrower(int64_t type) {
  return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::FLOAT16 ||
         type == onnx::TensorProto::BFLOAT16;
}

class Widening {
 public:
  explicit Widening(const Model& m)
      : model_(m), context_{std::make_shared<ModelSource>("", LoadLimits{}), false} {}

  void run(onnx::ModelProto& m) {
    find_kept(m.graph());
    graph(*m.mutable_graph());
  }

 private:
  // Tensors that one of their readers does not take in double.
  void find_kept(const onnx::GraphProto& g) {
    for (const onnx::NodeProto& n : g.node()) {
      const auto opset = model_.opsets.find(n.domain() == "ai.onnx" ? "" : n.domain());
      const onnx::OpSchema* schema =
          opset == model_.opsets.end()
              ? nullptr
              : onnx::OpSchemaRegistry::Schema(n.op_type(), opset->second, opset->first);
      for (int k = 0; schema && k < n.input_size(); ++k)
        if (!takes_double(*schema, k)) kept_.insert(n.input(k));
      for (const onnx::AttributeProto& a : n.attribute())
        if (a.has_g()) find_kept(a.g());
    }
  }

  static bool takes_double(const onnx::OpSchema& schema, int k) {
    if (schema.inputs().empty()) return true;
    const auto& formal = schema.inputs()[std::min(size_t(k), schema.inputs().size() - 1)];
    for (const auto& t : formal.GetTypes())
      if (t->find("double") != std::string::npos) return true;
    // tensors of other kinds are not touched at all
    for (const auto& t : formal.GetTypes())
      if (t->find("float") != std::string::npos) return false;
    return true;
  }

  void tensor(onnx::TensorProto& p) {
    if (!narrower(p.data_type())) return;
    const Tensor t = read_tensor(p, context_);
    Tensor wide(DType::kDouble, t.shape());
    const std::vector<double> values = t.to_doubles();
    std::copy(values.begin(), values.end(), wide.as<double>());
    onnx::TensorProto out;
    out.set_name(p.name());
    write_tensor(wide, out);
    p = std::move(out);
  }

  void type(onnx::TypeProto& t) {
    if (t.has_tensor_type() && narrower(t.tensor_type().elem_type()))
      t.mutable_tensor_type()->set_elem_type(int(kDouble));
    if (t.has_sequence_type()) type(*t.mutable_sequence_type()->mutable_elem_type());
    if (t.has_optional_type()) type(*t.mutable_optional_type()->mutable_elem_type());
  }

  void node(onnx::NodeProto& n) {
    const bool constant = n.op_type() == "Constant";
    if (constant && n.output_size() > 0 && kept_.count(n.output(0)) != 0) return;
    if (constant) as_tensor(n);
    for (onnx::AttributeProto& a : *n.mutable_attribute()) {
      if (a.has_g()) graph(*a.mutable_g());
      if (a.has_t() && (constant || n.op_type() == "ConstantOfShape")) tensor(*a.mutable_t());
      if (names_a_type(a.name()) && narrower(a.i())) a.set_i(kDouble);
    }
    if (n.op_type() == "ConstantOfShape" && !find_attribute(n, "value")) zero(n);
  }

  static bool names_a_type(std::string_view attribute) {
    for (const char* x : {"to", "dtype", "output_datatype", "output_dtype", "stash_type",
                          "softmax_precision", "precision"})
      if (attribute == x) return true;
    return false;
  }

  // Constant with value_float or value_floats.
  static void as_tensor(onnx::NodeProto& n) {
    const onnx::AttributeProto* one = find_attribute(n, "value_float");
    const onnx::AttributeProto* many = find_attribute(n, "value_floats");
    if (!one && !many) return;
    onnx::TensorProto t;
    t.set_data_type(int(kDouble));
    if (many) t.add_dims(many->floats_size());
    if (one) t.add_double_data(one->f());
    if (many)
      for (float x : many->floats()) t.add_double_data(x);
    remove_attribute(n, "value_float");
    remove_attribute(n, "value_floats");
    *new_attribute(n, "value", onnx::AttributeProto::TENSOR).mutable_t() = std::move(t);
  }

  static void zero(onnx::NodeProto& n) {
    onnx::TensorProto t;
    t.set_data_type(int(kDouble));
    t.add_dims(1);
    t.add_double_data(0);
    *new_attribute(n, "value", onnx::AttributeProto::TENSOR).mutable_t() = std::move(t);
  }

  void graph(onnx::GraphProto& g) {
    for (onnx::NodeProto& n : *g.mutable_node()) node(n);
    for (onnx::TensorProto& t : *g.mutable_initializer())
      if (kept_.count(t.name()) == 0) tensor(t);
    for (auto* list : {g.mutable_input(), g.mutable_output()})
      for (onnx::ValueInfoProto& v : *list)
        if (kept_.count(v.name()) == 0) type(*v.mutable_type());
    g.clear_value_info();
  }

  const Model& model_;
  TensorContext context_;
  std::set<std::string> kept_;
};

}  // namespace

std::optional<Model> in_double(const Model& m, const OpTable& ops) {
  Model written = m;
  // functions are expanded here, in the file they are not
  if (m.source && m.source->proto.functions_size() > 0) written.edit_main();
  SaveOptions inference;
  inference.inference_only = true;
  onnx::ModelProto p;
  if (!p.ParseFromString(serialize_model(written, ops, inference))) return std::nullopt;
  if (written.main_generated()) p.clear_functions();
  if (p.graph().sparse_initializer_size() > 0) return std::nullopt;
  Widening(m).run(p);
  p.set_ir_version(std::max<int64_t>(p.ir_version(), 4));
  return load_converted(p, ops);
}

}  // namespace onnxtrain
