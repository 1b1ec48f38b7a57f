// The order of the stages: lowered, one graph, functions inlined, rules, one type, one opset.
#include "convert/portable/portable.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "convert/lower.hpp"
#include "convert/portable/rules.hpp"
#include "convert/portable/stages.hpp"
#include "onnx/onnx.hpp"
#include "op/foreign.hpp"
#include "op/needs_shape.hpp"

namespace onnxtrain {

namespace {

using portable::Context;
using portable::kNewestOpset;
using portable::kOldestOpset;

void check_options(const StepOptions& o) {
  auto one_of = [](const std::string& flag, const std::string& value,
                   const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), value) != known.end()) return;
    std::string all;
    for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
    usage_error("OT1262", cat(flag, " is '", value, "'; known: ", all),
                "take one of them, or leave it out");
  };
  one_of("--form", o.form, {"portable", "compact"});
  one_of("--indices", o.indices, {"int64", "int32"});
  one_of("--recurrent", o.recurrent, {"unroll", "scan"});
  one_of("--random", o.random, {"counter", "input"});
  if (!o.runtime.empty()) one_of("--for", o.runtime, known_runtimes());
  if (o.opset < kOldestOpset || o.opset > kNewestOpset)
    usage_error("OT1262",
                cat("--opset is ", o.opset, "; portable steps are written in opset ", kOldestOpset,
                    " to ", kNewestOpset),
                "--opset 17");
}

// ---------------------------------------------------------------- sizes
using Sizes = std::map<std::string, int64_t>;

template <class F>
void each_input(const Model& m, const F& f) {
  for (ValueId v : m.main.inputs)
    if (!m.main.value(v).constant.defined()) f(m.main.value(v));
  for (const TrainingStep& t : m.training)
    for (ValueId v : t.algorithm.inputs) f(t.algorithm.value(v));
}

void fix_shape(const ValueDef& d, const std::vector<int64_t>& sizes, Sizes& named) {
  const TypeInfo& t = d.type;
  bool fits = t.is_tensor() && t.shape && t.shape->size() == sizes.size();
  for (size_t k = 0; fits && k < sizes.size(); ++k) {
    const Dim& have = (*t.shape)[k];
    if (have.known())
      fits = have.value == sizes[k];
    else if (!have.symbol.empty())  // without a name it is this input's alone
      fits = named.emplace(have.symbol, sizes[k]).first->second == sizes[k];
  }
  if (!fits)
    usage_error("OT1251",
                cat("the shape ", to_string(Shape(sizes)), " given for input '", d.name,
                    "' does not fit its type ", to_string(t)),
                "give one size for every dimension, as the type has them");
}

// Names of open dimensions, as they come.
std::vector<std::string> open_dimensions(const Model& m) {
  std::vector<std::string> names;
  each_input(m, [&](const ValueDef& d) {
    if (d.type.is_tensor() && d.type.shape)
      for (const Dim& x : *d.type.shape)
        if (!x.symbol.empty() && std::find(names.begin(), names.end(), x.symbol) == names.end())
          names.push_back(x.symbol);
  });
  return names;
}

Sizes sizes_by_name(const Model& m, const StepOptions& o) {
  const std::vector<std::string> open = open_dimensions(m);
  const std::set<std::string> symbols(open.begin(), open.end());
  std::string known;
  for (const std::string& name : open) known += cat(" '", name, "'");
  Sizes named;
  for (const auto& dim : o.dims) {  // clang 14 takes no structured binding into a lambda
    const auto& name = dim.first;
    const auto& sizes = dim.second;
    bool found = symbols.contains(name) && sizes.size() == 1;
    if (found && sizes[0] < 1)
      usage_error("OT1251",
                  cat("the size ", sizes[0], " given for dimension '", name, "' is not at least 1"),
                  cat("--dim ", name, "=32"));
    if (found) named[name] = sizes[0];
    if (!found)
      each_input(m, [&](const ValueDef& d) {
        if (d.name != name) return;
        fix_shape(d, sizes, named);
        found = true;
      });
    if (!found)
      usage_error("OT1251",
                  cat("the step has no open dimension and no input '", name,
                      "'; open dimensions are", known.empty() ? " none" : known),
                  "name one of them, or leave --dim out");
  }
  return named;
}

// Inputs whose whole shape was given: dimensions without a name too.
void fix_inputs(Graph& g, const StepOptions& o) {
  for (ValueId v : g.inputs) {
    ValueDef& d = g.value(v);
    const auto it = o.dims.find(d.name);
    if (it == o.dims.end() || !d.type.is_tensor() || !d.type.shape ||
        d.type.shape->size() != it->second.size())
      continue;
    for (size_t k = 0; k < it->second.size(); ++k) (*d.type.shape)[k] = {it->second[k], {}};
  }
}

