// Do the operators of a model accept what they are given? For `check`.
#pragma once
#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "model/model.hpp"

namespace onnxtrain {

// Follows types and shapes through the inference graph and every training step, as far as the file
// says them; dimensions that it leaves open stay open. One error per graph: the first.
std::vector<Error> check_types(const Model& model);

// `found` with what check_types objects to, when it holds no error yet. F: the checker's finding;
// `load` gives the model.
template <class F, class Load>
std::vector<F> with_types_checked(std::vector<F> found, Load&& load) {
  auto is_error = [](const F& f) { return f.level == F::Level::kError; };
  if (std::none_of(found.begin(), found.end(), is_error))
    for (const Error& e : check_types(load()))
      found.push_back({F::Level::kError, e.code(), "", e.message(), e.hint()});
  return found;
}

}  // namespace onnxtrain
