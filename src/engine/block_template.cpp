// Specialises a section for two batch sizes and follows the rows through it.
#include "engine/block_template.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "infer/specialise.hpp"
#include "infer/subgraphs.hpp"
#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

constexpr const char* kHint = "train in one process, without --micro-blocks";

// Two primes that divide no size of the model: what has such a size is rows.
std::pair<int64_t, int64_t> odd_sizes(const Graph& g, const ArrayRef* arrays,
                                      const std::vector<int>& axes) {
  std::vector<int64_t> sizes;
  for (const ValueDef& d : g.values)
    if (d.constant.defined())
      for (int64_t n : d.constant.shape()) sizes.push_back(n);
  for (size_t k = 0; k < g.inputs.size(); ++k)
    for (int d = 0; d < arrays[k].rank; ++d)
      if (d != axes[k]) sizes.push_back(arrays[k].dims[d]);
  std::vector<int64_t> found;
  for (int64_t p = 7; found.size() < 2; p += 2) {
    bool good = true;
    for (int64_t q = 3; q * q <= p; q += 2) good = good && p % q != 0;
    for (int64_t n : sizes) good = good && (n < p || n % p != 0);
    if (good) found.push_back(p);
  }
  return {found[0], found[1]};
}

Graph specialised(const Graph& general, const std::vector<ValueId>& keep, const ArrayRef* arrays,
                  const std::vector<int>& axes, int64_t rows, ThreadPool& pool) {
  Graph g = general.clone();
  for (size_t k = 0; k < g.inputs.size(); ++k) {
    Shape shape(arrays[k].dims, arrays[k].dims + arrays[k].rank);
    if (axes[k] >= 0) shape[size_t(axes[k])] = rows;
    g.value(g.inputs[k]).type = TypeInfo::tensor(arrays[k].dtype, shape);
  }
  g.remove_dead(keep);
  do {
    specialise(g, all_ops(), pool, {.loop_lengths = true});
  } while (inline_constant_ifs(g));
  type_bodies(g, all_ops());
  return g;
}

std::vector<ValueId> values_of(const SplitStep::Updates& updates) {
  std::vector<ValueId> values;
  for (const auto& [v, state] : updates) values.push_back(v);
  return values;
}

// A number of the larger batch divided by that of the smaller, when it is the same for all; 0: not.
double ratio_of(const Tensor& small, const Tensor& large) {
  if (small.shape() != large.shape() || !dtype_is_float(small.dtype()) || small.size() == 0)
    return 0;
  const std::vector<double> a = small.to_doubles(), b = large.to_doubles();
  const double ratio = b[0] / a[0];
  for (size_t k = 0; k < a.size(); ++k)
    if (!(std::fabs(b[k] / a[k] - ratio) <= 1e-5 * std::fabs(ratio))) return 0;
  return ratio;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.dtype() == DType::kString || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

struct Reader {
  ValueId value, node;  // node: its first output
  double ratio;         // of the two batch sizes; 0: none
};

// A number inside of a body: not to be had for the whole batch.
[[noreturn]] void refuse_inside(const Node& around, const Node& n) {
  model_error(
      "OT5010",
      cat("this training cannot be cut into blocks of rows: ", around.label(), "\n  ", n.label(),
          " inside of it reads a number that follows from the number of "
          "rows"),
      kHint);
}

// Constants that follow from the size of the batch and are read as numbers, not as shapes.
std::vector<Reader> batch_numbers(const Graph& a, const Graph& b) {
  std::vector<Reader> found;
  if (a.nodes.size() != b.nodes.size())
    model_error("OT5010",
                "this training cannot be cut into blocks of rows: its nodes depend on the number "
                "of rows",
                kHint);
  for (size_t k = 0; k < a.nodes.size(); ++k) {
    const Node& n = a.nodes[k];
    for (const auto& [key, attr] : n.attrs)
      if (const auto* body = std::get_if<GraphPtr>(&attr))
        for (const Reader& r : batch_numbers(**body, *b.nodes[k].graph(key)))
          refuse_inside(n, (*body)->nodes[size_t((*body)->producer_of(r.node))]);
    const Op& op = all_ops().get(n);
    const std::vector<int> shapes = op.shape_values_of ? op.shape_values_of(n) : op.shape_values;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const ValueId v = n.inputs[i];
      if (v == kNone || std::find(shapes.begin(), shapes.end(), int(i)) != shapes.end()) continue;
      const ValueDef &x = a.value(v), &y = b.value(v);
      if (!x.is_constant() || !y.is_constant() || same_bytes(x.constant, y.constant)) continue;
      if (x.constant.shape() != y.constant.shape()) continue;  // rows of their own: looked at later
      found.push_back({v, n.outputs[0], ratio_of(x.constant, y.constant)});
    }
  }
  return found;
}

