// Rules over the ordinary graph: a rule looks at one node and returns what takes the place of its
// outputs, in operators that every runtime has. The runner walks the nodes in order, so a rule sees
// the nodes before it as they are written.
#pragma once
#include <functional>

#include "op/grad_builder.hpp"

namespace onnxtrain::portable {

// What rules may know beyond the node.
struct Context {
  const OpTable& ops;
  int opset = 17;
  std::vector<std::string> data = {};  // inputs that hold data, by name
  bool fast_scatter = false;           // the runtime scatters right and fast: tables keep ScatterND
  bool keep_indices = false;           // the runtime's MaxPool Indices are right
  bool few_nodes = false;              // the runtime's cost is per node: fewer, larger ones
};

class Site : public GradBuilder {
 public:
  Site(Graph& g, const Context& c, const Node& n) : GradBuilder(g, c.ops, n, {}, c.opset), c_(c) {}
  const Context& context() const { return c_; }
  // The node that makes v, as written so far; null for inputs and constants.
  const Node* producer(ValueId v);
  // The same past nodes that only rename or cast to the type it has.
  const Node* maker(ValueId v, std::string_view op);
  ValueId ints(const std::vector<int64_t>& v) { return constant_ints(v); }
  ValueId cast(ValueId v, DType to);
  ValueId reshape(ValueId v, const std::vector<int64_t>& to);
  ValueId slice(ValueId v, int64_t axis, int64_t from, int64_t to, int64_t step = 1);
  // Zeros around v: how many before and after in each dimension.
  ValueId pad(ValueId v, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
              double value = 0);
  // Sizes, -1 where they are open; an empty list when not even the rank is known.
  std::vector<int64_t> sizes(ValueId v) const;
  // The numbers of a constant of whole numbers; false if it is none.
  bool numbers(ValueId v, std::vector<int64_t>& out) const;
  // Is it computed from an input that holds data?
  bool depends_on_data(ValueId v);
  // Is every element this number, whatever the shape?
  bool is_all(ValueId v, double number);

 private:
  const Context& c_;
};

// What takes the place of the outputs; empty: the node stays.
using Rule = std::function<std::vector<ValueId>(Site&)>;
struct NamedRule {
  const char* op;  // operator of the default domain
  const char* name;
  Rule rule;
};
using Rules = std::vector<NamedRule>;

// One walk; how many nodes were replaced. Outputs keep their names.
int apply(Graph& g, const Rules& rules, const Context& c);

// Types as far as they follow, constants folded, equal nodes merged, unused ones dropped.
void simplify(Graph& g, const Context& c);
// All rules (rules.hpp), until nothing changes.
void run_rules(Graph& g, const Context& c);
// Outputs are made by the nodes that compute them, not by Identity; node names are unique.
void tidy_names(Graph& g);
// The first part of it: types and known values, all nodes stay.
void settle(Graph& g, const Context& c);

}  // namespace onnxtrain::portable