void fix_graph(Graph& g, const Sizes& named) {
  for (ValueDef& d : g.values)
    if (d.type.is_tensor() && d.type.shape)
      for (Dim& x : *d.type.shape)
        if (const auto it = named.find(x.symbol); it != named.end() && !x.known())
          x = {it->second, {}};
}

Model with_sizes(const Model& m, const StepOptions& o, const OpTable& ops) {
  Model out = m;
  if (o.dims.empty()) return out;
  const Sizes named = sizes_by_name(m, o);
  out.unshare_main();
  Graph& g = out.edit_main();
  fix_graph(g, named);
  fix_inputs(g, o);
  for (size_t k = 0; k < g.nodes.size(); ++k) infer_node(g, Node(g.nodes[k]), ops);
  for (TrainingStep& t : out.training) {
    fix_graph(t.edit_algorithm(), named);
    fix_inputs(t.edit_algorithm(), o);
  }
  return out;
}

// ---------------------------------------------------------------- one graph
bool needs_lowering(const Graph& g, const OpTable& ops) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const Node& n) {
    if (n.domain == kTrainingDomain || is_training_norm(n)) return true;
    const Op* op = n.domain == kOwnDomain ? ops.find(n) : nullptr;
    if (op && !op->function) return true;
    return std::any_of(n.attrs.begin(), n.attrs.end(), [&](const auto& a) {
      const GraphPtr* body = std::get_if<GraphPtr>(&a.second);
      return body && needs_lowering(**body, ops);
    });
  });
}

// An update may be an output of the main graph (ruling G2), an input or a constant. The names of
// outputs that were added, with what each of them copies.
std::map<std::string, std::string> bind_outputs(Graph& g, const TrainingStep& t, int opset) {
  std::map<std::string, std::string> copies;
  for (const auto& [key, value] : t.update_binding) {
    const ValueId v = g.find(value);
    if (v != kNone && std::find(g.outputs.begin(), g.outputs.end(), v) == g.outputs.end())
      g.outputs.push_back(v);
  }
  for (ValueId& v : g.outputs) {
    if (g.value(v).producer >= 0) continue;
    Node id;
    id.op = "Identity";
    id.version = opset;
    id.inputs = {v};
    const std::string copied = g.value_name(v);
    v = g.add_node(std::move(id), 1, copied + "_out")[0];
    g.value(v).type = g.value(g.nodes.back().inputs[0]).type;
    copies[g.value_name(v)] = copied;
  }
  return copies;
}

bool scalar_float(const TypeInfo& t) {
  return t.is_tensor() && dtype_is_float(t.elem) && t.shape && t.shape->empty();
}

// Names and their meaning, before anything is rewritten: they stay.
void describe(StepModel& s, const Model& m, const std::map<std::string, std::string>& copies) {
  const TrainingStep& t = m.training[size_t(s.section)];
  const Graph& g = s.model.main;
  const std::vector<std::string> states = m.state_names();
  const auto lr = m.metadata.find("onnxtrain.rate");
  auto is_state = [&](const std::string& n) {
    return std::find(states.begin(), states.end(), n) != states.end();
  };
  for (ValueId v : g.inputs) {
    const ValueDef& d = g.value(v);
    std::string role = m.main.find(d.name) != kNone ? "data" : "target";
    if (is_state(d.name)) role = "state";
    if (lr != m.metadata.end() && lr->second == d.name) role = "learning_rate";
    s.inputs.push_back({d.name, role, d.type});
  }
  int loss = -1, first = -1;
  for (size_t k = 0; k < g.outputs.size(); ++k) {
    const ValueDef& d = g.value(g.outputs[k]);
    bool fed = false;
    const auto copy = copies.find(d.name);
    for (const auto& [key, value] : t.update_binding)
      if (value == (copy == copies.end() ? d.name : copy->second)) {
        s.feedback.emplace_back(d.name, key);
        fed = true;
      }
    s.outputs.push_back({d.name, fed ? "state" : "output"});
    if (d.name == "loss") loss = int(k);
    if (first < 0 && !fed && scalar_float(d.type)) first = int(k);
  }
  if (loss < 0) loss = first;
  if (loss >= 0) s.outputs[size_t(loss)].role = "loss";
}

