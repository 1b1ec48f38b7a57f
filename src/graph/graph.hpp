// The graph IR: values and nodes in topological order. Everything refers to values by number;
// names are kept for people and files. Subgraphs list what they capture from outside, so every
// dependency of a node is visible in the node.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/tensor.hpp"
#include "graph/type.hpp"

namespace onnxtrain {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr ValueId kNone = -1;  // an omitted optional input or output

class Graph;
using GraphPtr = std::shared_ptr<Graph>;

// Attribute values. Graphs are shared: clone before changing one.
using AttrVariant = std::variant<int64_t, float, std::string, Tensor, GraphPtr, TypeInfo,
                                 std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
                                 std::vector<Tensor>, std::shared_ptr<SparseTensor>>;
// Nearly every file copies and destroys attributes: that code is compiled once, in attributes.cpp.
struct Attr : AttrVariant {
  using AttrVariant::AttrVariant;
  using AttrVariant::operator=;
  Attr();
  Attr(const Attr& other);
  Attr(Attr&& other) noexcept;
  Attr& operator=(const Attr& other);
  Attr& operator=(Attr&& other) noexcept;
  ~Attr();
};

// The attributes of a node, by name.
struct Attributes : std::map<std::string, Attr, std::less<>> {
  using Base = std::map<std::string, Attr, std::less<>>;
  Attributes();
  Attributes(std::initializer_list<value_type> entries);
  Attributes(const Attributes& other);
  Attributes(Attributes&& other) noexcept;
  Attributes& operator=(const Attributes& other);
  Attributes& operator=(Attributes&& other) noexcept;
  ~Attributes();
  Attr& operator[](std::string_view key);
};

inline constexpr std::string_view kOnnxDomain = "";  // "ai.onnx" is normalised to this
inline constexpr std::string_view kMlDomain = "ai.onnx.ml";
inline constexpr std::string_view kTrainingDomain = "ai.onnx.preview.training";
// Our own operators: gradients and fused forms. Each has a body of standard operators (G14).
inline constexpr std::string_view kOwnDomain = "ai.onnxtrain";

struct Node {
  std::string domain, op, name;
  int version = 0;  // opset of `domain` in force for this node
  std::vector<ValueId> inputs, outputs;
  Attributes attrs;
  uint64_t random_stream = 0;  // identity of a random node, stable over runs and copies; 0: by name
  std::string recomputes;      // pass recompute: name of the node that this one runs again
  bool at_run_time = false;    // differentiated when its shapes are known (the body of a RunLater)

  const Attr* find(std::string_view key) const {
    auto it = attrs.find(key);
    return it == attrs.end() ? nullptr : &it->second;
  }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Typed access with a default; a value of another kind is a model error naming node and key.
  int64_t i(std::string_view key, int64_t def) const;
  float f(std::string_view key, float def) const;
  std::string s(std::string_view key, std::string_view def) const;
  std::vector<int64_t> ints(std::string_view key, std::vector<int64_t> def = {}) const;
  std::vector<float> floats(std::string_view key, std::vector<float> def = {}) const;
  std::vector<std::string> strings(std::string_view key) const;
  const Tensor* tensor(std::string_view key) const;
  GraphPtr graph(std::string_view key) const;

  bool is(std::string_view op_name, std::string_view op_domain = kOnnxDomain) const {
    return op == op_name && domain == op_domain;
  }
  // "node 'conv1' (Conv)"
  std::string label() const;
};

struct ValueDef {
  std::string name;
  TypeInfo type;
  NodeId producer = -1;      // -1: input, constant, capture
  Tensor constant;           // initializer's or folded value when defined()
  bool initializer = false;  // stands as an initializer in the file (a Constant node does not)
  std::string state;         // not empty: reads the state variable of this name at run time
  // In the algorithm of a training step: the value of the main graph that this is the training-mode
  // copy of (BatchNormalization and Dropout, and what follows from them); kNone: of none.
  ValueId inference_form = kNone;
  // An input of small integers that decide shapes: plans are made for its values, not only for its
  // type.
  bool planned_by_value = false;
  bool is_constant() const { return constant.defined() && state.empty(); }
};

class Graph {
 public:
  std::string name;
  std::vector<ValueDef> values;
  std::vector<Node> nodes;  // topological order
  std::vector<ValueId> inputs, outputs;
  // For a subgraph: outer value (in the enclosing graph) -> the value that stands for it here.
  struct Capture {
    ValueId outer, inner;
  };
  std::vector<Capture> captures;

  ValueId add_value(std::string name, TypeInfo type = {});
  ValueId add_constant(Tensor t, std::string name = {});
  // Appends a node; creates its outputs. Output names are made unique from `hint` or the op.
  std::vector<ValueId> add_node(Node node, int outputs, std::string_view hint = {});
  ValueId find(std::string_view value_name) const;  // kNone if absent; linear unless indexed
  std::string unique_name(std::string_view hint);

  ValueDef& value(ValueId v) { return values[size_t(v)]; }
  const ValueDef& value(ValueId v) const { return values[size_t(v)]; }
  const std::string& value_name(ValueId v) const { return values[size_t(v)].name; }

  // Every value a node reads, captures of its subgraphs included.
  std::vector<ValueId> reads(const Node& n) const;
  // Nodes that read each value; index by ValueId. Graph outputs are not listed.
  std::vector<std::vector<NodeId>> consumers() const;
  // Replaces every read of `from` (nodes, outputs, captures) by `to`.
  void replace_uses(ValueId from, ValueId to);
  // Drops nodes that nothing needs (outputs and `keep` are needed), keeps order, renumbers nodes.
  void remove_dead(const std::vector<ValueId>& keep = {});
  // Appends the nodes of `sub` (deep copies) with its inputs and captures standing for these values
  // of this graph; returns what its outputs became. Value names are made unique.
  std::vector<ValueId> append(const Graph& sub, const std::vector<ValueId>& sub_inputs,
                              const std::vector<ValueId>& sub_captures);
  // The node that makes `v`, by search from the end (producers may be out of date); -1 if none.
  NodeId producer_of(ValueId v) const;
  // Deep copy: subgraphs too. Tensors share memory.
  Graph clone() const;
  // Re-sorts nodes topologically (stable); throws a model error that names a cycle.
  void sort();
  // Recomputes ValueDef::producer from nodes.
  void renumber();
  // The first broken invariant in words (order, single assignment, numbers in range, producers;
  // subgraphs too); "" when all is well.
  std::string damage() const;
  // Aborts with a message when something is broken.
  void verify(const char* after) const;

 private:
  std::unordered_map<std::string, int> name_counts_;
};

// ONNX-like text of a graph, for tests and --verbose.
std::string to_text(const Graph& g);

}  // namespace onnxtrain
