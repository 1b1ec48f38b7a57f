// The rules of training_info that need types and dependencies: C12, C16, C17, C18.
#include <algorithm>

#include "onnx/check/checker.hpp"

namespace onnxtrain {
namespace {

// A value of the combined graph: of the algorithm, or of the main graph.
struct Ref {
  const Graph* graph = nullptr;
  ValueId id = kNone;
  const TypeInfo& type() const { return graph->value(id).type; }
};

class StepTypes {
 public:
  StepTypes(const Model& m, const TrainingStep& s, int index, Findings& out)
      : m_(m), s_(s), where_(cat("training_info[", index, "]")), out_(out) {
    for (size_t v = 0; v < s.algorithm.values.size(); ++v)
      own_.emplace(s.algorithm.values[v].name, ValueId(v));
    for (size_t v = 0; v < m.main.values.size(); ++v)
      main_.emplace(m.main.values[v].name, ValueId(v));
    for (size_t v = 0; v < s.initialization.values.size(); ++v)
      initial_.emplace(s.initialization.values[v].name, ValueId(v));
  }

  void run() {
    for (const auto& [key, value] : s_.update_binding)
      c12(key, find(value), value, "update_binding");
    for (const auto& [key, value] : s_.initialization_binding) {
      auto it = initial_.find(value);
      if (it != initial_.end())
        c12(key, {&s_.initialization, it->second}, value, "initialization_binding");
    }
    for (const Node& n : s_.algorithm.nodes) {
      if (n.domain != kTrainingDomain) continue;
      if (n.op == "Gradient")
        gradient(n);
      else
        optimizer(n);
    }
  }

 private:
  Ref find(const std::string& name) const {
    if (auto it = own_.find(name); it != own_.end()) return {&s_.algorithm, it->second};
    if (auto it = main_.find(name); it != main_.end()) return {&m_.main, it->second};
    return {};
  }

  // C12: type and static shape of value and key match.
  void c12(const std::string& key, Ref value, const std::string& value_name, const char* list) {
    const Ref variable = find(key);
    if (value.id == kNone || variable.id == kNone) return;  // reported elsewhere
    const TypeInfo &a = variable.type(), &b = value.type();
    bool fits = b.kind == TypeInfo::Kind::kUnknown ||
                (b.is_tensor() && (b.elem == DType::kUndefined || b.elem == a.elem));
    if (fits && b.shape && a.shape) {
      fits = a.shape->size() == b.shape->size();
      for (size_t i = 0; fits && i < a.shape->size(); ++i) {
        const Dim &x = (*a.shape)[i], &y = (*b.shape)[i];
        fits = !x.known() || !y.known() || x.value == y.value;
      }
    }
    if (!fits)
      out_.error("OT1312", "C12",
                 cat(where_, ": ", list, " '", key, "' = '", value_name,
                     "': the state variable is ", to_string(a), ", the value is ", to_string(b)),
                 "both must have the same type and shape");
  }

  // C16 and C17.
  void gradient(const Node& n) {
    std::vector<std::string> xs, zs;
    std::string y;
    if (const Attr* a = n.find("xs"))
      if (auto* l = std::get_if<std::vector<std::string>>(a)) xs = *l;
    if (const Attr* a = n.find("zs"))
      if (auto* l = std::get_if<std::vector<std::string>>(a)) zs = *l;
    if (const Attr* a = n.find("y"))
      if (auto* l = std::get_if<std::string>(a)) y = *l;
    std::vector<std::string> floating = xs;
    floating.push_back(y);
    for (const std::string& name : floating) {
      const Ref r = find(name);
      if (r.id == kNone || r.type().kind == TypeInfo::Kind::kUnknown ||
          r.type().elem == DType::kUndefined)
        continue;
      if (!r.type().is_tensor() || !dtype_is_differentiable(r.type().elem))
        out_.error("OT1317", "C17",
                   cat(where_, ", ", n.label(), ": '", name, "' is ", to_string(r.type()),
                       "; gradients exist for float, double, float16 and bfloat16"));
    }
    reaches(n, xs, y);
    std::vector<std::string> all = xs;
    all.insert(all.end(), zs.begin(), zs.end());
    if (!independent(n, all)) return;
    // not sufficient: what else y depends on takes the values of this step
    const std::unordered_set<std::string> needs = ancestors(y, {all.begin(), all.end()});
    for (const Graph* g : {&m_.main, &s_.algorithm})
      for (ValueId v : g->inputs) {
        const ValueDef& def = g->value(v);
        if (def.constant.defined() || needs.count(def.name) == 0) continue;
        if (!dtype_is_differentiable(def.type.elem)) continue;
        out_.warning("OT1316", "C16",
                     cat(where_, ", ", n.label(), ": '", y, "' also depends on the input '",
                         def.name, "', which is neither in xs nor in zs"),
                     cat("add '", def.name, "' to zs"));
      }
  }

