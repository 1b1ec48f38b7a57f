// GraphProto -> Graph: names to numbers, functions expanded, types inferred. Internal to onnx/.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onnx/message/source.hpp"
#include "onnx/message/tensors.hpp"

namespace onnx {
class OpSchema;
}

namespace onnxtrain {

using OpsetMap = std::map<std::string, int>;  // normal_domain -> version

// The call of a function whose body is being read: its attribute values and who called it.
struct Frame {
  const Frame* caller = nullptr;
  std::string function;  // "domain:name:overload"
  std::unordered_map<std::string, const onnx::AttributeProto*> attrs;
  int depth = 1;
};

// What is known of small integer values, for shapes: constants seen through captures, and values
// of which libonnx could work out a part.
struct GraphFacts {
  std::unordered_map<ValueId, Tensor> known;
  std::unordered_map<ValueId, onnx::TensorShapeProto> partial;
  std::unordered_set<ValueId> overridable;  // initializers that are inputs too
};

// Names that a node may use, and where its results go. A function body has a scope of its own
// over the caller's graph; a subgraph has a scope over a new graph and sees its parent's.
struct Scope {
  Graph* graph = nullptr;
  Scope* parent = nullptr;
  const OpsetMap* opsets = nullptr;
  const Frame* frame = nullptr;
  bool alias = true;   // the nodes live in the source's message (not in a built function body)
  std::string prefix;  // before names of values and nodes that come from a function body
  int depth = 0;       // nesting of subgraphs
  std::unordered_map<std::string, ValueId> names;
  std::unordered_map<std::string, std::string> rename;  // function outputs -> the caller's names
  std::unordered_map<std::string, const onnx::TypeProto*> declared;  // value_info and outputs
  GraphFacts* facts = nullptr;                                       // of `graph`
};

// One node with its attributes resolved (no ref_attr_name left) and its inputs found.
struct NodeView {
  const onnx::NodeProto* proto = nullptr;
  std::string domain;
  int version = 0;
  std::vector<std::pair<std::string, const onnx::AttributeProto*>> attrs;
  std::vector<ValueId> inputs;
  const onnx::OpSchema* schema = nullptr;
  const onnx::AttributeProto* attr(std::string_view name) const {
    for (const auto& [key, a] : attrs)
      if (key == name) return a;
    return nullptr;
  }
};

class GraphReader {
 public:
  GraphReader(std::shared_ptr<ModelSource> source, const OpTable& ops);

  // Fills `s.graph`. input_types: what the caller knows of a subgraph's inputs.
  void read_graph(const onnx::GraphProto& p, Scope& s,
                  const std::vector<TypeInfo>* input_types = nullptr);
  // A value of an enclosing graph that only a binding names: captured if it exists.
  void make_visible(Scope& s, const std::string& name) { lookup(s, name); }
  // Throws OT1101 with every unknown operator met so far.
  void throw_unknown() const;

  const OpsetMap& opsets() const { return opsets_; }
  // Names bound by training: their stored value is not a constant.
  std::unordered_set<std::string> state_names;
  // For GraphCall of ONNX 1.7: the main graph.
  const onnx::GraphProto* main_proto = nullptr;
  // LoadOptions::keep.
  std::function<bool(const std::string& domain, const std::string& op)> keep;

 private:
  friend class SubgraphInferencer;
  struct OpEntry {
    const Op* op = nullptr;
    const onnx::OpSchema* schema = nullptr;
  };
  struct Unknown {
    std::string domain, op, reason;
    int version;
    std::vector<std::string> nodes;
  };

