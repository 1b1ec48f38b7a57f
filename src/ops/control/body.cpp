// Bodies of control flow: checks, scan outputs, building of backward bodies.
#include "ops/control/body.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/budget.hpp"
#include "core/text.hpp"
#include "graph/reads.hpp"
#include "op/fold.hpp"
#include "op/model_refusal.hpp"

namespace onnxtrain::ops {

const Graph& body_of(const Node& n, std::string_view attr) {
  GraphPtr g = n.graph(attr);
  if (!g) model_error("OT1106", cat("attribute '", attr, "' is missing"));
  return *g;
}

void check_body(const Graph& g, size_t inputs, size_t min_outputs) {
  if (g.inputs.size() != inputs)
    model_error("OT1150", cat("the subgraph '", g.name, "' has ", g.inputs.size(),
                              " inputs, expected ", inputs));
  if (g.outputs.size() < min_outputs)
    model_error("OT1150", cat("the subgraph '", g.name, "' has ", g.outputs.size(),
                              " outputs, expected at least ", min_outputs));
}

std::vector<Value> run_iteration(ValueCtx& c, const char* op, int64_t i, std::vector<Value> in,
                                 uint64_t stream) {
  count_trip(op);
  try {
    return c.run_graph("body", std::move(in), stream);
  } catch (Error& e) {
    e.add_place(cat("in iteration ", with_commas(i + 1)));
    throw;
  }
}

Tensor stacked(const std::vector<Tensor>& parts, const TypeInfo& declared, int64_t axis,
               bool backwards) {
  if (!parts.empty()) {
    axis = normalize_axis(axis, parts[0].rank() + 1, "axis of a scan output");
    for (const Tensor& p : parts)
      if (p.shape() != parts[0].shape())
        model_error("OT1151", cat("a scan output has shape ", to_string(parts[0].shape()),
                                  " in one iteration and ", to_string(p.shape()), " in another"));
    return stack(parts, axis, backwards, "a scan output");
  }
  Shape shape;
  if (declared.shape)
    for (const Dim& d : *declared.shape) shape.push_back(d.known() ? d.value : 0);
  axis = normalize_axis(axis, int64_t(shape.size()) + 1, "axis of a scan output");
  shape.insert(shape.begin() + axis, 0);
  return Tensor(declared.elem == DType::kUndefined ? DType::kFloat : declared.elem, shape);
}

BodyBuilder::BodyBuilder(GradBuilder& outer, std::string name)
    : outer_(outer), graph_(std::make_shared<Graph>()) {
  graph_->name = std::move(name);
}

ValueId BodyBuilder::capture(ValueId v) {
  for (const auto& c : graph_->captures)
    if (c.outer == v) return c.inner;
  if (auto it = constants_.find(v); it != constants_.end()) return it->second;
  const ValueDef& d = outer_.graph().value(v);
  // a constant is copied, so that rules see its value; unless it is a variable of the gradient
  if (d.is_constant() && !outer_.wants_value(v))
    return constants_[v] = graph_->add_constant(d.constant, graph_->unique_name(d.name));
  ValueId inner = graph_->add_value(graph_->unique_name(d.name), d.type);
  graph_->captures.push_back({v, inner});
  return inner;
}

ValueId BodyBuilder::input(std::string_view name, TypeInfo type) {
  ValueId v = graph_->add_value(graph_->unique_name(name), std::move(type));
  graph_->inputs.push_back(v);
  return v;
}

std::vector<ValueId> BodyBuilder::inline_body(const Graph& body,
                                              const std::vector<ValueId>& inputs) {
  std::vector<ValueId> captured;
  for (const auto& c : body.captures) captured.push_back(capture(c.outer));
  size_t first = graph_->nodes.size();
  std::vector<ValueId> outs = graph_->append(body, inputs, captured);
  // types and constants that follow from those of the inputs (shapes that the file declares are
  // hints); what a branch that is never taken would complain about is left to the run
  std::unordered_map<ValueId, size_t> ranks;
  for (size_t k = first; k < graph_->nodes.size(); ++k)
    for (ValueId v : graph_->nodes[k].outputs)
      if (v != kNone && graph_->value(v).type.is_tensor() && graph_->value(v).type.shape) {
        ranks[v] = graph_->value(v).type.shape->size();
        graph_->value(v).type.shape = std::nullopt;
      }
  size_t kept = first;
  for (size_t k = first; k < graph_->nodes.size(); ++k) {
    bool folded = false;
    model_refusal([&] {
      infer_node(*graph_, graph_->nodes[k], outer_.table());
      folded = fold_node(*graph_, graph_->nodes[k], outer_.table());
    });
    if (folded) continue;
    // where the sizes do not follow, the declared number of dimensions is what is known; none is a
    // whole shape, which is never taken from a declaration
    for (ValueId v : graph_->nodes[k].outputs)
      if (auto it = ranks.find(v);
          it != ranks.end() && it->second > 0 && !graph_->value(v).type.shape)
        graph_->value(v).type.shape = std::vector<Dim>(it->second);
    if (kept != k) graph_->nodes[kept] = std::move(graph_->nodes[k]);
    ++kept;
  }
  graph_->nodes.resize(kept);
  graph_->renumber();
  return outs;
}

std::vector<ValueId> BodyBuilder::gradients(const std::vector<ValueId>& ys,
                                            const std::vector<ValueId>& cotangents,
                                            const std::vector<ValueId>& xs) {
  std::vector<ValueId> grads = outer_.differentiate(*graph_, ys, cotangents, xs);
  GradBuilder b = builder();
  for (size_t k = 0; k < xs.size(); ++k)
    if (grads[k] == kNone) {
      grads[k] = b.zeros_like(xs[k]);
      graph_->value(grads[k]).type = graph_->value(xs[k]).type;
    }
  return grads;
}

GraphPtr BodyBuilder::finish() {
  // an output must be a value of its own, not an input, a capture or another output
  GradBuilder b = builder();
  for (size_t k = 0; k < graph_->outputs.size(); ++k) {
    ValueId v = graph_->outputs[k];
    bool again = std::find(graph_->outputs.begin(), graph_->outputs.begin() + long(k), v) !=
                 graph_->outputs.begin() + long(k);
    if (graph_->value(v).producer >= 0 && !again) continue;
    graph_->outputs[k] = b.call("Identity", {v});
    graph_->value(graph_->outputs[k]).type = graph_->value(v).type;
  }
  graph_->remove_dead();
  const std::vector<char> read = values_read(*graph_);
  std::erase_if(graph_->captures, [&](const Graph::Capture& c) { return !read[size_t(c.inner)]; });
  return graph_;
}

std::vector<ValueId> Captures::spread(const std::vector<ValueId>& grads) const {
  std::vector<ValueId> out(all.size(), kNone);
  for (size_t w = 0; w < wanted.size(); ++w) {
    auto at = std::find(all.begin(), all.end(), wanted[w]);
    out[size_t(at - all.begin())] = grads[w];
  }
  return out;
}

Captures captures_of(GradBuilder& b) {
  Captures c;
  for (const auto& [key, a] : b.node().attrs)
    if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
      for (const auto& cap : (*sub)->captures) {
        c.all.push_back(cap.outer);
        if (b.wants_value(cap.outer) &&
            std::find(c.wanted.begin(), c.wanted.end(), cap.outer) == c.wanted.end())
          c.wanted.push_back(cap.outer);
      }
  return c;
}

}  // namespace onnxtrain::ops