  // C16: y is computed from xs.
  void reaches(const Node& n, const std::vector<std::string>& xs, const std::string& y) {
    if (find(y).id == kNone) return;  // reported elsewhere
    const std::unordered_set<std::string> needs = ancestors(y, {});
    std::string idle;
    size_t count = 0;
    for (const std::string& x : xs) {
      if (x == y || needs.count(x) != 0 || find(x).id == kNone) continue;
      idle += cat(count++ ? ", '" : "'", x, "'");
    }
    if (count == 0) return;
    const std::string text = cat(where_, ", ", n.label(), ": '", y, "' is not computed from ", idle,
                                 ": that gradient is always zero");
    if (count == xs.size())
      out_.error("OT1316", "C16", text, cat("name values in xs that '", y, "' depends on"));
    else
      out_.warning("OT1316", "C16", text, cat("remove ", idle, " from xs"));
  }

  // One pass over all nodes: no name of the list may be computed from another one.
  bool independent(const Node& n, const std::vector<std::string>& names) {
    std::unordered_set<std::string> roots(names.begin(), names.end());
    std::unordered_map<std::string, const std::string*> from;  // value -> a root it depends on
    for (const Graph* g : {&m_.main, &s_.algorithm})
      for (const Node& node : g->nodes) {
        const std::string* root = nullptr;
        for (ValueId v : g->reads(node)) {
          const std::string& name = g->value_name(v);
          if (roots.count(name) != 0)
            root = &name;
          else if (auto it = from.find(name); it != from.end())
            root = it->second;
          if (root != nullptr) break;
        }
        for (ValueId v : node.outputs)
          if (v != kNone && root != nullptr) from.emplace(g->value_name(v), root);
      }
    for (const std::string& name : names)
      if (auto it = from.find(name); it != from.end()) {
        out_.error("OT1316", "C16",
                   cat(where_, ", ", n.label(), ": '", name, "' is computed from '", *it->second,
                       "', so the two are not independent"),
                   cat("remove '", name, "' or '", *it->second, "' from xs and zs"));
        return false;
      }
    return true;
  }

  // Names that `name` is computed from, not looking behind `stop`.
  std::unordered_set<std::string> ancestors(const std::string& name,
                                            const std::unordered_set<std::string>& stop) const {
    std::unordered_set<std::string> seen;
    std::vector<Ref> todo = {find(name)};
    while (!todo.empty()) {
      const Ref r = todo.back();
      todo.pop_back();
      if (r.id == kNone) continue;
      const ValueDef& def = r.graph->value(r.id);
      if (def.name != name && (stop.count(def.name) != 0 || !seen.insert(def.name).second))
        continue;
      if (def.name == name && stop.count(name) != 0) continue;
      if (def.producer < 0) {  // perhaps a capture of the algorithm
        if (r.graph == &s_.algorithm)
          if (auto it = main_.find(def.name);
              it != main_.end() && m_.main.value(it->second).producer >= 0)
            todo.push_back({&m_.main, it->second}), seen.erase(def.name);
        continue;
      }
      for (ValueId v : r.graph->reads(r.graph->nodes[size_t(def.producer)]))
        todo.push_back({r.graph, v});
    }
    return seen;
  }

