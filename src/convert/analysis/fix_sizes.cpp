// Open dimensions of a model's inputs that a recipe gives numbers for.
#include <algorithm>
#include <set>

#include "convert/analysis.hpp"
#include "model/batch.hpp"

namespace onnxtrain {
namespace {

using Sizes = std::map<std::string, int64_t>;

void fix_batch(Graph& g, int64_t batch, Sizes& named) {
  if (batch <= 0) return;
  if (const std::string rows = rows_symbol(g); !rows.empty()) {
    named.emplace(rows, batch);
    return;
  }
  for (ValueId v : g.inputs) {
    TypeInfo& t = g.value(v).type;
    if (!t.is_tensor() || !t.shape || t.shape->empty() || (*t.shape)[0].known()) continue;
    if (!(*t.shape)[0].symbol.empty()) named.emplace((*t.shape)[0].symbol, batch);
    (*t.shape)[0] = {batch, {}};
  }
}

std::set<std::string> symbols_of(const Graph& g) {
  std::set<std::string> all;
  for (ValueId v : g.inputs)
    if (const TypeInfo& t = g.value(v).type; t.is_tensor() && t.shape)
      for (const Dim& d : *t.shape)
        if (!d.symbol.empty()) all.insert(d.symbol);
  return all;
}

// INPUT=8,128: the whole shape of an input.
void fix_shape(Graph& g, const std::string& name, const std::vector<int64_t>& sizes, Sizes& named) {
  TypeInfo& t = g.value(g.find(name)).type;
  const auto wrong = [&] {
    usage_error("OT1251",
                cat("the shape ", to_string(Shape(sizes)), " given for input '", name,
                    "' does not fit its type ", to_string(t)),
                "give one size for every dimension, as the type has them");
  };
  if (!t.is_tensor() || (t.shape && t.shape->size() != sizes.size())) wrong();
  if (!t.shape) t.shape.emplace(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    Dim& have = (*t.shape)[d];
    if (have.known() && have.value != sizes[d]) wrong();
    if (!have.symbol.empty() && named.emplace(have.symbol, sizes[d]).first->second != sizes[d])
      wrong();
    have = {sizes[d], {}};
  }
}

}  // namespace

void fix_sizes(Model& m, const Recipe& r, const OpTable& ops) {
  if (r.batch <= 0 && r.dims.empty()) return;
  Graph& g = m.edit_main();
  const std::set<std::string> symbols = symbols_of(g);
  const std::vector<std::string> inputs = m.input_names();
  Sizes named;
  for (const auto& [name, sizes] : r.dims) {
    const bool input = std::find(inputs.begin(), inputs.end(), name) != inputs.end();
    if (symbols.count(name) > 0 && sizes.size() == 1) {
      named[name] = sizes[0];
    } else if (input) {
      fix_shape(g, name, sizes, named);
    } else {
      std::string known;
      for (const std::string& s : symbols) known += " '" + s + "'";
      for (const std::string& s : inputs) known += " '" + s + "'";
      usage_error("OT1251",
                  cat("the model has no open dimension and no input '", name, "'; it has", known),
                  "name one of them, or leave --dim out");
    }
  }
  fix_batch(g, r.batch, named);
  for (ValueDef& d : g.values)
    if (d.type.is_tensor() && d.type.shape)
      for (Dim& x : *d.type.shape)
        if (const auto it = named.find(x.symbol); it != named.end()) x = {it->second, {}};
  for (size_t k = 0; k < g.nodes.size(); ++k) infer_node(g, Node(g.nodes[k]), ops);
}

std::string open_sizes(const Model& m) {
  const std::string rows = rows_symbol(m.main);
  std::string other;
  for (const std::string& name : symbols_of(m.main))
    if (other.empty() && name != rows) other = name;
  const std::string batch = "--batch N (batch=N) fixes the number of rows";
  if (other.empty()) return rows.empty() ? "" : " for any number of rows; " + batch;
  return cat(" for any size; --dim ", other, "=N (dims={'", other, "': N}) fixes '", other, "', ",
             batch);
}

}  // namespace onnxtrain
