// Columns of a table that say the same as the target, or as each other.
#pragma once
#include "run/data/parts.hpp"

namespace onnxtrain::run {

// Warns: a column that tells the target of every row (OT3121), two columns of the same values
// (OT3122), rows that are all alike (OT3123), a value far from all others (OT3124), a target of one
// number (OT3120). table: the file to
// name in fixes; empty: arrays that were handed over.
void warn_about_columns(const Parts& p, const Model& m, const std::string& table,
                        Observer& observer);

// Whole numbers that pick rows of an embedding and are outside of it (OT2221).
void check_indices(const FeedColumns& rows, const Model& m, Observer& observer);

}  // namespace onnxtrain::run
