// If, Loop, Scan and SequenceMap: do node and body agree in counts, axes and element types? For
// `check`; running finds the same, at the latest in the iteration where it matters.
#include <algorithm>

#include "onnx/check/checker.hpp"

namespace onnxtrain {
namespace {

class Control {
 public:
  Control(const Graph& g, const Node& n, std::string where, Findings& out)
      : g_(g), n_(n), where_(std::move(where)), out_(out) {}

  void run() {
    if (n_.is("If")) branch();
    if (n_.is("Loop")) loop();
    if (n_.is("Scan") && n_.version >= 9) scan();
    if (n_.is("SequenceMap")) sequence_map();
  }

 private:
  void error(const std::string& message, const std::string& hint = {}) {
    out_.error("OT1150", "", cat(where_, ": ", n_.label(), ": ", message),
               hint.empty() ? form() : hint);
  }

  // What the standard says of this operator.
  std::string form() const {
    if (n_.is("Loop"))
      return "Loop's body is (iteration, condition, states...) -> (condition, states..., scan "
             "outputs...)";
    if (n_.is("Scan"))
      return "Scan's body is (states..., one element of each scan input) -> (states..., scan "
             "outputs...)";
    if (n_.is("If")) return "If takes a bool; its branches take nothing and return the same values";
    return "SequenceMap's body takes one item of each sequence and returns one of each result";
  }

  const Graph* body(const char* name) {
    GraphPtr g = n_.graph(name);
    if (!g) error(cat("the attribute '", name, "' is missing"));
    return g.get();
  }

  // `count` things there, `wanted` expected; false with a finding when they differ.
  bool same(size_t count, size_t wanted, const std::string& what, const std::string& expected) {
    if (count == wanted) return true;
    error(cat(what, " ", count, ", expected ", wanted, " (", expected, ")"));
    return false;
  }

  // Types that must be the same kind and element type where both are known.
  void agree(const TypeInfo& a, const std::string& a_name, const TypeInfo& b,
             const std::string& b_name) {
    using Kind = TypeInfo::Kind;
    if (a.kind == Kind::kUnknown || b.kind == Kind::kUnknown) return;
    if (a.kind == Kind::kOptional || b.kind == Kind::kOptional) return;  // may hold the other
    const bool elements = a.elem != DType::kUndefined && b.elem != DType::kUndefined;
    if (a.kind == b.kind && (!a.is_tensor() || !elements || a.elem == b.elem)) return;
    error(cat(a_name, " is ", to_string(a), ", but ", b_name, " is ", to_string(b)),
          "both must have the same element type");
  }

  void must_be(const TypeInfo& t, DType elem, const std::string& what) {
    if (t.kind == TypeInfo::Kind::kUnknown || t.elem == DType::kUndefined) return;
    if (!t.is_tensor() || t.elem != elem)
      error(cat(what, " is ", to_string(t), ", expected ", dtype_name(elem)));
    else if (t.concrete() && num_elements(t.concrete_shape()) != 1)
      error(cat(what, " is ", to_string(t), ", expected one element"));
  }

  static std::string output(const char* graph, const Graph& b, size_t k) {
    return cat("output ", k, " ('", b.value_name(b.outputs[k]), "') of ", graph);
  }
  const TypeInfo& type(ValueId v) const { return g_.value(v).type; }
  bool has(size_t k) const { return k < n_.inputs.size() && n_.inputs[k] != kNone; }

  void branch() {
    const Graph *then = body("then_branch"), *otherwise = body("else_branch");
    if (!then || !otherwise) return;
    if (has(0)) must_be(type(n_.inputs[0]), DType::kBool, "the condition");
    for (const Graph* b : {then, otherwise})
      if (!b->inputs.empty())
        error(cat("the branch '", b->name, "' has ", b->inputs.size(), " inputs, expected none"),
              "a branch reads values of the graph around it by their names");
    const size_t a = then->outputs.size(), b = otherwise->outputs.size();
    if (a != b)
      return error(cat("then_branch has ", a, " outputs and else_branch has ", b),
                   "both branches must return the same values");
    if (!same(n_.outputs.size(), a, "the node's outputs are", "as many as its branches return"))
      return;
    for (size_t k = 0; k < a; ++k)
      agree(then->value(then->outputs[k]).type, output("then_branch", *then, k),
            otherwise->value(otherwise->outputs[k]).type, output("else_branch", *otherwise, k));
  }

  // States: inputs `first`... of the node, `body_in`... and `body_out`... of the body.
  void states(const Graph& b, size_t first, size_t count, size_t body_in, size_t body_out) {
    for (size_t k = 0; k < count; ++k) {
      const TypeInfo& inside = b.value(b.inputs[body_in + k]).type;
      const std::string name =
          cat("input ", body_in + k, " ('", b.value_name(b.inputs[body_in + k]), "') of the body");
      if (has(first + k))
        agree(type(n_.inputs[first + k]), cat("'", g_.value_name(n_.inputs[first + k]), "'"),
              inside, name);
      agree(inside, name, b.value(b.outputs[body_out + k]).type,
            output("the body", b, body_out + k));
    }
  }