  // reader.cpp
  ValueId define(Scope& s, const std::string& name);
  ValueId lookup(Scope& s, const std::string& name);
  void read_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Scope& s);
  void read_node(const onnx::NodeProto& p, Scope& s);
  void read_constant(const NodeView& v, Scope& s);
  void read_gradient_names(Node& n, Scope& s);
  Node make_node(const NodeView& v, Scope& s, std::map<std::string, GraphPtr>& graphs);
  void add_outputs(Node node, const NodeView& v, Scope& s, std::vector<TypeInfo> types);
  NodeView resolve(const onnx::NodeProto& p, Scope& s);
  GraphPtr read_subgraph(const onnx::GraphProto& p, Scope& s, const std::vector<TypeInfo>* types);
  std::string node_name(const onnx::NodeProto& p, const Scope& s);
  std::string fresh_name(const std::string& base);
  OpEntry find_op(const std::string& domain, const std::string& op, int version);
  void count_node();
  void note_unknown(const NodeView& v, const std::string& node, std::string reason);

  // expand.cpp
  const onnx::FunctionProto* local_function(const NodeView& v) const;
  // Expands the node if it is a function and its operator is not in the table.
  bool expand(const NodeView& v, Scope& s);
  // Another runtime runs the node; its gradient is a function of the file, if there is one.
  void make_foreign(Node& n, const NodeView& v, Scope& s);
  GraphPtr read_function(const NodeView& v, const onnx::FunctionProto& f, Scope& s);
  // The same for an operator of com.microsoft that has a body (contrib.hpp).
  bool expand_contrib(const NodeView& v, Scope& s);
  void expand_body(const NodeView& v, const onnx::FunctionProto& f, Scope& s, bool in_source);
  void expand_into(const NodeView& v, const std::vector<std::string>& results,
                   const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Scope& s,
                   Scope& b);
  void expand_graph_call(const NodeView& v, Scope& s);
  void check_expanded_size();

  // infer.cpp
  // Types of the outputs as far as libonnx can tell; reads the node's subgraphs on the way.
  std::vector<TypeInfo> infer(const NodeView& v, Scope& s, std::map<std::string, GraphPtr>& graphs);
  void propagate(const NodeView& v, Scope& s, const std::vector<ValueId>& outputs);
  const onnx::FunctionProto* own_function(const Op& op);
  const std::unordered_map<std::string, const onnx::FunctionProto*>& own_function_map();
  const Tensor* known_value(const Scope& s, ValueId v) const;

  // upgrade.cpp
  // Old forms that are cheaper to rewrite than to support: true if the node was handled.
  bool upgrade(NodeView& v, Scope& s);

  std::shared_ptr<ModelSource> source_;
  const OpTable& ops_;
  OpsetMap opsets_;
  std::unordered_map<std::string, const onnx::FunctionProto*> functions_;
  std::unordered_map<std::string, OpEntry> op_cache_;
  std::unordered_set<std::string> used_names_, node_names_;
  bool names_collected_ = false;
  std::unordered_map<std::string, int> name_counts_;
  std::unordered_map<const onnx::NodeProto*, std::string> reasons_;  // why there is no body
  std::vector<std::unique_ptr<onnx::FunctionProto>> built_;          // bodies made for one node
  std::unordered_map<const Op*, std::unique_ptr<onnx::FunctionProto>> own_functions_;
  std::unordered_map<std::string, const onnx::FunctionProto*> own_map_;
  std::vector<Unknown> unknown_;
  int64_t nodes_ = 0;
};

// Attributes (attributes.cpp).
Attr read_attribute(const onnx::AttributeProto& a, const TensorContext& c,
                    const std::string& where);
onnx::AttributeProto::AttributeType attribute_type(const onnx::AttributeProto& a);
// Why an attribute of this operator cannot be right whatever the inputs are (zero strides, ...);
// "" when it may be. Called before libonnx sees the node.
std::string attribute_problem(const std::string& domain, const std::string& op,
                              const std::string& name, const onnx::AttributeProto& a);

// The rest of load_model for a message already read.
Model load_source(std::shared_ptr<ModelSource> source, const OpTable& ops, const LoadOptions& o);

// Every value name of the model: graphs, subgraphs, training.
void collect_names(const onnx::ModelProto& m, std::unordered_set<std::string>& names);

}  // namespace onnxtrain
