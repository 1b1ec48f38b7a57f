// When do two parts of graphs mean the same?
#pragma once
#include <string>

#include "graph/graph.hpp"

namespace onnxtrain {

// Equal kind and equal contents. Graphs are never the same here: they have values of their own.
bool same_attr(const Attr& a, const Attr& b);

// Equal type, shape and bytes.
bool same_tensor(const Tensor& a, const Tensor& b);

// A key for what a value is: two constants of at most `bytes` with the same contents have the same
// key, any other value has one of its own.
std::string value_key(const ValueDef& d, ValueId v, size_t bytes = 64);

}  // namespace onnxtrain
