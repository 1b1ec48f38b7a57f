// LSTM, GRU and RNN as Scan, before the step is lowered: the gradient of a Scan is a Scan, and its
// length may be open. And every Scan in the form that all runtimes with Scan have.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "convert/portable/rules.hpp"
#include "convert/portable/stages.hpp"
#include "op/identity_node.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

// Has it a node of a recurrent layer?
bool is_recurrent(const Graph& g, const OpTable& ops) {
  return std::any_of(g.nodes.begin(), g.nodes.end(),
                     [&](const Node& n) { return training_form(n, ops) != nullptr; });
}

// Values keep their numbers: the algorithm reads them.
void scan_nodes(Graph& g, const OpTable& ops, int opset) {
  if (!is_recurrent(g, ops)) return;
  std::vector<Node> old = std::move(g.nodes);
  g.nodes.clear();
  for (Node& n : old) {
    const Op* op = training_form(n, ops);
    if (!op) {
      g.nodes.push_back(std::move(n));
      continue;
    }
    Node asked = n;
    asked.attrs["as_scan"] = int64_t(1);  // ops/nn/recurrent_shape.hpp
    GradBuilder b(g, ops, asked, {}, opset);
    Values made;
    try {
      made = op->lower(b);
    } catch (Error& e) {
      e.add_place(cat("while writing ", n.label(), " as a Scan"));
      throw;
    }
    for (size_t k = 0; k < n.outputs.size(); ++k)
      if (n.outputs[k] != kNone) g.nodes.push_back(identity_node(g, made[k], n.outputs[k], opset));
  }
  g.renumber();
}

// ---------------------------------------------------------------- axes and directions

std::vector<int64_t> perm_to_front(int64_t rank, int64_t axis) {
  std::vector<int64_t> perm{axis};
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis) perm.push_back(d);
  return perm;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> back(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) back[size_t(perm[d])] = int64_t(d);
  return back;
}

ValueId reversed(Site& s, ValueId v) { return s.slice(v, 0, -1, INT64_MIN, -1); }

struct Way {  // of one scanned value
  int64_t axis = 0, back = 0;
};

std::vector<Way> ways(Site& s, const char* axes, const char* directions, const Values& values) {
  const size_t count = values.size();
  const std::vector<int64_t> a = s.node().ints(axes, std::vector<int64_t>(count, 0)),
                             d = s.node().ints(directions, std::vector<int64_t>(count, 0));
  std::vector<Way> all(count);
  for (size_t k = 0; k < count; ++k) {
    all[k] = {k < a.size() ? a[k] : 0, k < d.size() ? d[k] : 0};
    if (all[k].axis < 0 && values[k] != kNone) all[k].axis += s.need_rank(values[k]);
  }
  return all;
}

// The first element first, along the first axis: ReferenceEvaluator and others have no more.
Values plain_scan(Site& s) {
  const Node n = s.node();
  const size_t scanned = size_t(n.i("num_scan_inputs", 0));
  if (scanned > n.inputs.size()) return {};
  const size_t states = n.inputs.size() - scanned;
  Values in = n.inputs, seen(n.inputs.begin() + int64_t(states), n.inputs.end());
  if (n.outputs.size() < states) return {};
  const Values stacked(n.outputs.begin() + int64_t(states), n.outputs.end());
  const std::vector<Way> from = ways(s, "scan_input_axes", "scan_input_directions", seen),
                         to = ways(s, "scan_output_axes", "scan_output_directions", stacked);
  auto plain = [](const Way& w) { return w.axis == 0 && w.back == 0; };
  if (std::all_of(from.begin(), from.end(), plain) && std::all_of(to.begin(), to.end(), plain))
    return {};
  for (size_t k = 0; k < scanned; ++k) {
    ValueId& v = in[states + k];
    if (from[k].axis != 0) v = s.transpose(v, perm_to_front(s.need_rank(v), from[k].axis));
    if (from[k].back != 0) v = reversed(s, v);
  }
  GradBuilder::Attrs attrs{{"body", *n.find("body")}, {"num_scan_inputs", int64_t(scanned)}};
  Values out = s.call_n("Scan", in, int(n.outputs.size()), attrs);
  for (size_t k = 0; k < out.size(); ++k) {
    if (n.outputs[k] == kNone) continue;
    TypeInfo type = s.type(n.outputs[k]);
    const Way w = k < states ? Way{} : to[k - states];
    if (w.axis != 0 && type.is_tensor() && type.shape)
      std::rotate(type.shape->begin(), type.shape->begin() + w.axis,
                  type.shape->begin() + w.axis + 1);
    s.graph().value(out[k]).type = type;
    if (w.back != 0) out[k] = reversed(s, out[k]);
    if (w.axis != 0)
      out[k] = s.transpose(out[k], inverse(perm_to_front(s.need_rank(n.outputs[k]), w.axis)));
  }
  return out;
}

}  // namespace

void scan_recurrent(Model& m, const OpTable& ops) {
  const auto import = m.opsets.find("");
  const int opset = import == m.opsets.end() ? 17 : import->second;
  m.unshare_main();
  scan_nodes(m.edit_main(), ops, opset);
  for (TrainingStep& t : m.training)
    if (is_recurrent(t.algorithm, ops)) scan_nodes(t.edit_algorithm(), ops, opset);
}

Rules scan_rules() { return {{"Scan", "from_the_first", plain_scan}}; }

}  // namespace onnxtrain::portable
