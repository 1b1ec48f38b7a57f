// The C API: a model's graphs for converters.
#include <unordered_set>

#include "api/handles.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

ot_status ot_model_graphs(const ot_model* m, size_t n_kept, const char* const* kept,
                          ot_graphs** out) {
  return guarded({{"m", m}, {"out", out}}, [&] {
    std::unordered_set<std::string> names;
    for (size_t k = 0; kept && k < n_kept; ++k) {
      if (!kept[k]) usage_error("OT1129", cat("operator ", k, " is NULL"));
      names.insert(kept[k]);
    }
    auto keep = [&](const std::string& domain, const std::string& op) {
      return names.contains(domain.empty() ? op : domain + "::" + op);
    };
    *out = new ot_graphs{kept ? view_model(*m->m, all_ops(), keep) : view_model(*m->m, all_ops())};
  });
}
void ot_graphs_free(ot_graphs* g) { delete g; }
const char* ot_graphs_json(const ot_graphs* g, size_t* size) {
  if (size) *size = g ? g->view.json.size() : 0;
  return g ? g->view.json.c_str() : nullptr;
}
size_t ot_graphs_tensor_count(const ot_graphs* g) { return g ? g->view.tensors.size() : 0; }
ot_status ot_graphs_tensor(const ot_graphs* g, size_t index, ot_value** out) {
  return guarded({{"g", g}, {"out", out}}, [&] {
    if (index >= g->view.tensors.size())
      usage_error("OT1129", cat("there is no tensor ", index, " among ", g->view.tensors.size()));
    *out = new ot_value{g->view.tensors[index]};
  });
}
