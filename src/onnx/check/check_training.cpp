// The rules of training_info that the message alone decides: one small function each.
#include <map>
#include <set>

#include "onnx/check/checker.hpp"

namespace onnxtrain {
namespace {

using Bindings = google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>;

std::string step_label(int i) { return cat("training_info[", i, "]"); }

std::unordered_set<std::string> initializers(const onnx::GraphProto& g) {
  std::unordered_set<std::string> names;
  for (const auto& t : g.initializer()) names.insert(t.name());
  return names;
}

std::unordered_set<std::string> sparse_initializers(const onnx::GraphProto& g) {
  std::unordered_set<std::string> names;
  for (const auto& t : g.sparse_initializer()) names.insert(t.values().name());
  return names;
}

std::unordered_set<std::string> outputs(const onnx::GraphProto& g) {
  std::unordered_set<std::string> names;
  for (const auto& o : g.output()) names.insert(o.name());
  return names;
}

template <class F>
void each_binding(const onnx::TrainingInfoProto& t, F&& f) {
  for (const auto& b : t.initialization_binding()) f(b, "initialization_binding");
  for (const auto& b : t.update_binding()) f(b, "update_binding");
}

void c1_ir_version(const onnx::ModelProto& m, Findings& out) {
  if (m.ir_version() < 7)
    out.error("OT1301", "C1",
              cat("the model has training_info, but IR version ", m.ir_version(),
                  "; it needs 7 or later"),
              "set ir_version to 7");
}

void c5_initialization_closed(const onnx::TrainingInfoProto& t, int i, GraphCheck& check,
                              const Imports& imports, Findings& out) {
  if (!t.has_initialization()) return;
  if (t.initialization().input_size() > 0)
    out.error("OT1305", "C5",
              cat(step_label(i), ": initialization has ", t.initialization().input_size(),
                  " inputs; it must have none ('", t.initialization().input(0).name(), "', ...)"),
              "make the input a Constant or an initializer of the initialization graph");
  NameScope own;  // nothing outside is visible
  check.graph(t.initialization(), own,
              {cat(step_label(i), " initialization"), "C5", "OT1305", &imports, false, 0});
}

void c6_absent_initialization(const onnx::TrainingInfoProto& t, int i, Findings& out) {
  if (!t.has_initialization() && t.initialization_binding_size() > 0)
    out.error("OT1306", "C6",
              cat(step_label(i), " binds '", t.initialization_binding(0).key(),
                  "' to an initialization that it does not have"),
              "add the initialization graph or remove initialization_binding");
}

void c7_key_is_initializer(const onnx::ModelProto& m, const onnx::TrainingInfoProto& t, int i,
                           Findings& out) {
  const auto main = initializers(m.graph()), own = initializers(t.algorithm());
  const auto main_sparse = sparse_initializers(m.graph()),
             own_sparse = sparse_initializers(t.algorithm());
  each_binding(t, [&](const auto& b, const char* list) {
    if (main.count(b.key()) != 0 || own.count(b.key()) != 0) return;
    if (main_sparse.count(b.key()) != 0 || own_sparse.count(b.key()) != 0)
      out.error("OT1320", "C20",
                cat(step_label(i), ": ", list, " key '", b.key(),
                    "' is a sparse tensor, which cannot be trained"),
                "store it as an ordinary initializer");
    else
      out.error("OT1307", "C7",
                cat(step_label(i), ": ", list, " key '", b.key(),
                    "' is not an initializer of the main graph or of this algorithm"),
                "a state variable must be an initializer there");
  });
}

void c8_initialization_value(const onnx::TrainingInfoProto& t, int i, Findings& out) {
  if (!t.has_initialization()) return;
  const auto names = outputs(t.initialization());
  for (const auto& b : t.initialization_binding())
    if (names.count(b.value()) == 0)
      out.error("OT1308", "C8",
                cat(step_label(i), ": initialization_binding '", b.key(), "' = '", b.value(),
                    "': the initialization has no such output"),
                cat("add '", b.value(), "' to the outputs of the initialization graph"));
}

void c9_update_value(const onnx::ModelProto& m, const onnx::TrainingInfoProto& t, int i,
                     Findings& out) {
  const auto own = outputs(t.algorithm()), main = outputs(m.graph());
  for (const auto& b : t.update_binding())
    if (own.count(b.value()) == 0 && main.count(b.value()) == 0)
      out.error("OT1309", "C9",
                cat(step_label(i), ": update_binding '", b.key(), "' = '", b.value(),
                    "': neither the algorithm nor the main graph has such an output"),
                cat("add '", b.value(), "' to the outputs of the algorithm"));
}

void c10_keys_unique(const Bindings& list, const char* name, int i, Findings& out) {
  std::set<std::string> seen;
  for (const auto& b : list)
    if (!seen.insert(b.key()).second)
      out.error("OT1310", "C10",
                cat(step_label(i), ": ", name, " has the key '", b.key(), "' twice"),
                "assign each state variable once");
}

// C11 with ruling G1: a repeat over several lists is read, with a warning.
void c11_keys_unique_overall(const onnx::ModelProto& m, Findings& out) {
  std::map<std::string, int> first;
  for (int i = 0; i < m.training_info_size(); ++i)
    for (const auto& b : m.training_info(i).update_binding()) {
      auto [it, fresh] = first.emplace(b.key(), i);
      if (!fresh && it->second != i)
        out.warning("OT1311", "G1",
                    cat("'", b.key(), "' is updated by ", step_label(it->second), " and by ",
                        step_label(i), ": it is assigned after each of them"),
                    "let one algorithm update each state variable");
    }
}

void g4_one_name_one_variable(const onnx::ModelProto& m, Findings& out) {
  std::map<std::string, int> first;
  for (int i = 0; i < m.training_info_size(); ++i)
    for (const std::string& name : initializers(m.training_info(i).algorithm())) {
      auto [it, fresh] = first.emplace(name, i);
      if (!fresh)
        out.error("OT1321", "G4",
                  cat("'", name, "' is an initializer of ", step_label(it->second), " and of ",
                      step_label(i)),
                  "state variables share one scope: rename one of them");
    }
}

// C20: external tensors of every graph exist, beneath the model's folder, with all their bytes.
void c20_external(ModelSource& source, const onnx::GraphProto& g, const std::string& where,
                  int depth, Findings& out) {
  if (depth > source.limits.nesting) return;
  auto look = [&](const onnx::TensorProto& t) {
    if (t.data_location() != onnx::TensorProto_DataLocation_EXTERNAL) return;
    std::string location;
    for (const auto& kv : t.external_data())
      if (kv.key() == "location") location = kv.value();
    try {
      source.external.open(location, 0, 0, t.name());
    } catch (const Error& e) {
      out.error("OT1320", "C20", cat(where, ": ", e.message()), e.hint());
    }
  };
  for (const auto& t : g.initializer()) look(t);
  for (const auto& n : g.node())
    for (const auto& a : n.attribute()) {
      if (a.has_t()) look(a.t());
      if (a.has_g()) c20_external(source, a.g(), where, depth + 1, out);
    }
}

}  // namespace

void check_training(ModelSource& source, const OpTable& ops, NameScope& main_names, Findings& out) {
  const onnx::ModelProto& m = source.proto;
  if (m.training_info_size() == 0) return;
  const Imports imports = imports_of(m.opset_import());
  GraphCheck check(source, ops, out);
  c1_ir_version(m, out);
  c20_external(source, m.graph(), "main graph", 0, out);
  for (int i = 0; i < m.training_info_size() && !out.full(); ++i) {
    const onnx::TrainingInfoProto& t = m.training_info(i);
    c5_initialization_closed(t, i, check, imports, out);
    // C3: the algorithm's lists behind those of the main graph; C4 was checked before
    NameScope combined = main_names;
    check.graph(t.algorithm(), combined,
                {cat(step_label(i), " algorithm"), "C3", "OT1303", &imports, false, 0, true});
    c6_absent_initialization(t, i, out);
    c7_key_is_initializer(m, t, i, out);
    c8_initialization_value(t, i, out);
    c9_update_value(m, t, i, out);
    c10_keys_unique(t.initialization_binding(), "initialization_binding", i, out);
    c10_keys_unique(t.update_binding(), "update_binding", i, out);
    c20_external(source, t.algorithm(), step_label(i), 0, out);
    c20_external(source, t.initialization(), step_label(i), 0, out);
  }
  check.report_unknown();
  c11_keys_unique_overall(m, out);
  g4_one_name_one_variable(m, out);
}

}  // namespace onnxtrain
