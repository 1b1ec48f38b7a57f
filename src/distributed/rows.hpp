// Which values of a training step belong to rows of the batch, which are sums over its rows, and
// which are the same for all rows. A batch can be cut into blocks of rows when every value that the
// step needs is one of the three.
#pragma once
#include <string>
#include <vector>

#include "op/op.hpp"

namespace onnxtrain {

struct RowClass {
  enum Kind : uint8_t {
    kSame,     // the same for every block
    kRows,     // rows of the batch, in order, along `axis`
    kPartial,  // the value of the batch is the sum of those of the blocks
    kAverage,  // statistics of a block; those of the batch are their mean, by rows
    kMixed     // not to be had from blocks; `why` says which node and why
  };
  Kind kind = kSame;
  int axis = 0;
  int64_t outer = 1;  // of the axis: what changes more slowly than the rows
  // kSame: 0 known before the step, 1 after counts have been added over the blocks, 2 after
  // gradients have. The others: the latest that they are made of.
  int stage = 0;
  bool varies = false;  // depends on something that is differentiated by
  std::string why = {};
  // Made of rows in their places (0), of rows in the places of their neighbours (1), or of both
  // (2).
  uint8_t turned = 0;

  static RowClass rows(int axis, int64_t outer = 1) { return {kRows, axis, outer}; }
  static RowClass partial() { return {kPartial, 0}; }
  static RowClass average() { return {kAverage, 0}; }
  static RowClass mixed(std::string why) { return {kMixed, 0, 1, 0, false, std::move(why)}; }
};

// How a mean over rows becomes a part of a sum over blocks.
enum class MeanOf : uint8_t {
  kRows,    // the block's share of the rows
  kLabels,  // the block's share of the weights of its labels (ignored ones count nothing)
};

struct RowAnalysis {
  std::vector<RowClass> values;  // by ValueId
  // What has to be changed in the step that a block runs; values are outputs of nodes.
  std::vector<std::pair<ValueId, MeanOf>> means;  // times the block's share
  std::vector<std::pair<ValueId, size_t>> once;   // node's output, operand: counted in one block
  std::vector<ValueId> random;                    // random numbers of rows
  // Random numbers of rows in a body of a node: the nodes around it by their first outputs, with
  // the attribute that holds the body.
  struct Inside {
    std::vector<std::pair<ValueId, std::string>> path;
    ValueId value;
    int axis;
    int64_t outer;
  };
  std::vector<Inside> random_inside;
  // Rows of which each stands in the place of the one before it, the first in that of the last; or
  // the other way round.
  struct Turn {
    ValueId rows, turned;
    int axis;
    bool back;  // each in the place of the one behind it
  };
  std::vector<Turn> turns;
  std::vector<ValueId> averages;  // times the block's share where they leave it
  // Sums that blocks need of the whole batch: the sum, and the output and operand of a node that
  // reads it.
  struct Count {
    ValueId sum, reader;
    size_t operand;
  };
  std::vector<Count> counts;
  std::vector<ValueId> sums;         // that the update needs
  std::vector<ValueId> batch_norms;  // with statistics of the block
};

// BatchNormalization by the statistics of the batch.
bool uses_batch_statistics(const Node& n);

// What a rule sees of one node.
struct RowNode {
  const Graph& g;
  const Node& n;
  const std::vector<RowClass>& classes;
  int64_t rows;  // of the template batch

  const Shape shape(ValueId v) const { return g.value(v).type.concrete_shape(); }
  const Shape in(size_t i) const { return shape(n.inputs[i]); }
  const Shape out(size_t i = 0) const { return shape(n.outputs[i]); }
  bool has(size_t i) const { return i < n.inputs.size() && n.inputs[i] != kNone; }
  const RowClass& at(size_t i) const { return classes[size_t(n.inputs[i])]; }
  bool is_rows(size_t i) const { return has(i) && at(i).kind == RowClass::kRows; }
  // Only these inputs, at most, are rows.
  bool only_rows(std::initializer_list<size_t> allowed) const;
  const Tensor* constant(size_t i) const;
  // Input i is the same whatever the block: it has no rows, or rows that are all alike.
  bool fits_all_rows(size_t i, int axis) const;
};

// The classes of a node's outputs when at least one input is rows and none is partial or mixed.
// Empty: no rule, `why` may say more.
struct RowResult {
  std::vector<RowClass> outputs;
  std::string why = {};
  MeanOf mean = MeanOf::kRows;
  bool is_mean = false;     // outputs that are partial have to be multiplied by the share
  bool batch_norm = false;  // statistics of the block
};
RowResult rows_through(const RowNode& n, const Op& op);

// `g`: combined, specialised for a batch of `rows` rows, Gradient nodes as they are. inputs: by
// graph input, the dimension along which it holds rows; -1: it has none. Bodies of If, Loop and
// Scan have the types that go with it. of_block: numbers that follow from the size of a block.
// updates, outputs: what is wanted.
RowAnalysis analyse_rows(const Graph& g, const OpTable& table, int64_t rows,
                         const std::vector<int>& inputs, const std::vector<ValueId>& of_block,
                         const std::vector<ValueId>& updates, const std::vector<ValueId>& outputs);

}  // namespace onnxtrain
