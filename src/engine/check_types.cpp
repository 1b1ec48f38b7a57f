// Specialises each graph with the declared types and keeps what an operator objects to.
#include "engine/check_types.hpp"

#include "core/threads.hpp"
#include "engine/program.hpp"
#include "infer/specialise.hpp"

namespace onnxtrain {

std::vector<Error> check_types(const Model& model) {
  std::vector<Error> found;
  ThreadPool pool(1);
  auto follow = [&](const std::string& place, auto&& make_graph) {
    try {
      Graph g = make_graph();
      // Only what shapes depend on is computed: a check does no work of the model.
      specialise(g, all_ops(), pool, {.fold_limit = 1 << 16});
    } catch (Error& e) {
      e.add_place(place);
      found.push_back(e);
    }
  };
  follow("in the inference graph", [&] { return model.main.clone(); });
  if (!found.empty()) return found;  // the training steps contain the same nodes
  for (size_t k = 0; k < model.training.size(); ++k)
    follow(cat("in the algorithm of training section ", k),
           [&] { return combine(model.main, model.training[k]); });
  return found;
}

}  // namespace onnxtrain
