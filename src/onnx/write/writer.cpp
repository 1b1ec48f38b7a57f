// Model -> the parts of a file. What came from a file and was not changed is copied from its
// message; the rest is written from the IR.
#include "onnx/write/writer.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "model/training_copies.hpp"
#include "onnx/write/copy_graph.hpp"

namespace onnxtrain {
namespace {

using Json = nlohmann::json;

void write_bindings(const TrainingStep& s, onnx::TrainingInfoProto& p) {
  for (const auto& [key, value] : s.initialization_binding) {
    auto* b = p.add_initialization_binding();
    b->set_key(key);
    b->set_value(value);
  }
  for (const auto& [key, value] : s.update_binding) {
    auto* b = p.add_update_binding();
    b->set_key(key);
    b->set_value(value);
  }
}

bool step_from_source(const Model& m, const TrainingStep& s) {
  return m.source && !s.generated() && s.source_index >= 0 &&
         s.source_index < m.source->proto.training_info_size();
}

void copy_step(const Model& m, const TrainingStep& s, const std::unordered_set<std::string>& keep,
               FileParts::Training& to) {
  const onnx::TrainingInfoProto& p = m.source->proto.training_info(s.source_index);
  to.has_initialization = p.has_initialization();
  to.has_algorithm = p.has_algorithm();
  copy_graph(*m.source, p.initialization(), s.initialization, keep, to.initialization);
  copy_graph(*m.source, p.algorithm(), s.algorithm, keep, to.algorithm);
  *to.bindings.mutable_initialization_binding() = p.initialization_binding();
  *to.bindings.mutable_update_binding() = p.update_binding();
  to.bindings.mutable_unknown_fields()->MergeFrom(p.unknown_fields());
}

// The main graph stands in the file as it was unless something new refers to values that exist
// only after expansion.
bool main_from_source(const Model& m, bool inference_only) {
  if (!m.source || m.main_generated()) return false;
  if (inference_only) return true;
  std::unordered_set<std::string> names;
  for (const TrainingStep& s : m.training) {
    if (step_from_source(m, s)) continue;
    if (names.empty()) {
      const onnx::GraphProto& g = m.source->proto.graph();
      for (const auto& v : g.input()) names.insert(v.name());
      for (const auto& t : g.initializer()) names.insert(t.name());
      for (const auto& t : g.sparse_initializer()) names.insert(t.values().name());
      for (const auto& n : g.node()) names.insert(n.output().begin(), n.output().end());
    }
    for (const auto& c : s.algorithm.captures)
      if (names.count(m.main.value_name(c.outer)) == 0) return false;
  }
  return true;
}

void write_head(const Model& m, onnx::ModelProto& head) {
  if (m.source) {
    const onnx::ModelProto& p = m.source->proto;
    *head.mutable_opset_import() = p.opset_import();
    *head.mutable_functions() = p.functions();
    *head.mutable_configuration() = p.configuration();
    head.mutable_unknown_fields()->MergeFrom(p.unknown_fields());
  }
  auto set = [&](const std::string& value, bool was_there, auto setter) {
    if (was_there || !value.empty()) setter(value);
  };
  const onnx::ModelProto none;
  const onnx::ModelProto& p = m.source ? m.source->proto : none;
  set(m.producer_name, p.has_producer_name(), [&](const auto& v) { head.set_producer_name(v); });
  set(m.producer_version, p.has_producer_version(),
      [&](const auto& v) { head.set_producer_version(v); });
  set(m.domain, p.has_domain(), [&](const auto& v) { head.set_domain(v); });
  set(m.doc, p.has_doc_string(), [&](const auto& v) { head.set_doc_string(v); });
  if (p.has_model_version() || m.model_version != 0) head.set_model_version(m.model_version);
}

void write_metadata(const Model& m, const std::map<std::string, std::string>& metadata,
                    onnx::ModelProto& head) {
  std::map<std::string, std::string> before;
  if (m.source)
    for (const auto& kv : m.source->proto.metadata_props()) before[kv.key()] = kv.value();
  if (m.source && before == metadata) {
    *head.mutable_metadata_props() = m.source->proto.metadata_props();
    return;
  }
  for (const auto& [key, value] : metadata) {
    auto* kv = head.add_metadata_props();
    kv->set_key(key);
    kv->set_value(value);
  }
}

// Training-mode copies that the graphs do not show, by the names in the file.
Json hidden_copies_by_name(const Model& m, const std::vector<std::string>& main_names,
                           const std::vector<std::vector<std::string>>& step_names) {
  Json found = Json::object();
  for (size_t k = 0; k < m.training.size(); ++k)
    for (const auto& [copy, form] : hidden_copies(m.main, m.training[k].algorithm))
      found[step_names[k][size_t(copy)]] = main_names[size_t(form)];
  return found;
}

void use_graph(const onnx::GraphProto& g, std::set<std::pair<std::string, std::string>>& used) {
  for (const auto& n : g.node()) {
    used.emplace(normal_domain(n.domain()), n.op_type());
    for (const auto& a : n.attribute())
      if (a.has_g()) use_graph(a.g(), used);
  }
}

// Without training, functions of our own domain and imports that only training needed go too.
void drop_unused(onnx::ModelProto& head, const onnx::GraphProto& main) {
  std::set<std::pair<std::string, std::string>> used;
  use_graph(main, used);
  for (size_t before = 0; before != used.size();) {
    before = used.size();
    for (const auto& f : head.functions()) {
      const std::string d = normal_domain(f.domain());
      if (d == kOwnDomain && used.count({d, f.name()}) == 0) continue;
      for (const auto& n : f.node()) used.emplace(normal_domain(n.domain()), n.op_type());
    }
  }
  auto* functions = head.mutable_functions();
  for (int i = functions->size(); i-- > 0;)
    if (normal_domain(functions->Get(i).domain()) == kOwnDomain &&
        used.count({std::string(kOwnDomain), functions->Get(i).name()}) == 0)
      functions->DeleteSubrange(i, 1);
  auto* imports = head.mutable_opset_import();
  for (int i = imports->size(); i-- > 0;) {
    const std::string& d = imports->Get(i).domain();
    if (d != kTrainingDomain && d != kOwnDomain) continue;
    const bool needed =
        std::any_of(used.begin(), used.end(), [&](const auto& u) { return u.first == d; });
    if (!needed) imports->DeleteSubrange(i, 1);
  }
}

// What the bodies of branches and loops call their values: an algorithm and the main graph are one
// graph, in which no outer value may have such a name.
void body_names(const onnx::GraphProto& g, std::unordered_set<std::string>& names) {
  for (const auto& n : g.node())
    for (const auto& a : n.attribute()) {
      if (!a.has_g()) continue;
      for (const auto& v : a.g().input()) names.insert(v.name());
      for (const auto& t : a.g().initializer()) names.insert(t.name());
      for (const auto& inner : a.g().node())
        names.insert(inner.output().begin(), inner.output().end());
      body_names(a.g(), names);
    }
}

void set_ir_version(onnx::ModelProto& head, const Model& m, const FileParts& parts,
                    const Used& used, bool untouched, const SaveOptions& o) {
  int needed = used.min_ir;  // by features
  if (!parts.training.empty()) needed = std::max(needed, 7);
  if (head.functions_size() > 0) needed = std::max(needed, 8);
  for (const auto& f : head.functions())
    if (!f.overload().empty()) needed = std::max(needed, 10);
  int ir = needed;
  for (const auto& i : head.opset_import())
    if (normal_domain(i.domain()).empty()) ir = std::max(ir, ir_for_opset(int(i.version())));
  if (m.source) {
    const int before = int(m.source->proto.ir_version());
    ir = untouched ? before : std::max(ir, before);
  }
  if (o.ir_cap > 0 && ir > o.ir_cap) {
    if (needed > o.ir_cap)
      usage_error("OT1505", cat("the model needs IR version ", needed,
                                ", above the wished limit of ", o.ir_cap));
    ir = o.ir_cap;
  }
  head.set_ir_version(ir);
}

}  // namespace

namespace {

constexpr int kRemarksIr = 10;  // metadata of nodes

// What the source says about a node beside what it computes (the exporter's module, its line) stays
// with it when the graph is written anew.
bool keep_remarks(const onnx::GraphProto& from, onnx::GraphProto& to) {
  std::unordered_map<std::string_view, const onnx::NodeProto*> by_result;
  for (const onnx::NodeProto& n : from.node())
    if (n.output_size() > 0) by_result.emplace(n.output(0), &n);
  bool any = false;
  for (onnx::NodeProto& n : *to.mutable_node()) {
    auto it = n.output_size() > 0 ? by_result.find(n.output(0)) : by_result.end();
    if (it == by_result.end() || it->second->op_type() != n.op_type()) continue;
    if (n.doc_string().empty() && !it->second->doc_string().empty())
      n.set_doc_string(it->second->doc_string());
    if (it->second->metadata_props_size() == 0 || n.metadata_props_size() > 0) continue;
    *n.mutable_metadata_props() = it->second->metadata_props();
    any = true;
  }
  return any;
}

}  // namespace

FileParts make_parts(const Model& m, const OpTable& ops, const SaveOptions& o) {
  FileParts parts;
  Used used;
  GraphWriter writer(used);
  write_head(m, parts.head);
  const bool copy_main = main_from_source(m, o.inference_only);
  bool all_copied = copy_main, any_copied = copy_main;
  std::unordered_set<std::string> taken, keep;
  for (const std::string& name : m.state_names()) keep.insert(name);
  std::vector<std::string> main_names;
  if (copy_main) {
    copy_graph(*m.source, m.source->proto.graph(), m.main, keep, parts.graph);
    for (const auto& v : m.main.values) {
      main_names.push_back(v.name);
      taken.insert(v.name);
    }
  } else {
    writer.write(m.main, nullptr, taken, parts.graph, main_names, true, keep);
    if (m.source && (o.ir_cap == 0 || o.ir_cap >= kRemarksIr) &&
        keep_remarks(m.source->proto.graph(), parts.graph.proto))
      used.min_ir = std::max(used.min_ir, kRemarksIr);
  }
  std::vector<std::vector<std::string>> step_names;
  for (const TrainingStep& s : m.training) {
    if (o.inference_only) break;
    FileParts::Training& t = parts.training.emplace_back();
    std::vector<std::string>& names = step_names.emplace_back();
    if (step_from_source(m, s) && copy_main) {
      copy_step(m, s, keep, t);
      for (const ValueDef& d : s.algorithm.values) names.push_back(d.name);
      any_copied = true;
      continue;
    }
    all_copied = false;
    std::unordered_set<std::string> alone;
    t.has_initialization = !s.initialization.outputs.empty();
    if (t.has_initialization)
      writer.write(s.initialization, nullptr, alone, t.initialization, names, true, {});
    t.has_algorithm = true;
    // sections do not see each other: only a state variable has one name in the whole model
    std::unordered_set<std::string> here = taken;
    body_names(parts.graph.proto, here);
    writer.write(s.algorithm, &main_names, here, t.algorithm, names, true, keep);
    for (size_t v = 0; v < names.size(); ++v)
      if (s.algorithm.values[v].constant.defined()) taken.insert(names[v]);
    write_bindings(s, t.bindings);
  }
  std::map<std::string, std::string> metadata = m.metadata;
  if (!all_copied && !o.inference_only) {
    metadata.erase(kInferenceForm);
    const Json copies = hidden_copies_by_name(m, main_names, step_names);
    if (!copies.empty())
      metadata[kInferenceForm] = copies.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  write_metadata(m, metadata, parts.head);
  add_functions(parts.head, ops, used);
  set_imports(parts.head, m, used, any_copied);
  if (o.inference_only) drop_unused(parts.head, parts.graph.proto);
  set_ir_version(parts.head, m, parts, used, all_copied && !o.inference_only, o);
  return parts;
}

Pieces to_pieces(FileParts& f) {
  constexpr int kGraph = 7, kTraining = 20, kInitialization = 1, kAlgorithm = 2;
  Pieces out;
  out.add(f.head.SerializeAsString());
  out.add_field(kGraph, to_pieces(f.graph));
  for (FileParts::Training& t : f.training) {
    Pieces step;
    step.add(t.bindings.SerializeAsString());
    if (t.has_initialization) step.add_field(kInitialization, to_pieces(t.initialization));
    if (t.has_algorithm) step.add_field(kAlgorithm, to_pieces(t.algorithm));
    out.add_field(kTraining, std::move(step));
  }
  return out;
}

}  // namespace onnxtrain
