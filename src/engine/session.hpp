// Inference: a model's main graph, run by names.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/program.hpp"
#include "model/model.hpp"

namespace onnxtrain {

using Feeds = std::map<std::string, Value>;
using NamedValue = std::pair<std::string, Value>;

class Session {
 public:
  explicit Session(std::shared_ptr<const Model> model, ProgramOptions options = {});
  ~Session();
  // Outputs in the order asked for (empty: all, in the model's order).
  std::vector<NamedValue> run(const Feeds& feeds, const std::vector<std::string>& outputs = {},
                              uint64_t seed = 0, uint64_t step = 0);
  const Model& model() const { return *model_; }
  // The plan these feeds would run (made if needed): for reports and benchmarks.
  Plan& plan_for(const Feeds& feeds);
  // Watches every program of this session, also those made later.
  void set_observer(StepObserver* observer);
  Program& program_for(const Feeds& feeds, std::vector<Value>& inputs);

 private:
  struct Impl;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Impl> impl_;
};

// Checks a fed value against the declared type of graph input `d`; a data error names the input,
// what came and what was expected.
void check_feed(const ValueDef& d, const Value& v);
// A data error for a feed whose name is no input; suggests the nearest.
// "did you mean 'logits'?", or the first names that there are.
std::string name_hint(const std::string& name, const std::vector<std::string>& names);
[[noreturn]] void unknown_feed(const std::string& name, const std::vector<std::string>& inputs);

}  // namespace onnxtrain
