// State variables that are fed for one step.
#pragma once
#include <map>
#include <string>

#include "engine/session.hpp"
#include "model/model.hpp"
#include "runtime/state.hpp"

namespace onnxtrain {

// A fed value of a state variable that is also a graph input wins for this step (ruling G5); where
// the step does not assign the variable itself, its own value comes back afterwards.
class FedState {
 public:
  FedState(State& state, const Model& m, const Feeds& feeds) : state_(state) {
    for (ValueId v : m.main.inputs) {
      const ValueDef& d = m.main.value(v);
      auto it = d.initializer ? feeds.find(d.name) : feeds.end();
      if (it == feeds.end() || !state.has(d.name)) continue;
      check_feed(d, it->second);
      own_.emplace(d.name, state.get(d.name).clone());
      state.set(d.name, std::get<Tensor>(it->second));
    }
  }
  void assigned(const TrainingStep& step) {
    for (const auto& [key, value] : step.update_binding) own_.erase(key);
  }
  ~FedState() {
    for (const auto& [name, t] : own_) state_.set(name, t);
  }

 private:
  State& state_;
  std::map<std::string, Tensor> own_;
};

}  // namespace onnxtrain
