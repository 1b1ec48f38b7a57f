// What the files of row rules share: rules by the name of an operator, and those that many have.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "distributed/rows.hpp"

namespace onnxtrain::row_rules {

using Rule = std::function<RowResult(const RowNode&)>;
using Rules = std::map<std::string, Rule, std::less<>>;

// Every output has the rows along `axis`.
RowResult all_outputs(const RowNode& n, int axis);
inline RowResult no(std::string why) { return {{}, std::move(why)}; }
inline int normal(int64_t axis, size_t rank) { return int(axis < 0 ? axis + int64_t(rank) : axis); }

RowResult elementwise(const RowNode& n);
RowResult batch_first(const RowNode& n);
RowResult along(const RowNode& n, int64_t axis);
RowResult keeps_length(const RowNode& n);
RowResult matmul(const RowNode& n);

void add_rules_of_tables(Rules& rules);  // ai.onnx.ml, text
void add_rarer_rules(Rules& rules);

}  // namespace onnxtrain::row_rules
