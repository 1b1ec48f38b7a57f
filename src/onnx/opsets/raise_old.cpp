// Opsets 1 to 6 in the words of opset 7.
#include "onnx/opsets/raise_old.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "onnx/message/node_attributes.hpp"

namespace onnxtrain {

namespace {

using Proto = onnx::NodeProto;

bool is_any(const Proto& n, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), n.op_type()) != ops.end();
}

class Rewriter {
 public:
  Rewriter(onnx::GraphProto& g, const Graph& types, int from) : g_(g), types_(types), from_(from) {}

  bool run() {
    for (Proto n : g_.node()) {  // a copy: what it needs before itself goes first
      if (!rewrite(n)) return false;
      made_.push_back(std::move(n));
    }
    g_.clear_node();
    for (Proto& n : made_) *g_.add_node() = std::move(n);
    return true;
  }

 private:
  bool rewrite(Proto& n) {
    if (!n.domain().empty() && n.domain() != "ai.onnx") return true;
    for (const onnx::AttributeProto& a : n.attribute())
      if (a.has_g()) return false;  // a body: its ranks are not known here
    remove_attribute(n, "consumed_inputs");
    if (is_any(n,
               {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Less", "Greater"}))
      return broadcast(n);
    if (n.op_type() == "PRelu") return slopes(n);
    if (n.op_type() == "Gemm") remove_attribute(n, "broadcast");
    if (is_any(n, {"LSTM", "GRU", "RNN"})) remove_attribute(n, "output_sequence");
    if (n.op_type() == "Dropout") remove_attribute(n, "is_test");
    if (n.op_type() == "BatchNormalization") {
      remove_attribute(n, "is_test");
      return first_output_only(n);
    }
    if (n.op_type() == "Cast") return from_ >= 6 || cast(n);
    if (n.op_type() == "Tile") return from_ >= 6;
    if (n.op_type() == "Concat" && from_ < 4 && !find_attribute(n, "axis")) set_int(n, "axis", 1);
    if (n.op_type() == "Reshape" && from_ < 5) return reshape(n);
    if (n.op_type() == "Pad" && from_ < 2) return pad(n);
    if (is_any(n, {"Split"}) && from_ < 2) return n.input_size() < 2;
    if (is_any(n, {"LpPool", "GlobalLpPool"})) return from_ >= 2;
    return n.op_type() != "Upsample";
  }

  // Rank of a tensor, or -1.
  int64_t rank(const std::string& name) const {
    ValueId v = types_.find(name);
    if (v == kNone || !types_.value(v).type.is_tensor() || !types_.value(v).type.shape) return -1;
    return int64_t(types_.value(v).type.shape->size());
  }

  // Input `k` with sizes of 1 at `axes`.
  void widen(Proto& n, int k, const std::vector<int64_t>& axes) {
    Proto& u = made_.emplace_back();
    u.set_op_type("Unsqueeze");
    u.add_input(n.input(k));
    u.add_output(fresh(n.input(k) + "_wide"));
    set_ints(u, "axes", axes);
    n.set_input(k, u.output(0));
  }

  std::string fresh(const std::string& hint) {
    std::string name = hint;
    for (int k = 2; types_.find(name) != kNone || !given_.insert(name).second; ++k)
      name = hint + "_" + std::to_string(k);
    return name;
  }

  // The second operand stood along the axes of the first from `axis` on.
  bool broadcast(Proto& n) {
    const onnx::AttributeProto* said = find_attribute(n, "broadcast");
    const onnx::AttributeProto* axis = find_attribute(n, "axis");
    if (said && said->i() != 0 && axis) {
      const int64_t a = rank(n.input(0)), b = rank(n.input(1));
      if (a < 0 || b < 0) return false;
      const int64_t behind = a - (axis->i() < 0 ? axis->i() + a : axis->i()) - b;
      if (behind < 0) return false;
      std::vector<int64_t> axes;
      for (int64_t k = 0; k < behind; ++k) axes.push_back(b + k);
      if (!axes.empty()) widen(n, 1, axes);
    }
    remove_attribute(n, "broadcast");
    remove_attribute(n, "axis");
    return true;
  }

  // One slope per channel: channels are axis 1, newer opsets align at the end.
  bool slopes(Proto& n) {
    const ValueId v = types_.find(n.input(1));
    const bool known = v != kNone && types_.value(v).type.concrete();
    if (known && num_elements(types_.value(v).type.concrete_shape()) == 1) return true;
    const int64_t a = rank(n.input(0)), b = rank(n.input(1));
    if (a < 2 || b != 1) return false;
    std::vector<int64_t> axes;
    for (int64_t k = 2; k < a; ++k) axes.push_back(k - 1);
    if (!axes.empty()) widen(n, 1, axes);
    return true;
  }

  // The statistics of training are assigned elsewhere.
  bool first_output_only(Proto& n) {
    for (int k = 1; k < n.output_size(); ++k) {
      for (const Proto& other : g_.node())
        for (const std::string& in : other.input())
          if (in == n.output(k) && !in.empty()) return false;
      for (const auto& out : g_.output())
        if (out.name() == n.output(k)) return false;
    }
    n.mutable_output()->DeleteSubrange(1, n.output_size() - 1);
    return true;
  }

  bool cast(Proto& n) {
    const onnx::AttributeProto* to = find_attribute(n, "to");
    onnx::TensorProto::DataType type{};
    if (!to || !onnx::TensorProto::DataType_Parse(to->s(), &type)) return false;
    set_int(n, "to", type);
    return true;
  }

  bool reshape(Proto& n) {
    const onnx::AttributeProto* shape = find_attribute(n, "shape");
    if (!shape) return false;
    Proto& c = made_.emplace_back();
    c.set_op_type("Constant");
    c.add_output(fresh(n.output(0) + "_shape"));
    onnx::AttributeProto* a = c.add_attribute();
    a->set_name("value");
    a->set_type(onnx::AttributeProto::TENSOR);
    a->mutable_t()->set_data_type(onnx::TensorProto::INT64);
    a->mutable_t()->add_dims(shape->ints_size());
    for (int64_t v : shape->ints()) a->mutable_t()->add_int64_data(v);
    n.add_input(c.output(0));
    remove_attribute(n, "shape");
    return true;
  }

  bool pad(Proto& n) {
    const onnx::AttributeProto* sizes = find_attribute(n, "paddings");
    if (!sizes) return false;
    std::vector<int64_t> values(sizes->ints().begin(), sizes->ints().end());
    remove_attribute(n, "paddings");
    set_ints(n, "pads", values);
    return true;
  }

  onnx::GraphProto& g_;
  const Graph& types_;
  int from_;
  std::vector<Proto> made_;
  std::set<std::string> given_;
};

}  // namespace

bool spell_as_opset_7(onnx::GraphProto& g, const Graph& types, int from) {
  return Rewriter(g, types, from).run();
}

}  // namespace onnxtrain
