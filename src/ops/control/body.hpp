// What If, Loop, Scan and SequenceMap share: bodies, scan outputs, and the parts of their
// gradients.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "core/budget.hpp"
#include "op/carries.hpp"
#include "op/grad_builder.hpp"
#include "ops/common/values.hpp"

namespace onnxtrain::ops {

// Node::random_stream of a node whose bodies repeat those of a forward node, a loop from the last
// iteration to the first: random operators in them draw the numbers of that iteration again.
inline constexpr uint64_t kRepeatsForward = 1;

// The body, which must have this many inputs and at least this many outputs.
const Graph& body_of(const Node& n, std::string_view attr);
void check_body(const Graph& g, size_t inputs, size_t min_outputs);

// Runs the body for iteration i (from 0) of `op`, counted against the budget of the run; an error
// says which iteration it was. `stream`: as of ValueCtx::run_graph.
std::vector<Value> run_iteration(ValueCtx& c, const char* op, int64_t i, std::vector<Value> in,
                                 uint64_t stream);

// Scan outputs of the iterations so far: the list itself counts against the budget, too, before it
// grows.
class Collected {
 public:
  void add(Tensor t) {
    if (parts_.size() == parts_.capacity()) {
      const size_t more = std::max<size_t>(16, 2 * parts_.capacity());
      charge_.set((parts_.capacity() + more) * sizeof(Tensor));  // old and new while it moves
      parts_.reserve(more);
      charge_.set(more * sizeof(Tensor));
    }
    parts_.push_back(std::move(t));
  }
  const std::vector<Tensor>& parts() const { return parts_; }
  void clear() {
    parts_ = {};
    charge_.set(0);
  }

 private:
  std::vector<Tensor> parts_;
  Charge charge_;
};

// The stacked values of one scan output; when there was no iteration, an empty tensor of the type
// that the body declares.
Tensor stacked(const std::vector<Tensor>& parts, const TypeInfo& declared, int64_t axis,
               bool backwards);

// ---------------------------------------------------------------- gradients

// A graph under construction that will be a subgraph of the node being differentiated.
class BodyBuilder {
 public:
  BodyBuilder(GradBuilder& outer, std::string name);
  // The value that stands for `v` of the enclosing graph (made on first use).
  ValueId capture(ValueId v);
  ValueId input(std::string_view name, TypeInfo type);
  // Copies the nodes of `body` into this graph; its captures are captured here too.
  std::vector<ValueId> inline_body(const Graph& body, const std::vector<ValueId>& inputs);
  // Gradients of ys with these cotangents; where nothing flows: zeros.
  std::vector<ValueId> gradients(const std::vector<ValueId>& ys,
                                 const std::vector<ValueId>& cotangents,
                                 const std::vector<ValueId>& xs);
  void output(ValueId v) { graph_->outputs.push_back(v); }
  GradBuilder builder() { return GradBuilder(*graph_, outer_.table(), Node{}, {}, outer_.opset()); }
  Graph& graph() { return *graph_; }
  GraphPtr finish();

 private:
  GradBuilder& outer_;
  GraphPtr graph_;
  std::map<ValueId, ValueId> constants_;
};

// Captured values over all subgraphs of the node, in the order that the reverse walk expects, and
// which of them are wanted and distinct (the first occurrence of each).
struct Captures {
  std::vector<ValueId> all;     // one per capture
  std::vector<ValueId> wanted;  // distinct
  // Spreads the gradients of `wanted` over `all`: each at its first occurrence.
  std::vector<ValueId> spread(const std::vector<ValueId>& grads) const;
};
Captures captures_of(GradBuilder& b);

// Scan of opset 8 as a Scan over the batch whose body is the Scan over time.
std::vector<ValueId> lower_scan8(GradBuilder& b);

}  // namespace onnxtrain::ops
