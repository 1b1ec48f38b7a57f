// ModelProto -> Model: the main graph, the training steps, what describes the model.
#include "model/training_copies.hpp"
#include "onnx/check/checker.hpp"
#include "onnx/load/earlier_files.hpp"
#include "onnx/message/source.hpp"
#include "onnx/read/reader.hpp"

namespace onnxtrain {
namespace {

void collect(const onnx::GraphProto& g, std::unordered_set<std::string>& names) {
  for (const auto& v : g.input()) names.insert(v.name());
  for (const auto& t : g.initializer()) names.insert(t.name());
  for (const auto& t : g.sparse_initializer()) names.insert(t.values().name());
  for (const auto& n : g.node()) {
    for (const auto& o : n.output()) names.insert(o);
    for (const auto& a : n.attribute())
      if (a.has_g()) collect(a.g(), names);
  }
}

std::vector<TrainingStep::Binding> read_bindings(
    const google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>& list) {
  std::vector<TrainingStep::Binding> out;
  for (const auto& b : list) out.emplace_back(b.key(), b.value());
  return out;
}

void read_training(const onnx::ModelProto& p, GraphReader& reader, Scope& main, Model& m) {
  for (int i = 0; i < p.training_info_size(); ++i) {
    const onnx::TrainingInfoProto& t = p.training_info(i);
    m.training.emplace_back();
    TrainingStep& step = m.training.back();
    step.source_index = i;
    step.initialization_binding = read_bindings(t.initialization_binding());
    step.update_binding = read_bindings(t.update_binding());
    try {
      GraphFacts facts;
      if (t.has_initialization()) {
        Scope s;
        s.graph = &step.initialization_as_read();
        s.opsets = &reader.opsets();
        s.facts = &facts;
        reader.read_graph(t.initialization(), s);
      }
      GraphFacts algorithm_facts;
      Scope s;
      s.graph = &step.algorithm_as_read();
      s.parent = &main;
      s.opsets = &reader.opsets();
      s.facts = &algorithm_facts;
      reader.read_graph(t.algorithm(), s);
      // a binding may assign a result of the main graph (G2): make it visible in the step
      for (const auto& [key, value] : step.update_binding) reader.make_visible(s, value);
    } catch (Error& e) {
      e.add_place(cat("in training_info[", i, "]"));
      throw;
    }
  }
}

Model read_model(std::shared_ptr<ModelSource> source, const OpTable& ops, const LoadOptions& o) {
  Findings findings;
  findings.keep_unknown = o.keep_unknown;
  if (o.check)
    check_source(*source, ops, findings);
  else
    check_versions(*source, findings);
  throw_first_error(findings);
  const onnx::ModelProto& p = source->proto;
  Model m;
  m.ir_version = int(p.ir_version());
  m.producer_name = p.producer_name();
  m.producer_version = p.producer_version();
  m.domain = p.domain();
  m.doc = p.doc_string();
  m.model_version = p.model_version();
  for (const auto& kv : p.metadata_props()) m.metadata[kv.key()] = kv.value();

  GraphReader reader(source, ops);
  reader.keep = o.keep;
  m.opsets = reader.opsets();
  reader.main_proto = &p.graph();
  for (const auto& t : p.training_info()) {
    for (const auto& b : t.initialization_binding()) reader.state_names.insert(b.key());
    for (const auto& b : t.update_binding()) reader.state_names.insert(b.key());
  }
  GraphFacts facts;
  Scope s;
  s.graph = &m.main_as_read();
  s.opsets = &reader.opsets();
  s.facts = &facts;
  reader.read_graph(p.graph(), s);
  read_training(p, reader, s, m);
  if (!o.keep_unknown) reader.throw_unknown();
  m.mark_state();
  mark_copies_by_name(m);
  mark_training_copies(m);
  if (o.check && !m.training.empty()) {
    check_training_types(m, findings);
    throw_first_error(findings);
  }
  source->external.release_lifted();
  m.source = std::move(source);
  return m;
}

}  // namespace

void collect_names(const onnx::ModelProto& m, std::unordered_set<std::string>& names) {
  collect(m.graph(), names);
  for (const auto& t : m.training_info()) {
    collect(t.initialization(), names);
    collect(t.algorithm(), names);
  }
}

Model load_model(const std::string& path, const OpTable& ops, const LoadOptions& o) {
  try {
    return read_model(read_source(path, o.limits), ops, o);
  } catch (Error& e) {
    e.add_place(cat("in ", path));
    throw;
  }
}

Model load_model_bytes(std::string_view bytes, const std::string& base_dir, const OpTable& ops,
                       const LoadOptions& o) {
  return read_model(parse_source(bytes, base_dir, o.limits), ops, o);
}

Model load_source(std::shared_ptr<ModelSource> source, const OpTable& ops, const LoadOptions& o) {
  return read_model(std::move(source), ops, o);
}

}  // namespace onnxtrain
