// Rows that are taken in the order of the file, and what that order does to the batches.
#pragma once
#include <string>

#include "run/data/feeds.hpp"

namespace onnxtrain::run {

// "most batches hold rows of one class": why these rows should be shuffled; "" when nothing says
// so.
std::string order_problem(const FeedColumns& rows, int64_t batch);

}  // namespace onnxtrain::run
