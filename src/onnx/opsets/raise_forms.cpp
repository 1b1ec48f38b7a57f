// Old forms in the words of opset 17; bodies are taken along.
#include "onnx/opsets/raise_forms.hpp"

#include <set>
#include <string>
#include <vector>

#include "onnx/message/node_attributes.hpp"

namespace onnxtrain {

namespace {

constexpr char kHidden[] = "onnxtrain_scan8";

bool is_standard(const onnx::NodeProto& n) { return n.domain().empty() || n.domain() == "ai.onnx"; }

void collect(const onnx::GraphProto& g, std::set<std::string>& names) {
  for (const auto& v : g.input()) names.insert(v.name());
  for (const auto& v : g.output()) names.insert(v.name());
  for (const auto& t : g.initializer()) names.insert(t.name());
  for (const auto& n : g.node()) {
    names.insert(n.output().begin(), n.output().end());
    for (const auto& a : n.attribute())
      if (a.has_g()) collect(a.g(), names);
  }
}

class Teller {
 public:
  Teller(onnx::GraphProto& g, int from) : from_(from) { collect(g, taken_); }

  void graph(onnx::GraphProto& g) {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> old;
    old.Swap(g.mutable_node());
    for (onnx::NodeProto& n : old) {
      for (onnx::AttributeProto& a : *n.mutable_attribute())
        if (a.has_g()) graph(*a.mutable_g());
      if (find_attribute(n, kHidden)) {
        scan(g, n);
      } else if (n.op_type() == "Hardmax" && is_standard(n) && from_ < 13) {
        hardmax(g, n);
      } else {
        if (n.op_type() == "Resize" && is_standard(n) && from_ < 11) {
          set_string(n, "coordinate_transformation_mode", "asymmetric");
          set_string(n, "nearest_mode", "floor");
        }
        *g.add_node() = std::move(n);
      }
    }
  }

 private:
  std::string fresh(const std::string& base) {
    for (int k = 0;; ++k) {
      std::string name = base + "_" + std::to_string(k);
      if (taken_.insert(name).second) return name;
    }
  }

  std::string call(onnx::GraphProto& g, const char* op, const std::vector<std::string>& inputs,
                   std::string result = {}) {
    if (result.empty()) result = fresh(op);
    onnx::NodeProto& n = *g.add_node();
    n.set_op_type(op);
    n.set_name(fresh(op));
    for (const std::string& i : inputs) n.add_input(i);
    n.add_output(result);
    return result;
  }

  std::string with_int(onnx::GraphProto& g, std::string result, const char* name, int64_t value) {
    set_int(*g.mutable_node(g.node_size() - 1), name, value);
    return result;
  }

  std::string list_of(onnx::GraphProto& g, int64_t value) {
    std::string result = call(g, "Constant", {});
    set_ints(*g.mutable_node(g.node_size() - 1), "value_ints", {value});
    return result;
  }

  // Before opset 13 all dimensions from `axis` on are one row.
  void hardmax(onnx::GraphProto& g, const onnx::NodeProto& n) {
    const onnx::AttributeProto* said = find_attribute(n, "axis");
    const int64_t axis = said ? said->i() : 1;
    const std::string rows = with_int(g, call(g, "Flatten", {n.input(0)}), "axis", axis);
    const std::string best = with_int(g, call(g, "Hardmax", {rows}), "axis", -1);
    call(g, "Reshape", {best, call(g, "Shape", {n.input(0)})}, n.output(0));
  }

  // [length, ...] -> [longest, ...], with zeros behind.
  void fill_up(onnx::GraphProto& g, const std::string& v, const std::string& missing,
               const std::string& result) {
    const std::string rest =
        call(g, "Slice", {call(g, "Shape", {v}), list_of(g, 1), list_of(g, INT64_MAX)});
    const std::string shape = with_int(g, call(g, "Concat", {missing, rest}), "axis", 0);
    const std::string zero = call(g, "CastLike", {list_of(g, 0), v});
    call(g, "Concat", {v, call(g, "Expand", {zero, shape})}, result);
    set_int(*g.mutable_node(g.node_size() - 1), "axis", 0);
  }

