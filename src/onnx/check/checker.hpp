// The checker over a message. Internal to onnx/.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx/message/source.hpp"
#include "onnx/message/validity.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {

// Collects findings; a hostile file may cause very many, so there is a cap.
class Findings {
 public:
  void error(std::string code, std::string rule, std::string message, std::string hint = {});
  void warning(std::string code, std::string rule, std::string message, std::string hint = {});
  // Runs f; an Error becomes a finding at `place`.
  template <class F>
  void guard(const std::string& rule, const std::string& place, F&& f) {
    try {
      f();
    } catch (const Error& e) {
      error(e.code(), rule, cat(place, ": ", e.message()), e.hint());
    }
  }
  bool keep_unknown = false;  // operators that nobody knows are no finding
  bool full() const { return list.size() >= 200; }
  bool has_error() const;
  std::vector<Finding> list;
};

// Names visible in a graph, and in the graphs around it.
struct NameScope {
  std::unordered_set<std::string> names;
  const NameScope* parent = nullptr;
  bool has(const std::string& name) const {
    for (const NameScope* s = this; s != nullptr; s = s->parent)
      if (s->names.count(name) != 0) return true;
    return false;
  }
};

using Imports = std::unordered_map<std::string, int>;  // normal_domain -> version
Imports imports_of(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& list);

// Validity of one graph (check_graph.cpp).
class GraphCheck {
 public:
  GraphCheck(const ModelSource& source, const OpTable& ops, Findings& out);
  struct Place {
    std::string where;  // "main graph", "training_info[0] algorithm"
    std::string rule;   // "" or "C3", "C5"
    std::string code;   // of every finding here; "": each problem's own
    const Imports* imports = nullptr;
    bool in_function = false;
    int depth = 0;
    bool is_algorithm = false;  // GraphCall of the main graph is possible
  };
  // names: gets everything the graph defines; what is in there already is an outer value.
  void graph(const onnx::GraphProto& g, NameScope& names, const Place& p);
  void functions();
  void report_unknown();

 private:
  struct Order;
  void tensors(const onnx::GraphProto& g, NameScope& names, const Place& p);
  template <class Nodes>
  void nodes(const Nodes& list, NameScope& names, const Place& p);
  void inputs(const onnx::NodeProto& n, const NameScope& names, const Place& p, const Order& order);
  void outputs(const onnx::NodeProto& n, NameScope& names, const Place& p);
  void check_operator(const onnx::NodeProto& n, const Place& p);
  void attributes(const onnx::NodeProto& n, NameScope& names, const Place& p);
  void gradient(const onnx::NodeProto& n, const NameScope& names, const Place& p);
  void define(const std::string& name, NameScope& names, const Place& p, const std::string& what);
  // node: the one it is about, when the message does not name it
  void problem(const Place& p, const validity::Problem& x, const std::string& node = {});

  const ModelSource& source_;
  const OpTable& ops_;
  Findings& out_;
  std::unordered_set<std::string> functions_;                          // "domain:name:overload"
  std::unordered_map<std::string, std::vector<std::string>> unknown_;  // operator -> nodes
  std::vector<std::string> unknown_order_;
};

// IR and opset versions that this build understands.
void check_versions(const ModelSource& source, Findings& out);
// Rules C1-C20 that the message alone decides; main_names: what the main graph defines.
void check_training(ModelSource& source, const OpTable& ops, NameScope& main_names, Findings& out);
// Rules that need types and dependencies: C12, C16-C18. The model was read from `source`.
void check_training_types(const Model& m, Findings& out);
// Types of every node's inputs against the schemas.
void check_operand_types(const Model& m, Findings& out);

// Nodes with bodies against their bodies.
void check_control_flow(const Model& m, Findings& out);
// Sizes that can never fit together.
void check_sizes(const Model& m, Findings& out);

// Everything the message decides.
void check_source(ModelSource& source, const OpTable& ops, Findings& out);
// Throws the first finding that is an error, if any.
void throw_first_error(const Findings& findings);

}  // namespace onnxtrain
