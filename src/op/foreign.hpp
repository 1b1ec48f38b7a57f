// Nodes that another runtime runs (docs/fallback.md). The reader marks operators that this library
// does not know by their version, when there is such a runtime; neighbours become one partition
// (passes/partition.cpp).
#pragma once
#include <memory>

#include "op/op.hpp"

namespace onnxtrain {

// Added to the opset version of a node that another runtime runs.
inline constexpr int kForeignVersion = 1 << 20;
// The same for one whose gradient the file has (kGradientBody).
inline constexpr int kForeignWithGradient = 1 << 21;
// The same for the operator OP_grad that computes a gradient given by register_op: called alone.
inline constexpr int kForeignGradient = 1 << 22;
inline int opset_of_foreign(const Node& n) { return n.version & (kForeignVersion - 1); }
inline bool is_foreign(const Node& n) { return n.version >= kForeignVersion; }
inline bool is_foreign_gradient(const Node& n) { return (n.version & kForeignGradient) != 0; }

// Name of the attribute with the graph (inputs, outputs, dY) -> dX, from a function OP_grad of the
// file.
inline constexpr const char* kGradientBody = "onnxtrain.gradient";
// Ending of the operator that computes a gradient given by register_op.
inline constexpr const char* kGradientEnding = "_grad";

class ForeignRunner {
 public:
  virtual ~ForeignRunner() = default;
  virtual const char* name() const = 0;
  // A graph of foreign nodes without captures.
  virtual std::vector<Tensor> run(const Graph& part, const std::vector<const Tensor*>& inputs) = 0;
  // Has somebody registered a gradient for this operator?
  virtual bool has_gradient(const std::string& domain, const std::string& op) = 0;
};

// Of the whole process; null: unknown operators are an error.
void set_foreign_runner(std::shared_ptr<ForeignRunner> r);
std::shared_ptr<ForeignRunner> foreign_runner();

// The record of a foreign node; null when there is no runner.
const Op* foreign_op(std::string_view domain, std::string_view name, int version);
// Runs a graph of foreign nodes on the inputs of `c`.
void run_foreign_graph(const Graph& part, ValueCtx& c);

}  // namespace onnxtrain
