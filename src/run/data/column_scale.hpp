// How large the numbers in the columns of an input are.
#pragma once
#include "run/data/feeds.hpp"

namespace onnxtrain::run {

// kind "standard": mean and standard deviation, "minmax": smallest value and range, of every
// element of the inputs that are tables of numbers, by input; a column that never changes keeps 1
// as its deviation or range.
std::map<std::string, ColumnScale> measured_scale(const FeedColumns& rows, const Model& m,
                                                  const std::string& kind);

// "columns of 'x' ...": what is wrong with their scale; empty when nothing is.
std::string scale_problem(const FeedColumns& rows, const Model& m,
                          const std::vector<std::string>& features);

// Bytes that are divided by 255 although the model's first node scales bytes itself; empty: none.
std::string scaled_twice(const FeedColumns& rows, const Model& m);

}  // namespace onnxtrain::run
