// Random inputs for `bench`: right types and shapes, class numbers and indices in range.
#pragma once
#include <map>

#include "engine/session.hpp"

namespace onnxtrain::cli {

using Dims = std::map<std::string, std::vector<int64_t>>;
// "N=8", "x=8,128" of --dim; OT0006.
Dims parse_dims(const std::vector<std::string>& dims);

struct FeedSizes {
  int64_t batch = 32;
  std::vector<std::string> dims;  // "N=8": a named dimension; "x=8,128": the shape of an input
};

// A tensor per input; open dimensions come from `sizes`, the first one otherwise is the batch, and
// others are 1. Indices into tables and class numbers are drawn from the range the model has.
Feeds bench_feeds(const Model& m, const std::vector<ValueDef>& inputs, const FeedSizes& sizes);

}  // namespace onnxtrain::cli