  // C18: counts of inputs and outputs, R and T scalars.
  void optimizer(const Node& n) {
    struct Form {
      const char* op;
      size_t in, out;
    };
    constexpr Form kForms[] = {{"Adagrad", 3, 2}, {"Momentum", 3, 2}, {"Adam", 4, 3}};
    for (const Form& f : kForms) {
      if (n.op != f.op) continue;
      const size_t k = n.inputs.size() < 2 ? 0 : (n.inputs.size() - 2) / f.in;
      if (n.inputs.size() < 2 + f.in || (n.inputs.size() - 2) % f.in != 0 ||
          n.outputs.size() != k * f.out)
        out_.error(
            "OT1318", "C18",
            cat(where_, ", ", n.label(), " has ", n.inputs.size(), " inputs and ", n.outputs.size(),
                " outputs; for k tensors it needs 2 + ", f.in, "k and ", f.out, "k"));
      else
        same_shapes(n, k);
      scalar(n, 0, "R", true);
      scalar(n, 1, "T", false);
    }
  }

  // Inputs of a group (2, 2 + k, 2 + 2k, ...) belong to one tensor: parameter, gradient, state.
  void same_shapes(const Node& n, size_t k) {
    for (size_t i = 2 + k; i < n.inputs.size(); ++i) {
      const size_t first = 2 + (i - 2) % k;
      if (n.inputs[i] == kNone || n.inputs[first] == kNone) continue;
      const ValueDef &p = s_.algorithm.value(n.inputs[first]), &v = s_.algorithm.value(n.inputs[i]);
      const TypeInfo &a = typed(p), &b = typed(v);
      bool fits = !a.is_tensor() || !b.is_tensor() || a.elem == DType::kUndefined ||
                  b.elem == DType::kUndefined || a.elem == b.elem;
      if (a.shape && b.shape) {
        fits = fits && a.shape->size() == b.shape->size();
        for (size_t d = 0; fits && d < a.shape->size(); ++d)
          fits = !(*a.shape)[d].known() || !(*b.shape)[d].known() ||
                 (*a.shape)[d].value == (*b.shape)[d].value;
      }
      if (!fits)
        out_.error("OT1318", "C18",
                   cat(where_, ", ", n.label(), ": '", v.name, "' is ", to_string(b),
                       ", but belongs to '", p.name, "', which is ", to_string(a)),
                   "gradient and state have the type and shape of their parameter");
    }
  }

  // A value of the main graph that the algorithm reads has its type there.
  const TypeInfo& typed(const ValueDef& d) const {
    if (d.type.kind != TypeInfo::Kind::kUnknown) return d.type;
    auto it = main_.find(d.name);
    return it == main_.end() ? d.type : m_.main.value(it->second).type;
  }

  void scalar(const Node& n, size_t input, const char* what, bool floating) {
    if (input >= n.inputs.size() || n.inputs[input] == kNone) return;
    const TypeInfo& t = s_.algorithm.value(n.inputs[input]).type;
    if (t.kind == TypeInfo::Kind::kUnknown) return;
    const bool one = !t.concrete() || num_elements(t.concrete_shape()) == 1;
    const bool kind = t.elem == DType::kUndefined ||
                      (floating ? dtype_is_float(t.elem) : t.elem == DType::kInt64);
    if (!t.is_tensor() || !one || !kind)
      out_.error("OT1318", "C18",
                 cat(where_, ", ", n.label(), ": ", what, " must be a scalar ",
                     floating ? "float" : "int64", ", but '",
                     s_.algorithm.value_name(n.inputs[input]), "' is ", to_string(t)),
                 "store it as a tensor of shape []");
  }

  const Model& m_;
  const TrainingStep& s_;
  std::string where_;
  Findings& out_;
  std::unordered_map<std::string, ValueId> own_, main_, initial_;
};

}  // namespace

void check_training_types(const Model& m, Findings& out) {
  for (size_t i = 0; i < m.training.size() && !out.full(); ++i)
    StepTypes(m, m.training[i], int(i), out).run();
}

}  // namespace onnxtrain
