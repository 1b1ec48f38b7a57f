// Are the element types of a node's inputs among those that its operator's schema allows, and equal
// where the schema names them alike? For `check`; running finds the same in its own words.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "onnx/check/checker.hpp"
#include "onnx/defs/data_type_utils.h"
#include "onnx/defs/schema.h"
#include "onnx/message/libonnx_call.hpp"
#include "onnx/message/tensors.hpp"

namespace onnxtrain {
namespace {

// "tensor(float)", or null where the type is not known.
onnx::DataType type_name(const TypeInfo& t) {
  if (t.kind == TypeInfo::Kind::kUnknown) return nullptr;
  const TypeInfo* inner = &t;
  while (inner->inner && inner->kind != TypeInfo::Kind::kMap) inner = inner->inner.get();
  if (inner->elem == DType::kUndefined) return nullptr;
  onnx::TypeProto proto;
  write_type(t, proto);
  onnx::DataType type = nullptr;  // stays so for a type that libonnx has no name for
  libonnx_accepts([&] { type = onnx::Utils::DataTypeUtils::ToType(proto); });
  return type;
}

// "tensor(bool), tensor(float) and 3 more"
std::string some_of(const std::unordered_set<onnx::DataType>& types) {
  std::vector<std::string> names;
  for (onnx::DataType t : types) names.push_back(*t);
  std::sort(names.begin(), names.end());
  std::string out;
  for (size_t k = 0; k < names.size() && k < 6; ++k) out += cat(k ? ", " : "", names[k]);
  return names.size() > 6 ? cat(out, " and ", names.size() - 6, " more") : out;
}

void check_node(const Graph& g, const Node& n, Findings& out) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(n.op, n.version, n.domain);
  if (schema == nullptr) return;
  const auto& formal = schema->inputs();
  std::map<std::string, onnx::DataType> bound;
  for (size_t i = 0; i < n.inputs.size() && !formal.empty(); ++i) {
    const auto& f = formal[std::min(i, formal.size() - 1)];
    if (n.inputs[i] == kNone) continue;
    const ValueDef& v = g.value(n.inputs[i]);
    onnx::DataType type = type_name(v.type);
    if (type == nullptr) continue;
    // training operators are older than bfloat16; they follow the element type of the graph
    bool newer = n.domain == kTrainingDomain && *type == "tensor(bfloat16)";
    if (!newer && !f.GetTypes().empty() && !f.GetTypes().count(type)) {
      out.error("OT1036", "",
                cat("input '", f.GetName(), "' of ", n.label(), " is ", *type, " ('", v.name,
                    "'), which ", n.op, " does not take"),
                cat("it takes ", some_of(f.GetTypes())));
      return;
    }
    if (!f.GetIsHomogeneous()) continue;
    auto [it, fresh] = bound.emplace(f.GetTypeStr(), type);
    if (!fresh && it->second != type) {
      out.error("OT1036", "",
                cat("input '", f.GetName(), "' of ", n.label(), " is ", *type, " ('", v.name,
                    "'), but must be ", *it->second, " like the input before it"),
                cat("cast one of them: a Cast node to ", *it->second));
      return;
    }
  }
}

void check_nodes(const Graph& g, Findings& out) {
  for (const Node& n : g.nodes) {
    if (out.full()) return;
    check_node(g, n, out);
    for (const auto& [name, a] : n.attrs)
      if (const auto* sub = std::get_if<GraphPtr>(&a)) check_nodes(**sub, out);
  }
}

}  // namespace

void check_operand_types(const Model& m, Findings& out) {
  check_nodes(m.main, out);
  for (const TrainingStep& s : m.training) {
    check_nodes(s.initialization, out);
    check_nodes(s.algorithm, out);
  }
}

}  // namespace onnxtrain
