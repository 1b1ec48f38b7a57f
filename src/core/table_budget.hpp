// A budget for tables of kernels alone (counted.hpp) while a graph is planned: what else is
// allocated then is memory of the plan, which is checked as a whole.
#pragma once
#include <optional>

#include "core/budget.hpp"

namespace onnxtrain {

class TableBudget {
 public:
  explicit TableBudget(const Limits& limits);
  ~TableBudget();
  TableBudget(const TableBudget&) = delete;
  TableBudget& operator=(const TableBudget&) = delete;

  // Where nothing is counted, tables are counted here as long as this lives.
  class Use {
   public:
    Use();
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Budget* outer_;
  };

 private:
  std::optional<Budget> budget_;
  Budget* outer_;
};

}  // namespace onnxtrain
