// Merges nodes that compute the same thing from the same values.
#include <algorithm>
#include <map>

#include "graph/same.hpp"
#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

bool append_attr(std::string& key, const Attr& a) {
  auto raw = [&](const auto& v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
  key += char('a' + a.index());
  if (auto* i = std::get_if<int64_t>(&a))
    raw(*i);
  else if (auto* f = std::get_if<float>(&a))
    raw(*f);
  else if (auto* s = std::get_if<std::string>(&a))
    key += *s;
  else if (auto* is = std::get_if<std::vector<int64_t>>(&a))
    for (auto v : *is) raw(v);
  else if (auto* fs = std::get_if<std::vector<float>>(&a))
    for (auto v : *fs) raw(v);
  else
    return false;
  key += ';';
  return true;
}

}  // namespace

void pass_cse(Graph& g, const PassContext& c) {
  std::map<std::string, size_t> seen;
  std::vector<ValueId> to(g.values.size());
  for (size_t k = 0; k < to.size(); ++k) to[k] = ValueId(k);
  auto fixed = [&](ValueId v) {
    return std::find(c.keep.begin(), c.keep.end(), v) != c.keep.end() ||
           std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end();
  };
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    Node& n = g.nodes[k];
    for (ValueId& v : n.inputs)
      if (v != kNone) v = to[size_t(v)];
    const Op* op = c.table.find(n);
    if (!op || op->random || op->run_values) continue;
    std::string key = cat(n.domain, ":", n.op, ":", n.version, ":", n.outputs.size(), ":");
    for (ValueId v : n.inputs)
      key += (v == kNone ? std::string("_") : value_key(g.value(v), v)) + ",";
    for (ValueId v : n.outputs) key += v == kNone ? '_' : 'o';
    bool comparable = true;
    for (const auto& [name, a] : n.attrs) {
      key += name + "=";
      comparable &= append_attr(key, a);
    }
    if (!comparable) continue;
    auto [it, fresh] = seen.emplace(std::move(key), k);
    if (fresh) continue;
    const Node& first = g.nodes[it->second];
    bool any_fixed = false;
    for (ValueId v : n.outputs) any_fixed |= v != kNone && fixed(v);
    if (any_fixed) continue;
    for (size_t o = 0; o < n.outputs.size(); ++o)
      if (n.outputs[o] != kNone) to[size_t(n.outputs[o])] = first.outputs[o];
  }
  for (Node& n : g.nodes)
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        auto copy = std::make_shared<Graph>(**sub);
        for (auto& cap : copy->captures) cap.outer = to[size_t(cap.outer)];
        *sub = std::move(copy);
      }
}

}  // namespace onnxtrain
