// The roles of a model's initializers as JSON, for `info` and the interfaces.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "convert/analysis/roles.hpp"
#include "convert/step/odd_settings.hpp"
#include "convert/step/training_mode.hpp"
#include "op/model_refusal.hpp"

namespace onnxtrain {

namespace {

using nlohmann::json;

// What the loss of the recipe reads; all floating-point outputs when no loss can be chosen.
std::vector<TermSource> sources_of(const Model& m, const Recipe& r, const OpTable& ops) {
  std::vector<TermSource> terms;
  const std::optional<Error> refused = model_refusal([&] {
    for (const LossTerm& t : terms_of(m, r)) terms.push_back(resolve_term(m, t, ops));
  });
  if (!refused) return terms;
  terms.clear();
  for (ValueId v : m.main.outputs) {
    const TypeInfo& t = m.main.value(v).type;
    if (t.is_tensor() && !dtype_is_differentiable(t.elem)) continue;
    TermSource s;
    s.output = s.input = v;
    terms.push_back(std::move(s));
  }
  return terms;
}

json entry(const ValueDef& d, Role role, const std::string& because) {
  json j{{"name", d.name},
         {"dtype", dtype_name(d.constant.dtype())},
         {"shape", d.constant.shape()},
         {"elements", d.constant.size()},
         {"role", role_name(role)}};
  if (!because.empty()) j["because"] = because;
  return j;
}

// A file with training: what its bindings update.
json by_bindings(const Model& m) {
  json list = json::array();
  std::vector<char> statistics = running_statistics(m.main);
  for (size_t k = 0; k < m.main.values.size(); ++k) {
    const ValueDef& d = m.main.values[k];
    if (!d.initializer || !d.constant.defined() || !dtype_is_differentiable(d.constant.dtype()))
      continue;
    bool bound = false;
    for (const TrainingStep& s : m.training)
      bound |= std::any_of(s.update_binding.begin(), s.update_binding.end(),
                           [&](const auto& b) { return b.first == d.name; });
    if (statistics[k])
      list.push_back(entry(d, Role::kStatistic, "running statistics of a BatchNormalization"));
    else if (bound)
      list.push_back(entry(d, Role::kTrained, ""));
    else
      list.push_back(entry(d, Role::kFrozen, "the training in the file does not update it"));
  }
  return list;
}

}  // namespace

std::string weights_json(const Model& source, const Recipe& r) {
  json out{{"weights", json::array()}, {"left_out", json::array()}, {"settings", json::array()}};
  if (!source.training.empty()) {
    out["weights"] = by_bindings(source);
  } else {
    const OpTable& ops = all_ops();
    Model m = source;
    restore_parameters(m);
    const std::vector<InitializerRole> roles = initializer_roles(m, r, sources_of(m, r, ops), ops);
    for (const InitializerRole& x : roles) {
      json j = entry(m.main.value(x.value), x.role, x.because);
      if (x.stop >= 0) j["node"] = m.main.nodes[size_t(x.stop)].label();
      out["weights"].push_back(std::move(j));
    }
    for (const LeftOut& l : left_out(m, roles))
      out["left_out"].push_back(
          {{"names", l.names}, {"node", l.node}, {"text", l.text}, {"hint", l.hint}});
    for (const OddSetting& s : odd_settings(r, source))
      out["settings"].push_back({{"text", s.text}, {"hint", s.hint}});
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);  // names may be no UTF-8
}

}  // namespace onnxtrain
