// Rows that are windows of one series.
#pragma once
#include <string>

#include "run/data/parts.hpp"

namespace onnxtrain::run {

// "" or that the rows of an input overlap, each with the one before it: most of a row, shifted, is
// in the next one.
std::string overlapping_rows(const FeedColumns& rows);

}  // namespace onnxtrain::run
