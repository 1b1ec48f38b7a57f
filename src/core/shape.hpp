// Concrete shapes and the arithmetic on them. Every product is checked for overflow.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace onnxtrain {

using Shape = std::vector<int64_t>;

// Number of elements; throws a model error on a negative dimension or overflow.
int64_t num_elements(const Shape& s);
// Row-major strides in elements.
Shape strides_of(const Shape& s);
// "[2,3,4]"
std::string to_string(const Shape& s);
// Numpy broadcasting; throws a model error that shows both shapes.
Shape broadcast(const Shape& a, const Shape& b);
// Strides of a tensor of shape `s` seen as shape `to` (0 along broadcast dimensions).
Shape broadcast_strides(const Shape& s, const Shape& to);
// Maps a possibly negative axis into 0..rank-1 (or 0..rank-1 of a wider rank); throws with `what`.
int64_t normalize_axis(int64_t axis, int64_t rank, const char* what = "axis");
// product of s[begin,end)
int64_t product(const Shape& s, size_t begin, size_t end);

}  // namespace onnxtrain
