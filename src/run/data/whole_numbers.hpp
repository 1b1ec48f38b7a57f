// Whole numbers that are no quantities: too large for float32, or dates.
#pragma once
#include <string>

#include "data/columns/column.hpp"

namespace onnxtrain::run {

// What is lost when element `element` of the rows becomes a float32 feature, in words that begin
// with `name`; "" when nothing is.
std::string lost_in_float32(const Column& c, int64_t element, const std::string& name);

}  // namespace onnxtrain::run
