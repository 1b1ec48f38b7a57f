// The part of the enclosing graph between what a body's Gradient nodes name and what the body
// captures is computed again inside.
#include "autodiff/bodies.hpp"

#include <map>
#include <set>

#include "autodiff/path.hpp"
#include "op/op.hpp"

namespace onnxtrain {

namespace {

// Of one body: the tensors that Gradient nodes name in xs and zs, and their ys; those of bodies
// inside it as far as they come from here.
struct Named {
  std::set<ValueId> xs, ys;
};

// Captures of `g` that `ys` are computed from, not going beyond `stop`.
std::set<ValueId> ancestors(const Graph& g, const std::set<ValueId>& ys,
                            const std::set<ValueId>& stop) {
  std::set<ValueId> need = ys;
  for (size_t k = g.nodes.size(); k-- > 0;) {
    bool leads = false;
    for (ValueId v : g.nodes[k].outputs) leads |= need.count(v) != 0 && stop.count(v) == 0;
    if (leads)
      for (ValueId v : g.reads(g.nodes[k])) need.insert(v);
  }
  return need;
}

Named named_in(const Graph& g) {
  Named all;
  for (const Node& n : g.nodes) {
    if (n.is("Gradient", kTrainingDomain) && n.has("resolved")) {
      const size_t count = n.strings("xs").size() + n.strings("zs").size();
      all.xs.insert(n.inputs.begin() + long(count), n.inputs.begin() + long(2 * count));
      all.ys.insert(n.inputs.back());
    }
    for (const auto& [key, a] : n.attrs) {
      const GraphPtr* sub = std::get_if<GraphPtr>(&a);
      if (!sub) continue;
      const Named inner = named_in(**sub);
      const std::set<ValueId> need = ancestors(**sub, inner.ys, inner.xs);
      for (const auto& c : (*sub)->captures) {
        if (inner.xs.count(c.inner) != 0) all.xs.insert(c.outer);
        if (need.count(c.inner) != 0) all.ys.insert(c.outer);
      }
    }
  }
  return all;
}

class Import {
 public:
  Import(const Graph& outer, Graph& body) : outer_(outer), body_(body) {
    for (const auto& c : body.captures) here_.emplace(c.outer, c.inner);
  }

  void run() {
    const Named named = named_in(body_);
    std::vector<ValueId> xs;
    std::set<ValueId> stop;
    for (const auto& c : body_.captures)
      if (named.xs.count(c.inner) != 0 && stop.insert(c.outer).second) xs.push_back(c.outer);
    if (xs.empty()) return;
    const std::vector<char> active = depends_on(outer_, xs);
    const std::set<ValueId> need = ancestors(body_, named.ys, named.xs);
    std::set<ValueId> wanted;
    for (const auto& c : body_.captures)
      if (need.count(c.inner) != 0 && stop.count(c.outer) == 0 && active[size_t(c.outer)])
        wanted.insert(c.outer);
    if (!wanted.empty()) copy_nodes(wanted, stop, active);
  }

 private:
  void copy_nodes(const std::set<ValueId>& wanted, const std::set<ValueId>& stop,
                  const std::vector<char>& active) {
    std::set<ValueId> need = wanted;
    std::vector<size_t> taken;
    for (size_t k = outer_.nodes.size(); k-- > 0;) {
      const Node& n = outer_.nodes[k];
      bool take = false;
      for (ValueId v : n.outputs)
        take |= v != kNone && need.count(v) != 0 && stop.count(v) == 0 && active[size_t(v)];
      if (!take) continue;
      const Op* op = all_ops().find(n);
      if (op && op->random)
        model_error("OT1316",
                    cat("a Gradient inside a body would have to repeat ", n.label(),
                        " of the enclosing graph, which draws random numbers"),
                    "put the Gradient node beside it and use its result in the body");
      taken.push_back(k);
      for (ValueId v : outer_.reads(n)) need.insert(v);
    }
    std::vector<Node> own = std::move(body_.nodes);
    body_.nodes.clear();
    std::map<ValueId, ValueId> replaced;
    for (auto k = taken.rbegin(); k != taken.rend(); ++k) copy(outer_.nodes[*k], wanted, replaced);
    body_.nodes.insert(body_.nodes.end(), std::make_move_iterator(own.begin()),
                       std::make_move_iterator(own.end()));
    for (const auto& [before, now] : replaced) body_.replace_uses(before, now);
    body_.renumber();
  }

  void copy(Node n, const std::set<ValueId>& wanted, std::map<ValueId, ValueId>& replaced) {
    for (ValueId& v : n.inputs)
      if (v != kNone) v = inside(v);
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        *sub = std::make_shared<Graph>((*sub)->clone());
        for (auto& c : (*sub)->captures) c.outer = inside(c.outer);
      }
    const std::vector<ValueId> old = n.outputs;
    const std::vector<ValueId> made = body_.add_node(std::move(n), int(old.size()));
    for (size_t k = 0; k < old.size(); ++k) {
      if (old[k] == kNone) {
        body_.nodes.back().outputs[k] = kNone;
        continue;
      }
      body_.value(made[k]).type = outer_.value(old[k]).type;
      if (wanted.count(old[k]) != 0) replaced[here_.at(old[k])] = made[k];
      here_[old[k]] = made[k];
    }
  }

  // The value of the body that stands for one of the enclosing graph.
  ValueId inside(ValueId v) {
    if (auto it = here_.find(v); it != here_.end()) return it->second;
    const ValueDef& d = outer_.value(v);
    ValueId made;
    if (d.is_constant()) {
      made = body_.add_constant(d.constant, body_.unique_name(d.name));
      body_.value(made).type = d.type;
    } else {
      made = body_.add_value(body_.unique_name(d.name), d.type);
      body_.captures.push_back({v, made});
    }
    return here_[v] = made;
  }

  const Graph& outer_;
  Graph& body_;
  std::map<ValueId, ValueId> here_;
};

bool names_anything(const Graph& g) {
  const Named n = named_in(g);
  return !n.xs.empty();
}

}  // namespace

void bring_ways_into_bodies(Graph& g) {
  for (size_t k = 0; k < g.nodes.size(); ++k)
    for (auto& [key, a] : g.nodes[k].attrs) {
      GraphPtr* sub = std::get_if<GraphPtr>(&a);
      if (!sub || !names_anything(**sub)) continue;
      auto body = std::make_shared<Graph>((*sub)->clone());
      Import(g, *body).run();
      bring_ways_into_bodies(*body);
      *sub = body;
    }
}

}  // namespace onnxtrain
