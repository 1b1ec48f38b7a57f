// Steps and evaluations as parts of a larger graph.
#include "convert/whole/parts.hpp"

#include <algorithm>

#include "graph/reads.hpp"
#include "model/batch.hpp"

namespace onnxtrain::whole {

Part::Part(StepModel s, Scope& root) : step_(std::move(s)), graph_(step_.model.main.clone()) {
  const std::vector<char> read = values_read(graph_);
  std::vector<char> input(graph_.values.size(), 0);
  std::vector<ValueId> inputs;
  for (const StepInput& i : step_.inputs) inputs.push_back(graph_.find(i.name));
  for (ValueId v : inputs) input[size_t(v)] = 1;
  graph_.inputs = inputs;
  for (size_t k = 0; k < graph_.values.size(); ++k) {
    ValueDef& d = graph_.values[k];
    if (!read[k] || input[k] || !d.constant.defined()) continue;
    constants_.push_back(root.g.add_constant(d.constant, root.g.unique_name("c/" + d.name)));
    d.constant = {};
    d.initializer = false;
    graph_.inputs.push_back(ValueId(k));
  }
  for (const StepOutput& o : step_.outputs) OT_ASSERT(graph_.find(o.name) != kNone);
  graph_.outputs.clear();
  for (const StepOutput& o : step_.outputs) graph_.outputs.push_back(graph_.find(o.name));
}

std::vector<ValueId> Part::write(Scope& s, const Scope& root,
                                 const std::function<ValueId(const StepInput&)>& given) const {
  std::vector<ValueId> in;
  for (const StepInput& i : step_.inputs) in.push_back(given(i));
  for (ValueId v : constants_) in.push_back(s.use(root, v));
  const size_t first = s.g.nodes.size();
  std::vector<ValueId> out = s.g.append(graph_, in, {});
  for (size_t k = first; k < s.g.nodes.size(); ++k)
    s.g.nodes[k].name = cat(s.g.nodes[k].name, "/", step_.section, "/", k);
  return out;
}

int Part::output(std::string_view role) const {
  for (size_t k = 0; k < step_.outputs.size(); ++k)
    if (step_.outputs[k].role == role) return int(k);
  return -1;
}

namespace {

// Every input that is fed, of the main graph and of the training sections.
std::vector<const ValueDef*> fed_inputs(const Model& m) {
  std::vector<const ValueDef*> all;
  for (ValueId v : m.main.inputs)
    if (!m.main.value(v).constant.defined()) all.push_back(&m.main.value(v));
  for (const TrainingStep& t : m.training)
    for (ValueId v : t.algorithm.inputs)
      if (!t.algorithm.value(v).constant.defined()) all.push_back(&t.algorithm.value(v));
  return all;
}

}  // namespace

RowInputs row_inputs(const Model& m) {
  RowInputs r;
  const std::string rows = rows_symbol(m.main);
  require_rows_first(m.main);
  r.fixed = rows.empty() ? fixed_batch(m.main) : 0;
  if (!rows.empty()) r.symbols.insert(rows);
  for (const ValueDef* d : fed_inputs(m)) {
    const TypeInfo& t = d->type;
    if (!t.is_tensor() || !t.shape || t.shape->empty()) continue;
    const Dim& first = (*t.shape)[0];
    const bool target = m.main.find(d->name) == kNone;
    const bool open = first.symbol == rows || (target && !first.known());
    if (rows.empty() ? r.fixed > 0 && first.value == r.fixed : open) {
      r.names.insert(d->name);
      if (!rows.empty() && !first.symbol.empty()) r.symbols.insert(first.symbol);
    }
  }
  if (r.names.empty())
    model_error("OT1771",
                "no input of the training has rows: neither has the batch a name in inputs and "
                "outputs, nor is it the same number in all of them",
                "name the first dimension of inputs and outputs alike, e.g. [N,3,32,32] -> [N,10]");
  return r;
}

}  // namespace onnxtrain::whole
