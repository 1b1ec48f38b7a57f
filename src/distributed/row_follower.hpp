// Follows rows through the nodes of a graph, one after the other. Internal to distributed/.
#pragma once
#include <string>
#include <vector>

#include "distributed/rows.hpp"

namespace onnxtrain {

class RowFollower {
 public:
  RowFollower(const Graph& g, const OpTable& table, int64_t rows);

  void is_number_of_block(ValueId v) { of(v) = RowClass::average(); }
  RowAnalysis run(const std::vector<int>& inputs, const std::vector<ValueId>& updates,
                  const std::vector<ValueId>& outputs);

 private:
  RowClass& of(ValueId v) { return r_.values[size_t(v)]; }
  const RowClass& of(ValueId v) const { return r_.values[size_t(v)]; }

  void find_way_to_gradients();
  void leave(ValueId v);
  static void cut(std::vector<ValueId>& list, ValueId v);
  void set(const Node& n, const RowClass& c);
  static std::string place(const Node& n, const std::string& why);
  std::vector<ValueId> operands(const Node& n) const;
  void visit(const Node& n, bool to_gradient);
  void classify(const Node& n, bool to_gradient);
  int repeated_along(const Node& n) const;
  int constant_along(const Node& n, size_t i) const;
  bool through_constants(const Node& n, int stage, bool varies);
  void same(const Node& n, int stage, bool varies);
  void through(const Node& n, int stage, bool varies);
  bool stays_partial(const Node& n, bool rows);
  std::vector<size_t> counts_of(const Node& n);
  void with_partial(const Node& n, bool to_gradient, bool rows, bool varies, int stage);
  void set_partial(const Node& n, int stage, bool varies);
  void late(const Node& n, int stage, bool varies);
  void gradient(const Node& n);

  // Rows that move by one place (row_turns.cpp).
  bool turns_rows(const Node& n, RowAnalysis::Turn& turn) const;
  void mark_turned(const Node& n);

  // If, Loop and Scan (row_bodies.cpp).
  bool through_bodies(const Node& n, RowResult& r);
  std::vector<RowClass> follow_body(const Node& n, const char* key,
                                    const std::vector<RowClass>& inputs, bool last);
  RowClass initial(const Node& n, size_t i) const;
  RowResult through_if(const Node& n);
  RowResult through_loop(const Node& n);
  RowResult through_scan(const Node& n);
  std::vector<RowClass> settle(const Node& n, std::vector<RowClass>& inputs, size_t first_state,
                               size_t states, size_t first_result, std::string& why);

  const Graph& g_;
  const OpTable& table_;
  int64_t rows_;
  RowAnalysis r_;
  std::vector<char> to_gradient_;
};

}  // namespace onnxtrain