// How a number of the whole batch follows from that of a block: by its size, or not at all.
BatchNumber::How how_it_follows(const Reader& r, double growth) {
  if (std::fabs(r.ratio - growth) < 1e-5 * growth) return BatchNumber::kGrows;
  return std::fabs(r.ratio * growth - 1) < 1e-5 ? BatchNumber::kShrinks : BatchNumber::kGiven;
}

// Numbers beside statistics of a block are the block's own; `whole`: the analysis without them.
std::vector<ValueId> numbers_of_block(const std::vector<Reader>& readers, const RowAnalysis& whole,
                                      double growth) {
  std::vector<ValueId> found, others;
  for (const Reader& r : readers)
    if (how_it_follows(r, growth) == BatchNumber::kGiven)
      (whole.values[size_t(r.node)].kind == RowClass::kAverage ? found : others).push_back(r.value);
  for (ValueId v : others)
    if (std::find(found.begin(), found.end(), v) != found.end())
      model_error("OT5010",
                  "this training cannot be cut into blocks of rows: a number that follows from the "
                  "number of rows is read by statistics of a block, and by something of the batch",
                  kHint);
  return found;
}

// What a block takes of the whole batch: all numbers but those beside its statistics.
std::vector<BatchNumber> of_whole_batch(const std::vector<Reader>& readers, const RowAnalysis& a,
                                        double growth) {
  std::vector<BatchNumber> found;
  for (const Reader& r : readers) {
    if (a.values[size_t(r.node)].kind == RowClass::kAverage) continue;
    const auto known = [&](const BatchNumber& k) { return k.value == r.value; };
    if (std::none_of(found.begin(), found.end(), known))
      found.push_back({r.value, how_it_follows(r, growth)});
  }
  return found;
}

}  // namespace

void no_open_rows() {
  model_error("OT5011",
              "no input of the training has an open number of rows: the file fixes its batch size, "
              "so a batch cannot be cut into blocks",
              "export the model with an open batch size, or train in one process");
}

SplitStep split_into_blocks(const Graph& g, const SplitStep::Updates& updates,
                            const ArrayRef* arrays, ThreadPool& pool, const std::vector<int>& axes,
                            const BlockOptions& options, int blocks, int64_t rows) {
  if (std::none_of(axes.begin(), axes.end(), [](int a) { return a >= 0; })) no_open_rows();
  const std::vector<ValueId> keep = values_of(updates);
  const auto [small, large] = odd_sizes(g, arrays, axes);
  Graph t, other;
  try {
    t = specialised(g, keep, arrays, axes, small, pool);
    other = specialised(g, keep, arrays, axes, large, pool);
  } catch (const Error& e) {
    specialised(g, keep, arrays, axes, rows, pool);  // what does not fit anyway is told as it is
    model_error("OT5010",
                cat("this training cannot be cut into blocks of rows: with ", small, " or ", large,
                    " rows and the other sizes of this batch it does not fit together (does the "
                    "file or an input fix the number of rows?)\n  ",
                    e.message()),
                kHint);
  }
  const double growth = double(large) / double(small);
  const std::vector<Reader> readers = batch_numbers(t, other);
  const RowAnalysis whole = analyse_rows(t, all_ops(), small, axes, {}, keep, t.outputs);
  if (options.sync_norm && !whole.batch_norms.empty()) {
    // statistics are those of the batch, and so are all numbers beside them
    std::vector<BatchNumber> given;
    for (const Reader& r : readers)
      if (std::none_of(given.begin(), given.end(),
                       [&](const BatchNumber& b) { return b.value == r.value; }))
        given.push_back({r.value, BatchNumber::kGiven});
    return split_step(g, updates, t, whole, given, options, blocks);
  }
  const std::vector<ValueId> of_block = numbers_of_block(readers, whole, growth);
  const RowAnalysis a = analyse_rows(t, all_ops(), small, axes, of_block, keep, t.outputs);
  return split_step(g, updates, t, a, of_whole_batch(readers, a, growth), options, blocks);
}

std::vector<Tensor> numbers_of_batch(const Graph& g, const SplitStep::Updates& updates,
                                     const ArrayRef* arrays, const std::vector<int>& axes,
                                     int64_t rows, const std::vector<ValueId>& values,
                                     ThreadPool& pool) {
  const Graph t = specialised(g, values_of(updates), arrays, axes, rows, pool);
  std::vector<Tensor> numbers;
  for (ValueId v : values) {
    OT_ASSERT(t.value(v).is_constant());
    numbers.push_back(t.value(v).constant);
  }
  return numbers;
}

}  // namespace onnxtrain
