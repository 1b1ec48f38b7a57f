// What operators do with rows: one rule per family, by the axis along which the rows lie.
#include "distributed/row_rules.hpp"

#include <algorithm>

#include "op/channels_last.hpp"

namespace onnxtrain {

namespace row_rules {

RowResult all_outputs(const RowNode& n, int axis) {
  return {std::vector<RowClass>(n.n.outputs.size(), RowClass::rows(axis)), {}};
}

// Operands aligned at their last dimension, as numpy broadcasts.
RowResult elementwise(const RowNode& n) {
  const int rank = int(n.out().size());
  int axis = -1;
  for (size_t i = 0; i < n.n.inputs.size(); ++i) {
    if (!n.is_rows(i)) continue;
    const int a = n.at(i).axis + rank - int(n.in(i).size());
    if (axis >= 0 && a != axis) return no("its operands have their rows along different axes");
    axis = a;
  }
  if (axis < 0) return no("its result has no place for the rows");
  for (size_t i = 0; i < n.n.inputs.size(); ++i) {
    if (!n.has(i) || n.is_rows(i)) continue;
    if (!n.fits_all_rows(i, axis - rank + int(n.in(i).size())))
      return no("one operand has a number for every row that does not come from the rows");
  }
  for (size_t i = 0; i < n.n.inputs.size(); ++i)  // a batch of other items beside the rows
    if (n.is_rows(i) && n.in(i)[size_t(n.at(i).axis)] != n.out()[size_t(axis)])
      return no("it repeats the rows");
  return all_outputs(n, axis);
}

// Input 0 is [N, ...] and so is every output; the others have no rows.
RowResult batch_first(const RowNode& n) {
  if (!n.only_rows({0}) || n.at(0).axis != 0) return no("its first axis is not the rows alone");
  return all_outputs(n, 0);
}

// Works along `axis` (attribute, or input `at`): any other may be rows.
RowResult along(const RowNode& n, int64_t axis) {
  const int a = n.at(0).axis, over = normal(axis, n.in(0).size());
  if (!n.only_rows({0})) return no("an operand beside the first belongs to rows");
  if (a == over) return no("it works along the rows");
  return all_outputs(n, a);
}

// All rows stay: the output is as long along them as the input.
RowResult keeps_length(const RowNode& n) {
  if (!n.only_rows({0})) return no("an operand beside the first belongs to rows");
  const size_t a = size_t(n.at(0).axis);
  if (n.out().size() != n.in(0).size() || n.out()[a] != n.in(0)[a])
    return no("it takes some of the rows, or repeats them");
  return all_outputs(n, int(a));
}

RowResult matmul(const RowNode& n) {
  const size_t ra = n.in(0).size(), rb = n.in(1).size(), rank = n.out().size();
  const bool a = n.is_rows(0), b = n.is_rows(1);
  const int contracted_a = int(ra) - 1, contracted_b = rb == 1 ? 0 : int(rb) - 2;
  const bool ca = a && n.at(0).axis == contracted_a, cb = b && n.at(1).axis == contracted_b;
  if (ca && cb) return {{RowClass::partial()}, {}};
  if (ca || cb) return no("it adds over the rows of one operand only");
  if (rb == 1 || ra == 1) {
    if (a && b) return no("it pairs every row with every row");
    return all_outputs(n, a ? n.at(0).axis : n.at(1).axis);
  }
  const int at_a = a ? n.at(0).axis + int(rank) - int(ra) : -1;
  const int at_b = b ? n.at(1).axis + int(rank) - int(rb) : -1;
  if (a && b && (at_a != at_b || at_a >= int(rank) - 2))
    return no("it pairs every row with every row");
  const int axis = a ? at_a : at_b;
  for (size_t i : {size_t(0), size_t(1)})  // batch dimensions
    if (!n.is_rows(i) && axis < int(rank) - 2 &&
        !n.fits_all_rows(i, axis - int(rank) + int(n.in(i).size())))
      return no("one operand has a matrix for every row that does not come from the rows");
  return all_outputs(n, axis);
}

}  // namespace row_rules

namespace {

using namespace row_rules;

RowResult softmax(const RowNode& n) {
  const int64_t axis = n.n.i("axis", n.n.version < 13 ? 1 : -1);
  if (n.n.version >= 13) return along(n, axis);
  if (n.at(0).axis >= normal(axis, n.in(0).size())) return no("it works along the rows");
  return all_outputs(n, n.at(0).axis);
}

RowResult norm_from(const RowNode& n, int64_t axis) {
  if (!n.only_rows({0})) return no("its scale belongs to rows");
  if (n.at(0).axis >= normal(axis, n.in(0).size())) return no("it normalises over the rows");
  RowResult r = all_outputs(n, n.at(0).axis);
  return r;
}

std::vector<int64_t> axes_of(const RowNode& n, size_t at) {
  if (const Tensor* t = n.constant(at)) return t->to_ints();
  return n.n.ints("axes");
}

RowResult reduce(const RowNode& n) {
  const size_t rank = n.in(0).size();
  std::vector<int64_t> axes = axes_of(n, 1);
  if (axes.empty() && n.n.i("noop_with_empty_axes", 0) != 0) return all_outputs(n, n.at(0).axis);
  bool over = axes.empty();
  int before = 0;
  for (int64_t a : axes) {
    const int axis = normal(a, rank);
    over |= axis == n.at(0).axis;
    before += axis < n.at(0).axis;
  }
  if (!over) return all_outputs(n, n.at(0).axis - (n.n.i("keepdims", 1) ? 0 : before));
  const std::string& op = n.n.op;
  if (op != "ReduceSum" && op != "ReduceMean" && op != "ReduceSumSquare" && op != "ReduceL1")
    return no("it is no sum or mean over the rows");
  RowResult r{{RowClass::partial()}, {}};
  r.is_mean = op == "ReduceMean";
  return r;
}

RowResult arg_reduce(const RowNode& n) {
  const int axis = normal(n.n.i("axis", 0), n.in(0).size());
  if (axis == n.at(0).axis) return no("it looks for a place among the rows");
  return all_outputs(n, n.at(0).axis - (!n.n.i("keepdims", 1) && axis < n.at(0).axis));
}

// The same elements in the same order: the rows must still be one factor of one axis.
RowResult reshape(const RowNode& n) {
  if (!n.only_rows({0})) return no("its shape comes from the rows");
  const Shape in = n.in(0), out = n.out();
  int64_t before = n.at(0).outer;  // elements of the same row: how many such groups come first
  for (int d = 0; d < n.at(0).axis; ++d) before *= in[size_t(d)];
  int64_t prefix = 1;
  for (size_t d = 0; d < out.size(); ++d) {
    if (prefix <= before && before < prefix * out[d]) {
      const int64_t outer = before / prefix;
      if (before % prefix != 0 || out[d] % outer != 0 || out[d] / outer % n.rows != 0) break;
      RowResult r = all_outputs(n, int(d));
      r.outputs[0].outer = outer;
      return r;
    }
    prefix *= out[d];
  }
  return no("it tears rows apart");
}

RowResult transpose(const RowNode& n) {
  const size_t rank = n.in(0).size();
  std::vector<int64_t> perm = n.n.ints("perm");
  if (perm.empty()) return all_outputs(n, int(rank) - 1 - n.at(0).axis);
  const auto at = std::find(perm.begin(), perm.end(), n.at(0).axis);
  return all_outputs(n, int(at - perm.begin()));
}

RowResult concat(const RowNode& n) {
  const int axis = normal(n.n.i("axis", 1), n.out().size());
  int rows = -1;
  for (size_t i = 0; i < n.n.inputs.size(); ++i)
    if (n.is_rows(i)) {
      if (rows >= 0 && rows != n.at(i).axis) return no("its operands have rows along other axes");
      rows = n.at(i).axis;
    }
  if (axis == rows) return no("it appends to the rows");
  for (size_t i = 0; i < n.n.inputs.size(); ++i)
    if (!n.is_rows(i) && !n.fits_all_rows(i, rows))
      return no("one operand has a number for every row that does not come from the rows");
  return all_outputs(n, rows);
}

RowResult slice(const RowNode& n) {
  RowResult r = keeps_length(n);
  if (r.outputs.empty()) return r;
  const Tensor* steps = n.constant(4);  // backwards over all rows keeps the length, too
  std::vector<int64_t> axes = axes_of(n, 3);
  if (steps) {
    const std::vector<int64_t> step = steps->to_ints();
    for (size_t k = 0; k < step.size(); ++k)
      if (step[k] < 0 && (axes.empty() ? int(k) : normal(axes[k], n.in(0).size())) == n.at(0).axis)
        return no("it turns the order of the rows around");
  }
  return r;
}

RowResult gather(const RowNode& n) {
  const int axis = normal(n.n.i("axis", 0), n.in(0).size());
  if (n.is_rows(0) && n.is_rows(1)) return no("it picks elements of rows by numbers of rows");
  if (n.is_rows(1)) return all_outputs(n, axis + n.at(1).axis);
  if (n.at(0).axis == axis) return no("it picks rows by their numbers");
  return all_outputs(n,
                     n.at(0).axis < axis ? n.at(0).axis : n.at(0).axis - 1 + int(n.in(1).size()));
}

RowResult gather_elements(const RowNode& n) {
  const int axis = normal(n.n.i("axis", 0), n.in(0).size());
  if (!n.is_rows(0) || !n.is_rows(1) || n.at(0).axis != n.at(1).axis || n.at(0).axis == axis ||
      n.in(0)[size_t(n.at(0).axis)] != n.in(1)[size_t(n.at(0).axis)])
    return no("it picks rows by their numbers");
  return all_outputs(n, n.at(0).axis);
}

RowResult one_hot(const RowNode& n) {
  if (!n.only_rows({0})) return no("its values belong to rows");
  const int axis = normal(n.n.i("axis", -1), n.out().size());
  return all_outputs(n, n.at(0).axis + (axis <= n.at(0).axis));
}

RowResult gemm(const RowNode& n) {
  const bool ta = n.n.i("transA", 0) != 0, tb = n.n.i("transB", 0) != 0;
  const bool a = n.is_rows(0), b = n.is_rows(1);
  const bool ca = a && n.at(0).axis == (ta ? 0 : 1), cb = b && n.at(1).axis == (tb ? 1 : 0);
  if (ca && cb && !n.has(2)) return {{RowClass::partial()}, {}};
  if (ca || cb || (a && b)) return no("it adds over the rows, or pairs every row with every row");
  if (!a && !b) return no("only what it adds belongs to rows");
  const int axis = a ? 0 : 1;
  if (n.has(2) && !n.is_rows(2) && !n.fits_all_rows(2, axis - 2 + int(n.in(2).size())))
    return no("what it adds has a number for every row that does not come from the rows");
  return all_outputs(n, axis);
}

RowResult recurrent(const RowNode& n) {
  const bool last = n.n.i("layout", 0) != 0;
  const int state = last ? 0 : 1;
  if (!n.is_rows(0) || n.at(0).axis != state) return no("its rows are not where its batch is");
  for (size_t i : {size_t(1), size_t(2), size_t(3), size_t(7)})
    if (n.is_rows(i)) return no("a weight of it belongs to rows");
  if (n.has(4) && !n.is_rows(4) && !n.fits_all_rows(4, 0)) return no("its lengths are not rows");
  for (size_t i : {size_t(5), size_t(6)})
    if (n.has(i) && (n.is_rows(i) ? n.at(i).axis != state : !n.fits_all_rows(i, state)))
      return no("its initial state has a number for every row that does not come from the rows");
  RowResult r = all_outputs(n, state);
  if (!r.outputs.empty()) r.outputs[0] = RowClass::rows(last ? 0 : 2);
  return r;
}

RowResult attention(const RowNode& n) {
  for (size_t i = 0; i < n.n.inputs.size(); ++i) {
    if (!n.has(i)) continue;
    if (i < 3 && !n.is_rows(i)) return no("one of query, key and value has no rows");
    if (n.is_rows(i) && n.at(i).axis != 0) return no("its first axis is not the rows alone");
    if (i == 3 && !n.is_rows(i) && n.in(i).size() > 2 && !n.fits_all_rows(i, 0))
      return no("its mask has rows that do not come from the rows");
  }
  return all_outputs(n, 0);
}

RowResult class_loss(const RowNode& n) {
  if (!n.only_rows({0, 1}) || !n.is_rows(0) || n.at(0).axis != 0)
    return no("its weights belong to rows, or its first axis is not the rows");
  if (!n.is_rows(1) && !n.fits_all_rows(1, 0)) return no("its labels do not come from the rows");
  RowResult r = all_outputs(n, 0);
  const std::string reduction = n.n.s("reduction", "mean");
  if (reduction == "none") return r;
  r.outputs[0] = RowClass::partial();
  r.is_mean = reduction == "mean";
  if (n.has(2) || n.n.has("ignore_index")) r.mean = MeanOf::kLabels;
  return r;
}

RowResult batch_norm(const RowNode& n) {
  if (!n.only_rows({0}) || n.at(0).axis != 0) return no("its first axis is not the rows alone");
  RowResult r = all_outputs(n, 0);
  if (!uses_batch_statistics(n.n)) return r;
  for (size_t k = 1; k < r.outputs.size(); ++k) r.outputs[k] = RowClass::average();
  r.batch_norm = true;
  return r;
}

// The second output numbers the elements of the whole batch.
RowResult max_pool(const RowNode& n) {
  RowResult r = batch_first(n);
  if (r.outputs.size() > 1)
    r.outputs[1] = RowClass::mixed(cat(n.n.label(), ": its indices count over the whole batch"));
  return r;
}

RowResult expand(const RowNode& n) {
  if (!n.only_rows({0})) return no("its shape comes from the rows");
  const int axis = n.at(0).axis + int(n.out().size()) - int(n.in(0).size());
  if (n.out()[size_t(axis)] != n.in(0)[size_t(n.at(0).axis)]) return no("it repeats the rows");
  return all_outputs(n, axis);
}

const Rules& rules() {
  static const Rules all = [] {
    Rules r;
    auto each = [&](std::initializer_list<const char*> names, const Rule& rule) {
      for (const char* name : names) r[name] = rule;
    };
    each({"CastLike"}, [](const RowNode& n) { return all_outputs(n, n.at(0).axis); });
    each({"Identity", "Dropout", "Cast", "Where", "Clip", "Detach", "DropoutGrad", "IsNaN", "IsInf",
          "Not", "Mod", "BitShift", "QuantizeLinear", "DequantizeLinear"},
         elementwise);
    each({"MaxPool"}, max_pool);
    each({"Conv", "ConvTranspose", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool",
          "GlobalLpPool", "LRN", "InstanceNormalization", "GroupNormalization", "DepthToSpace",
          "SpaceToDepth", "ImageScaler"},
         batch_first);
    each({"Softmax", "LogSoftmax", "Hardmax"}, softmax);
    each({"LpNormalization"}, [](const RowNode& n) { return along(n, n.n.i("axis", -1)); });
    each({"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"},
         [](const RowNode& n) { return norm_from(n, n.n.i("axis", -1)); });
    each({"MeanVarianceNormalization"}, [](const RowNode& n) {
      for (int64_t a : n.n.ints("axes", {0, 2, 3}))
        if (normal(a, n.in(0).size()) == n.at(0).axis) return no("it normalises over the rows");
      return all_outputs(n, n.at(0).axis);
    });
    each({"ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceMax",
          "ReduceMin", "ReduceProd", "ReduceLogSum", "ReduceLogSumExp"},
         reduce);
    each({"ArgMax", "ArgMin"}, arg_reduce);
    each({"Reshape", "Flatten", "Squeeze", "Unsqueeze"}, reshape);
    each({"Transpose"}, transpose);
    each({"Concat"}, concat);
    each({"Slice"}, slice);
    each({"Pad", "Tile", "Resize", "Upsample", "Trilu"}, [](const RowNode& n) {
      if (n.n.op == "Trilu" && n.at(0).axis >= int(n.in(0).size()) - 2)
        return no("it looks at the numbers of the rows");
      return keeps_length(n);
    });
    each({"Split", "TopK"},
         [](const RowNode& n) { return along(n, n.n.i("axis", n.n.op == "Split" ? 0 : -1)); });
    each({"CumSum"}, [](const RowNode& n) {
      const Tensor* axis = n.constant(1);
      return axis ? along(n, axis->to_ints().at(0)) : no("its axis is not a constant");
    });
    each({"Gather"}, gather);
    each({"GatherElements"}, gather_elements);
    each({"GridSample"}, [](const RowNode& n) {
      for (size_t i : {size_t(0), size_t(1)})
        if (!n.is_rows(i) || n.at(i).axis != 0) return no("its first axis is not the rows alone");
      return all_outputs(n, 0);
    });
    each({"OneHot"}, one_hot);
    each({"Expand"}, expand);
    each({"MatMul"}, matmul);
    each({"Gemm"}, gemm);
    each({"LSTM", "GRU", "RNN"}, recurrent);
    each({"Attention"}, attention);
    each({"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}, class_loss);
    each({"BatchNormalization"}, batch_norm);
    each({"RandomNormalLike", "RandomUniformLike", "Bernoulli"}, keeps_length);
    add_rules_of_tables(r);
    add_rarer_rules(r);
    return r;
  }();
  return all;
}

}  // namespace

RowResult rows_through(const RowNode& n, const Op& op) {
  for (ValueId v : n.n.outputs)
    if (v != kNone && !n.g.value(v).type.concrete())
      return no("the shape of its result depends on the data");
  for (ValueId v : n.n.inputs)
    if (v != kNone && !n.g.value(v).type.concrete())
      return no("the shape of an operand depends on the data");
  int64_t outer = 0;
  for (size_t i = 0; i < n.n.inputs.size(); ++i) {
    if (!n.is_rows(i)) continue;
    if (outer != 0 && outer != n.at(i).outer) return no("its operands have rows in other orders");
    outer = n.at(i).outer;
  }
  const auto it = rules().find(n.n.op);
  const bool simple = op.broadcasts || channels_last_rule(op).elementwise;
  if (it == rules().end() && !simple) return no("what it does with rows is not known");
  RowResult r = it != rules().end() ? it->second(n) : elementwise(n);
  static constexpr std::string_view kViews[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
  if (std::find(std::begin(kViews), std::end(kViews), n.n.op) == std::end(kViews))
    for (RowClass& c : r.outputs) c.outer = outer;
  return r;
}

}  // namespace onnxtrain