  // Inputs: lengths (or none), states, scanned. One row of the batch is a Scan of its own.
  void scan(onnx::GraphProto& g, onnx::NodeProto& n) {
    const onnx::AttributeProto *given = find_attribute(n, "body"),
                               *count = find_attribute(n, "num_scan_inputs");
    if (!given || !count || n.input_size() < 2) return;  // not a graph any more: refused on load
    const onnx::GraphProto& inner = given->g();
    const int inputs = n.input_size() - 1, states = inputs - int(count->i());
    const bool lengths = !n.input(0).empty();
    onnx::NodeProto outer, each;
    outer.set_op_type("Scan");
    outer.set_name(n.name());
    each.set_op_type("Scan");
    onnx::AttributeProto* body = outer.add_attribute();
    body->set_name("body");
    body->set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& row = *body->mutable_g();
    row.set_name(inner.name() + "_row");
    auto typed = [&](onnx::ValueInfoProto* v, const onnx::ValueInfoProto& like, bool state) {
      v->set_name(fresh("row"));
      *v->mutable_type() = like.type();
      if (!state) v->mutable_type()->mutable_tensor_type()->clear_shape();
      return v->name();
    };
    for (int k = 0; k < inputs && k < inner.input_size(); ++k) {
      outer.add_input(n.input(k + 1));
      each.add_input(typed(row.add_input(), inner.input(k), k < states));
    }
    std::string missing;
    if (lengths) missing = cut(row, each, states, outer, n.input(0));
    for (int k = 0; k < inner.output_size(); ++k)
      each.add_output(typed(row.add_output(), inner.output(k), k < states));
    std::vector<std::pair<std::string, std::string>> filled;
    for (int k = states; lengths && k < inner.output_size(); ++k) {
      filled.emplace_back(fresh("part"), each.output(k));
      each.set_output(k, filled.back().first);
    }
    for (onnx::AttributeProto& a : *n.mutable_attribute()) {
      if (a.name() == kHidden) continue;
      if (a.name() == "directions") a.set_name("scan_input_directions");
      *each.add_attribute() = std::move(a);
    }
    *row.add_node() = std::move(each);
    for (const auto& [part, whole] : filled) fill_up(row, part, missing, whole);
    set_int(outer, "num_scan_inputs", outer.input_size());
    *outer.mutable_output() = n.output();
    *g.add_node() = std::move(outer);
  }

  // Cuts what is scanned to the row's length; returns by how much.
  std::string cut(onnx::GraphProto& row, onnx::NodeProto& each, int states, onnx::NodeProto& outer,
                  const std::string& lengths) {
    onnx::ValueInfoProto* v = row.add_input();
    v->set_name(fresh("length"));
    v->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
    v->mutable_type()->mutable_tensor_type()->mutable_shape();
    outer.add_input(lengths);
    const std::string length = call(row, "Unsqueeze", {v->name(), list_of(row, 0)});
    const std::string longest = call(
        row, "Slice", {call(row, "Shape", {each.input(states)}), list_of(row, 0), list_of(row, 1)});
    for (int k = states; k < each.input_size(); ++k)
      each.set_input(k, call(row, "Slice", {each.input(k), list_of(row, 0), length}));
    return call(row, "Sub", {longest, length});
  }

  int from_;
  std::set<std::string> taken_;
};

}  // namespace

void hide_scans(onnx::GraphProto& g) {
  for (onnx::NodeProto& n : *g.mutable_node()) {
    for (onnx::AttributeProto& a : *n.mutable_attribute())
      if (a.has_g()) hide_scans(*a.mutable_g());
    if (n.op_type() != "Scan" || !is_standard(n)) continue;
    n.set_op_type("Loop");  // no version of it has another body
    set_int(n, kHidden, 1);
  }
}

void say_anew(onnx::GraphProto& g, int from) { Teller(g, from).graph(g); }

}  // namespace onnxtrain
