// Which numbers an input may hold: class numbers of a loss, rows of a table. Runtimes that are
// given others read zeros, or ignore them, without a word.
#include <algorithm>

#include "convert/portable/stages.hpp"

namespace onnxtrain::portable {

namespace {

// The input that v is, past nodes that only rename it or change its shape or type; null: it is
// none.
StepInput* input_of(StepModel& s, ValueId v) {
  const Graph& g = s.model.main;
  while (v != kNone && g.value(v).producer >= 0) {
    const Node& n = g.nodes[size_t(g.value(v).producer)];
    const bool same = n.is("Identity") || n.is("Cast") || n.is("Reshape") || n.is("Flatten") ||
                      n.is("Squeeze") || n.is("Unsqueeze") || n.is("Transpose");
    if (!same) return nullptr;
    v = n.inputs[0];
  }
  for (StepInput& i : s.inputs)
    if (v != kNone && i.name == g.value_name(v) && (i.role == "data" || i.role == "target"))
      return dtype_is_integer(i.type.elem) ? &i : nullptr;
  return nullptr;
}

int64_t size_at(const Graph& g, ValueId v, int64_t axis) {
  const TypeInfo& t = g.value(v).type;
  if (!t.is_tensor() || !t.shape) return -1;
  if (axis < 0) axis += int64_t(t.shape->size());
  if (axis < 0 || axis >= int64_t(t.shape->size())) return -1;
  return (*t.shape)[size_t(axis)].value;
}

void limit(StepInput* i, int64_t least, int64_t most) {
  if (!i) return;
  const IndexRange all = i->range.value_or(IndexRange{least, most, {}});
  i->range = IndexRange{std::max(all.least, least), std::min(all.most, most), all.ignored};
}

}  // namespace

void describe_ranges(StepModel& s) {
  const Graph& g = s.model.main;
  for (const Node& n : g.nodes) {
    if (n.is("SoftmaxCrossEntropyLoss") || n.is("NegativeLogLikelihoodLoss")) {
      const int64_t classes = size_at(g, n.inputs[0], 1);
      StepInput* labels = input_of(s, n.inputs[1]);
      if (classes < 1 || !labels) continue;
      limit(labels, 0, classes - 1);
      if (n.has("ignore_index")) labels->range->ignored = n.i("ignore_index", 0);
    } else if (n.is("Gather")) {
      const int64_t rows = size_at(g, n.inputs[0], n.i("axis", 0));
      if (rows > 0) limit(input_of(s, n.inputs[1]), -rows, rows - 1);
    }
  }
}

}  // namespace onnxtrain::portable
