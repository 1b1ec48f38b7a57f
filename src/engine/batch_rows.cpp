// Finds the dimension of each input that counts rows, by the names of dimensions.
#include "engine/batch_rows.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace onnxtrain {

namespace {

const std::vector<Dim>* dims_of(const ValueDef& input) {
  const TypeInfo& t = input.type;
  return t.is_tensor() && t.shape && !t.shape->empty() ? &*t.shape : nullptr;
}

int place_of(const std::vector<Dim>& dims, const std::string& symbol) {
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].symbol == symbol) return int(d);
  return -1;
}

// Of the names that inputs begin with, the one that most inputs have, at any place; of several the
// one that more begin with. Empty: there is none.
std::string name_of_rows(const std::vector<ValueDef>& inputs) {
  std::map<std::string, std::pair<int, int>> seen;  // inputs that have it, that begin with it
  std::vector<std::string> order;
  for (const ValueDef& d : inputs)
    if (const auto* dims = dims_of(d)) {
      std::set<std::string> names;
      for (const Dim& one : *dims) names.insert(one.symbol);
      for (const std::string& name : names) ++seen[name].first;
      if (const std::string& first = dims->front().symbol; !first.empty()) {
        ++seen[first].second;
        order.push_back(first);
      }
    }
  std::string best;
  for (const std::string& name : order)
    if (best.empty() || seen[name] > seen[best]) best = name;
  return best;
}

}  // namespace

std::vector<int> row_axes(const std::vector<ValueDef>& inputs) {
  std::vector<int> axes;
  for (const ValueDef& d : inputs) axes.push_back(has_open_rows(d) ? 0 : -1);
  const std::string rows = name_of_rows(inputs);
  if (rows.empty()) return axes;
  std::set<std::string> beside;  // other dimensions of what has rows
  for (const ValueDef& d : inputs)
    if (const auto* dims = dims_of(d); dims && place_of(*dims, rows) >= 0)
      for (const Dim& one : *dims)
        if (one.symbol != rows) beside.insert(one.symbol);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const auto* dims = dims_of(inputs[k]);
    if (!dims) continue;
    const int at = place_of(*dims, rows);
    const std::string& first = dims->front().symbol;
    if (at >= 0)
      axes[k] = at;
    else if (!first.empty() && beside.count(first) != 0)
      axes[k] = -1;
  }
  return axes;
}

}  // namespace onnxtrain