// Operators that the standard defines by others, and that runtimes have in part only.
bool spelled_out(const std::string& domain, const std::string& op) {
  static const std::set<std::string> names = {"LayerNormalization",
                                              "GroupNormalization",
                                              "RMSNormalization",
                                              "MeanVarianceNormalization",
                                              "Gelu",
                                              "Celu",
                                              "Shrink",
                                              "Swish",
                                              "Attention",
                                              "RotaryEmbedding",
                                              "AffineGrid",
                                              "CenterCropPad",
                                              "BlackmanWindow",
                                              "HannWindow",
                                              "HammingWindow",
                                              "LinearAttention"};
  return domain == kOwnDomain || (domain.empty() && names.contains(op));
}

Model inlined(const Model& flat, const OpTable& ops) {
  LoadOptions o;
  o.check = false;
  o.keep = [&](const std::string& domain, const std::string& op) {
    return !spelled_out(domain, op) && ops.find(domain, op, 1000) != nullptr;
  };
  Model m = load_model_bytes(serialize_model(flat, ops), "", ops, o);
  m.source = nullptr;
  return m;
}

void make_portable(StepModel& s, const StepOptions& o, const OpTable& ops) {
  s.model = inlined(s.model, ops);
  Graph& g = s.model.edit_main();
  g = g.clone();
  Context c{ops, o.opset};
  for (const StepInput& i : s.inputs)
    if (i.role == "data" || i.role == "target") c.data.push_back(i.name);
  c.fast_scatter = c.keep_indices = c.few_nodes = o.runtime == "onnxruntime";
  portable::run_rules(g, c);
  portable::spell_random(s, o, c);
  portable::simplify(g, c);
  portable::only_float32(g, c);
  portable::simplify(g, c);
  if (o.runtime == "onnxruntime") {
    portable::apply(g, portable::norm_rules(), c);
    portable::share_pools(g);
    portable::simplify(g, c);
    std::vector<std::string> updates;
    for (const StepOutput& out : s.outputs)
      if (out.role == "state") updates.push_back(out.name);
    portable::tidy_names(g);  // updates are made by their formulas, not by an Identity behind them
    portable::join_updates(g, updates, c);
  }
  if (o.indices == "int32") portable::int32_indices(g, c);
  portable::set_opset(s.model, o.opset, ops);
  portable::check_plain(s, o, s.warnings);
  portable::tidy_names(g);
  for (StepInput& i : s.inputs) i.type = g.value(g.find(i.name)).type;
}

// What fixes the sizes that a rule lacks.
[[noreturn]] void needs_sizes(NeedsShape lacking, const Model& sized) {
  std::string flags;
  for (const std::string& name : open_dimensions(sized)) flags += cat(" --dim ", name, "=32");
  const Error& e = lacking.why;
  if (e.hint().empty() && !flags.empty())
    lacking.why = Error(e.kind(), e.code(), e.message(),
                        cat("give the open sizes as numbers, those of your data: ", flags));
  needs_shape(std::move(lacking));
}

// Operators that only --fallback runs are no part of a step for other runtimes.
void refuse_foreign_nodes(const Graph& g) {
  for (const Node& n : g.nodes)
    if (is_foreign(n))
      model_error("OT1260",
                  cat("the step cannot be portable: ", n.label(), " of domain '", n.domain,
                      "' runs in another runtime (--fallback)"),
                  "train it here, with --engine native and --fallback");
}

StepModel made_step(Model sized, int which, const StepOptions& o, const OpTable& ops) {
  StepModel s;
  s.section = which;
  if (o.recurrent == "scan") portable::scan_recurrent(sized, ops);
  if (needs_lowering(sized.training[size_t(which)].algorithm, ops)) sized = lower(sized, ops);
  s.model = flatten_step(sized, which);
  const auto import = s.model.opsets.find("");
  const auto copies = bind_outputs(s.model.edit_main(), sized.training[size_t(which)],
                                   import == s.model.opsets.end() ? o.opset : import->second);
  s.model.edit_main().renumber();
  describe(s, sized, copies);
  portable::describe_ranges(s);
  s.nodes_before = s.model.main.nodes.size();
  if (o.form == "portable") make_portable(s, o, ops);
  return s;
}

}  // namespace

StepModel make_step(const Model& m, int which, const StepOptions& o, const OpTable& ops) {
  check_options(o);
  if (which < 0 || size_t(which) >= m.training.size())
    usage_error("OT1261",
                cat("the file has ", m.training.size(),
                    m.training.size() == 1 ? " training section" : " training sections",
                    ", there is no section ", which),
                "sections count from 0:  --step 0");
  refuse_foreign_nodes(m.main);
  refuse_foreign_nodes(m.training[size_t(which)].algorithm);
  const Model sized = with_sizes(m, o, ops);
  StepModel s;
  if (auto lacking = apply_rules([&] { s = made_step(sized, which, o, ops); }))
    needs_sizes(std::move(*lacking), sized);
  return s;
}

}  // namespace onnxtrain
