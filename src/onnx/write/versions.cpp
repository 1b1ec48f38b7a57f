// Which IR version and which opset imports a file needs, and the functions of our own domain.
#include <algorithm>

#include "onnx/defs/parser.h"
#include "onnx/defs/schema.h"
#include "onnx/write/writer.hpp"

namespace onnxtrain {

int ir_for_opset(int opset) {
  if (opset >= 28) return 14;
  if (opset >= 25) return 13;
  if (opset >= 24) return 12;
  if (opset >= 23) return 11;
  if (opset >= 21) return 10;
  if (opset >= 19) return 9;
  if (opset >= 15) return 8;
  if (opset >= 12) return 7;
  if (opset >= 11) return 6;
  if (opset >= 10) return 5;
  if (opset >= 9) return 4;
  return 3;
}

int ir_for_dtype(DType t) {
  switch (t) {
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return 9;
    case DType::kUint4:
    case DType::kInt4:
      return 10;
    case DType::kFloat4E2M1:
      return 11;
    case DType::kFloat8E8M0:
      return 12;
    case DType::kUint2:
    case DType::kInt2:
      return 13;
    case DType::kBFloat16:
      return 4;
    default:
      return 3;
  }
}

namespace {

bool same_attribute(const onnx::OpSchema::Attribute& a, const onnx::OpSchema::Attribute& b) {
  return a.type == b.type && a.required == b.required &&
         a.default_value.SerializeAsString() == b.default_value.SerializeAsString();
}

// A node written for version `from` means the same under version `to`: the attributes it may have
// and its inputs are still there. Most new versions of an operator only add element types.
bool means_the_same(const std::string& domain, const std::string& op, int from, int to) {
  const onnx::OpSchema* a = onnx::OpSchemaRegistry::Schema(op, from, domain);
  const onnx::OpSchema* b = onnx::OpSchemaRegistry::Schema(op, to, domain);
  if (a == nullptr && b == nullptr) return true;  // not ONNX's: the domain's owner knows
  if (a == nullptr || b == nullptr || b->Deprecated()) return false;
  if (a->since_version() == b->since_version()) return true;
  // the one family whose meaning changed under an unchanged signature
  if ((op == "Softmax" || op == "LogSoftmax" || op == "Hardmax") && (from < 13) != (to < 13))
    return false;
  for (const auto& [name, attr] : a->attributes()) {
    auto it = b->attributes().find(name);
    if (it == b->attributes().end() || !same_attribute(attr, it->second)) return false;
  }
  if (from > to && a->attributes().size() != b->attributes().size()) return false;
  if (a->inputs().size() > b->inputs().size() || a->outputs().size() > b->outputs().size())
    return false;
  for (size_t i = a->inputs().size(); i < b->inputs().size(); ++i)
    if (b->inputs()[i].GetOption() == onnx::OpSchema::Single) return false;
  return true;
}

void use_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
               const OpsetMapView& imports, Used& used) {
  for (const auto& n : nodes) {
    const std::string domain = normal_domain(n.domain());
    auto it = imports.find(domain);
    used.ops[domain][n.op_type()].insert(it == imports.end() ? 1 : it->second);
    for (const auto& a : n.attribute())
      if (a.has_g()) use_nodes(a.g().node(), imports, used);
  }
}

}  // namespace

void set_imports(onnx::ModelProto& head, const Model& m, const Used& used, bool from_source) {
  std::map<std::string, int> imports;
  for (const auto& o : head.opset_import()) imports[normal_domain(o.domain())] = int(o.version());
  if (head.opset_import_size() == 0) imports = m.opsets;
  const std::map<std::string, int> before = imports;
  for (const auto& [domain, list] : used.ops) {
    int newest = 0;
    for (const auto& [op, versions] : list) newest = std::max(newest, *versions.rbegin());
    auto it = imports.find(domain);
    if (it == imports.end()) imports[domain] = std::max(newest, 1);
    // everything is written from the IR: one version that fits all nodes is enough
    else if (!from_source)
      it->second = std::max(it->second, newest);
    for (const auto& [op, versions] : list)
      for (int v : versions)
        if (v != imports[domain] && !means_the_same(domain, op, v, imports[domain]))
          model_error("OT1503",
                      cat(op, " of opset ", v, " (", domain.empty() ? "ai.onnx" : domain,
                          ") cannot be written: the file imports opset ", imports[domain],
                          ", where it means something else"),
                      "bring the whole model to one opset first");
  }
  if (imports.empty()) imports[""] = 22;
  if (imports == before && head.opset_import_size() > 0) return;
  std::set<std::string> named;  // a domain may stand twice in the file
  for (auto& o : *head.mutable_opset_import()) {
    const std::string domain = normal_domain(o.domain());
    o.set_version(imports.at(domain));
    named.insert(domain);
  }
  for (const auto& [domain, version] : imports) {
    if (named.contains(domain)) continue;
    auto* o = head.add_opset_import();
    o->set_domain(domain);
    o->set_version(version);
  }
}

void add_functions(onnx::ModelProto& head, const OpTable& ops, Used& used) {
  std::set<std::pair<std::string, std::string>> there;
  for (const auto& f : head.functions()) there.emplace(normal_domain(f.domain()), f.name());
  // bodies may use further functions: until nothing new appears
  for (bool more = true; more;) {
    more = false;
    const auto own = used.ops.find(std::string(kOwnDomain));
    if (own == used.ops.end()) return;
    const std::map<std::string, std::set<int>> names = own->second;
    for (const auto& [name, versions] : names) {
      if (!there.emplace(std::string(kOwnDomain), name).second) continue;
      const Op* op = ops.find(kOwnDomain, name, *versions.rbegin());
      if (op == nullptr || op->function == nullptr) continue;
      onnx::FunctionProto f;
      const auto status = onnx::OnnxParser::Parse(f, op->function);
      if (!status.IsOK())
        throw Error(ErrorKind::kFailed, "OT1504",
                    cat("the function text of ", name, " cannot be read: ", status.ErrorMessage()));
      f.set_domain(std::string(kOwnDomain));
      f.set_name(name);
      // onnx.checker wants a function's operators to be of the versions the model imports
      for (auto& o : *f.mutable_opset_import())
        for (const auto& model : head.opset_import())
          if (normal_domain(model.domain()) == normal_domain(o.domain()))
            o.set_version(std::max(o.version(), model.version()));
      OpsetMapView imports;
      for (const auto& o : f.opset_import()) imports[normal_domain(o.domain())] = int(o.version());
      // versions inside a body are its own affair; the model only has to import the domains
      Used inside;
      use_nodes(f.node(), imports, inside);
      for (const auto& [domain, list] : inside.ops) {
        if (domain == kOwnDomain) {
          for (const auto& [inner, v] : list) used.ops[domain][inner].insert(v.begin(), v.end());
        } else if (used.ops.find(domain) == used.ops.end()) {
          used.ops[domain];
        }
        if (imports.find(domain) == imports.end()) {
          auto* o = f.add_opset_import();
          o->set_domain(domain);
          o->set_version(1);
          imports[domain] = 1;
        }
      }
      *head.add_functions() = std::move(f);
      more = true;
    }
  }
}

}  // namespace onnxtrain