  void loop() {
    const Graph* b = body("body");
    if (!b) return;
    if (n_.inputs.size() < 2)
      return error(cat("has ", n_.inputs.size(),
                       " inputs, expected at least 2 (trip count and "
                       "condition; either may be empty)"));
    if (has(0)) must_be(type(n_.inputs[0]), DType::kInt64, "the trip count");
    if (has(1)) must_be(type(n_.inputs[1]), DType::kBool, "the condition");
    const size_t count = n_.inputs.size() - 2;
    if (!same(b->inputs.size(), count + 2, "the body's inputs are",
              cat("iteration, condition and ", count, " states")))
      return;
    if (b->outputs.size() < count + 1)
      return error(cat("the body returns ", b->outputs.size(), " values, expected at least ",
                       count + 1, " (the condition and ", count, " states)"));
    if (!same(n_.outputs.size(), b->outputs.size() - 1, "the node's outputs are",
              "the states and scan outputs that the body returns"))
      return;
    must_be(b->value(b->outputs[0]).type, DType::kBool, output("the body", *b, 0));
    states(*b, 2, count, 2, 1);
  }

  void list(const char* key, size_t count, const char* what) {
    const std::vector<int64_t> v = n_.ints(key);
    if (!v.empty()) same(v.size(), count, cat("the entries of '", key, "' are"), what);
    if (std::string_view(key).ends_with("directions"))
      for (int64_t d : v)
        if (d != 0 && d != 1) error(cat("'", key, "' has ", d, ", expected 0 or 1"));
  }

  void scan() {
    const Graph* b = body("body");
    if (!b) return;
    const int64_t scanned = n_.i("num_scan_inputs", 0);
    const size_t inputs = n_.inputs.size();
    if (scanned < 1 || scanned > int64_t(inputs))
      return error(cat("num_scan_inputs is ", scanned, ", the node has ", inputs, " inputs"));
    if (!same(b->inputs.size(), inputs, "the body's inputs are", "one for each input of the node"))
      return;
    const size_t count = inputs - size_t(scanned);
    if (b->outputs.size() < count)
      return error(cat("the body returns ", b->outputs.size(), " values, expected at least ", count,
                       " (the states)"));
    if (!same(n_.outputs.size(), b->outputs.size(), "the node's outputs are",
              "the states and scan outputs that the body returns"))
      return;
    list("scan_input_axes", size_t(scanned), "one for each scan input");
    list("scan_input_directions", size_t(scanned), "one for each scan input");
    list("scan_output_axes", b->outputs.size() - count, "one for each scan output");
    list("scan_output_directions", b->outputs.size() - count, "one for each scan output");
    const std::vector<int64_t> axes = n_.ints("scan_input_axes");
    int64_t length = -1;
    for (size_t k = 0; k < size_t(scanned); ++k) {
      if (!has(count + k)) continue;
      const TypeInfo& t = type(n_.inputs[count + k]);
      const int64_t axis = k < axes.size() ? axes[k] : 0;
      if (!t.is_tensor() || !t.shape) continue;
      const int64_t rank = int64_t(t.shape->size());
      if (axis < -rank || axis >= rank) {
        error(cat("scan_input_axes has ", axis, " for '", g_.value_name(n_.inputs[count + k]),
                  "', which has ", rank, " dimensions"));
        continue;
      }
      const Dim& d = (*t.shape)[size_t(axis < 0 ? axis + rank : axis)];
      if (d.known() && length >= 0 && d.value != length)
        error(cat("scan inputs have lengths ", length, " and ", d.value));
      if (d.known()) length = d.value;
    }
    states(*b, 0, count, 0, 0);
  }

  void sequence_map() {
    const Graph* b = body("body");
    if (!b) return;
    if (same(b->inputs.size(), n_.inputs.size(), "the body's inputs are",
             "one for each input of the node"))
      same(b->outputs.size(), n_.outputs.size(), "the body's outputs are",
           "one for each output of the node");
  }

  const Graph& g_;
  const Node& n_;
  std::string where_;
  Findings& out_;
};

void check_bodies(const Graph& g, const std::string& where, Findings& out) {
  for (const Node& n : g.nodes) {
    if (out.full()) return;
    Control(g, n, where, out).run();
    for (const auto& [name, a] : n.attrs)
      if (const auto* sub = std::get_if<GraphPtr>(&a); sub && *sub)
        check_bodies(**sub, cat(where, ", ", n.label(), " ", name), out);
  }
}

}  // namespace

void check_control_flow(const Model& m, Findings& out) {
  check_bodies(m.main, "main graph", out);
  for (size_t k = 0; k < m.training.size(); ++k) {
    const std::string where = cat("training_info[", k, "]");
    check_bodies(m.training[k].initialization, where + " initialization", out);
    check_bodies(m.training[k].algorithm, where + " algorithm", out);
  }
}

}  // namespace onnxtrain
