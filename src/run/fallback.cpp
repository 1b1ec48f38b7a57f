// A partition as a model of its own.
#include "run/fallback.hpp"

#include <nlohmann/json.hpp>

#include "onnx/onnx.hpp"

namespace onnxtrain::run {

namespace {

using Json = nlohmann::ordered_json;

Json attribute(const Attr& a) {
  if (const auto* v = std::get_if<int64_t>(&a)) return *v;
  if (const auto* v = std::get_if<float>(&a)) return *v;
  if (const auto* v = std::get_if<std::string>(&a)) return *v;
  if (const auto* v = std::get_if<std::vector<int64_t>>(&a)) return *v;
  if (const auto* v = std::get_if<std::vector<float>>(&a)) return *v;
  if (const auto* v = std::get_if<std::vector<std::string>>(&a)) return *v;
  return nullptr;
}

constexpr int kUsualOpset = 17;

}  // namespace

std::vector<Tensor> Fallback::run(const Graph& part, const std::vector<const Tensor*>& inputs) {
  Model m;
  m.ir_version = 8;
  m.opsets[""] = kUsualOpset;
  Graph g = part.clone();
  Json about = Json::array();
  for (Node& n : g.nodes) {
    const bool gradient = is_foreign_gradient(n);
    n.version = opset_of_foreign(n);
    m.opsets[n.domain] = n.version;
    Json attrs = Json::object();
    for (const auto& [key, a] : n.attrs) attrs[key] = attribute(a);
    about.push_back({{"domain", n.domain},
                     {"type", n.op},
                     {"name", n.name},
                     {"inputs", n.inputs.size()},
                     {"outputs", n.outputs.size()},
                     {"attributes", attrs},
                     {"gradient", gradient}});
  }
  if (m.opsets[""] > 20) m.ir_version = 10;
  for (size_t k = 0; k < g.inputs.size(); ++k) {
    TypeInfo t = TypeInfo::tensor(inputs[k]->dtype());
    t.shape = std::vector<Dim>(inputs[k]->shape().size());
    g.value(g.inputs[k]).type = t;
  }
  for (ValueId v : g.outputs) g.value(v).type = {};
  m.edit_main() = std::move(g);
  return run_model(serialize_model(m, all_ops()), about.dump(), inputs, part.outputs.size());
}

}  // namespace onnxtrain::run
