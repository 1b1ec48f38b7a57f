// Every node in the form of one opset. The rules have already written what changed its form between
// opsets in one that did not; here remain attributes that came later and have their default.
#include "onnx/opset.hpp"

#include <algorithm>

#include "convert/portable/stages.hpp"

namespace onnxtrain::portable {

namespace {

struct Late {
  const char* op;
  const char* attr;
  Attr value;  // what it means when it is not there
};

const std::vector<Late>& late_attributes() {
  static const std::vector<Late> all = {
      {"Cast", "saturate", int64_t(1)},
      {"Cast", "round_mode", std::string("up")},
      {"Reshape", "allowzero", int64_t(0)},
      {"Resize", "antialias", int64_t(0)},
      {"Resize", "keep_aspect_ratio_policy", std::string("stretch")},
      {"BatchNormalization", "training_mode", int64_t(0)},
      {"AveragePool", "dilations", std::vector<int64_t>{}},
      {"ScatterElements", "reduction", std::string("none")},
      {"ScatterND", "reduction", std::string("none")},
      {"Gelu", "approximate", std::string("none")},
  };
  return all;
}

bool is_default(const Attr& have, const Attr& none) {
  if (const auto* v = std::get_if<std::vector<int64_t>>(&have))
    return std::all_of(v->begin(), v->end(), [](int64_t n) { return n == 1; });
  if (const auto* i = std::get_if<int64_t>(&have)) return *i == std::get<int64_t>(none);
  if (const auto* s = std::get_if<std::string>(&have)) return *s == std::get<std::string>(none);
  return false;
}

// The same words for the same thing.
void rename_modes(Node& n, int opset) {
  if (!n.is("GridSample") || !n.has("mode")) return;
  const std::string mode = n.s("mode", "");
  const bool late = opset >= 20;
  for (const auto& [early, now] : {std::pair{"bilinear", "linear"}, {"bicubic", "cubic"}})
    if (mode == (late ? early : now)) n.attrs["mode"] = std::string(late ? now : early);
}

// The next opset in which the node has a form.
std::string later_opset(const Node& n, int opset) {
  for (int v = opset + 1; v <= kNewestOpset; ++v)
    if (misfit(n, v).empty()) return cat("a later one does:  --opset ", v);
  return "--form compact keeps the opset that the file has";
}

void set_nodes(Graph& g, int opset) {
  for (Node& n : g.nodes) {
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        auto copy = std::make_shared<Graph>((*sub)->clone());
        set_nodes(*copy, opset);
        *sub = copy;
      }
    if (!n.domain.empty()) continue;
    rename_modes(n, opset);
    for (const Late& l : late_attributes())
      if (n.op == l.op)
        if (auto it = n.attrs.find(l.attr); it != n.attrs.end() && is_default(it->second, l.value))
          n.attrs.erase(it);
    if (const std::string why = misfit(n, opset); !why.empty())
      model_error("OT1260",
                  cat("the step cannot be written in opset ", opset, ": ", n.label(), " ", why),
                  later_opset(n, opset));
    n.version = opset;
  }
}

}  // namespace

void set_opset(Model& m, int opset, const OpTable&) {
  set_nodes(m.edit_main(), opset);
  m.opsets = {{"", opset}};
}

}  // namespace onnxtrain::portable
