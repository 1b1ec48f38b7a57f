// Evaluation on the inference form of the model, with the weights of a running training.
#include "run/evaluate.hpp"

#include <algorithm>
#include <numeric>

#include "data/prefetch.hpp"
#include "graph/reads.hpp"
#include "model/batch.hpp"
#include "model/training_copies.hpp"
#include "run/whole_batches.hpp"

namespace onnxtrain::run {

namespace {

// Training-mode copies are read from the main graph instead; its values keep their numbers
// (engine/combine.cpp).
void use_inference_form(Graph& g) {
  for (size_t k = 0; k < g.values.size(); ++k)
    if (ValueId form = g.values[k].inference_form; form != kNone) g.replace_uses(ValueId(k), form);
}

}  // namespace

Evaluator::Evaluator(Training& t) : training_(t) {
  const Model& m = t.source();
  const TrainingStep& step = m.training[0];
  Graph g = combine(m.main, step);
  describe_ = describe_scores(m);
  std::vector<ValueId> outputs;
  if (int k = find_loss(g, step.algorithm.outputs.size()); k >= 0) {
    loss_ = int(outputs.size());
    outputs.push_back(g.outputs[size_t(k)]);
  }
  if (describe_.value != kNone) {  // values of the main graph keep their numbers
    scores_ = int(outputs.size());
    outputs.push_back(describe_.value);
  }
  g.outputs = outputs;
  use_inference_form(g);
  leave_out_mixup(g, m.metadata);
  g.remove_dead();
  const std::vector<char> read = values_read(g);
  std::vector<ValueId> inputs;
  for (ValueId v : g.inputs)
    if (read[size_t(v)] && !g.value(v).constant.defined()) {
      inputs.push_back(v);
      inputs_.push_back(g.value(v));
    }
  g.inputs = inputs;
  program_ = std::make_unique<Program>(std::move(g), std::vector<std::pair<ValueId, std::string>>{},
                                       t.shared_state(), t.shared_pool(), ProgramOptions{});
}

Evaluator::Evaluator(Stepper& s) : Evaluator(s.training()) {
  if (s.evaluates()) elsewhere_ = &s;
}

bool Evaluator::run_elsewhere(const std::vector<Value>& in, int64_t rows, Result& r) {
  Feeds feeds;
  for (size_t k = 0; k < inputs_.size(); ++k) feeds[inputs_[k].name] = in[k];
  const Evaluated e = elsewhere_->evaluate(feeds);
  if (!e.refused.empty()) {
    refused_ = e.refused;
    elsewhere_->training();  // the state comes here
    elsewhere_ = nullptr;
    return false;
  }
  auto lost = [](const char* what) {
    throw Error(ErrorKind::kFailed, "OT1276",
                cat("the engine evaluated a batch and returned ", what));
  };
  if (loss_ >= 0) {
    if (!e.loss.defined() || e.loss.size() != 1) lost("no loss of one number");
    r.loss = e.loss.to_doubles()[0];
  }
  if (scores_ >= 0) {
    if (!e.scores.defined()) lost("no scores");
    if (e.scores.rank() > 0 && e.scores.shape()[0] < rows)
      lost(cat("scores of shape ", to_string(e.scores.shape()), " for ", rows, " rows").c_str());
    r.scores = e.scores;
  }
  return true;
}

Evaluator::Result Evaluator::run(const std::vector<Value>& in, int64_t rows) {
  Result r;
  if (elsewhere_ && run_elsewhere(in, rows, r)) return r;
  std::vector<Value> out = program_->run(in, training_.seed(), training_.step_count());
  if (loss_ >= 0) r.loss = std::get<Tensor>(out[size_t(loss_)]).to_doubles()[0];
  if (scores_ >= 0) r.scores = std::get<Tensor>(out[size_t(scores_)]);
  return r;
}

TaskKind Evaluator::task(const FeedColumns& data) const {
  for (size_t k = 0; k < data.names.size(); ++k)
    if (data.names[k] == data.label) {
      DType d = data.columns[k]->dtype();
      if (dtype_is_integer(d)) return TaskKind::kClasses;
      auto kind = training_.source().metadata.find("onnxtrain.loss");
      if (kind != training_.source().metadata.end() && kind->second.rfind("bce", 0) == 0)
        return TaskKind::kBinary;
    }
  return TaskKind::kRegression;
}

Tensor Evaluator::scores(const Feeds& feeds) {
  if (scores_ < 0) return {};
  std::vector<Value> in;
  for (const ValueDef& d : inputs_) {
    const auto it = feeds.find(d.name);
    if (it == feeds.end()) return {};
    in.push_back(it->second);
  }
  std::vector<Value> out = program_->run(in, training_.seed(), training_.step_count());
  const Tensor* t = std::get_if<Tensor>(&out[size_t(scores_)]);
  return t ? *t : Tensor();
}

Metrics Evaluator::evaluate(const FeedColumns& data, int64_t batch, PredictionSample* sample) {
  Metrics metrics(task(data), describe_);
  const int64_t fixed = fixed_batch(training_.source().main);
  if (fixed > 0) batch = fixed;
  batch = std::clamp<int64_t>(data.rows(), 1, batch);  // no room for more rows than there are
  Prefetcher prefetch(data.columns, batch, 1);
  std::vector<int64_t> order(size_t(data.rows()));
  std::iota(order.begin(), order.end(), int64_t(0));
  prefetch.start(order);
  size_t label =
      size_t(std::find(data.names.begin(), data.names.end(), data.label) - data.names.begin());
  int64_t first = 0;
  while (const Batch* b = prefetch.next()) {
    std::vector<Value> in;
    for (const ValueDef& d : inputs_) {
      auto at = std::find(data.names.begin(), data.names.end(), d.name);
      if (at == data.names.end()) data_error("OT2113", cat("input '", d.name, "' was not given"));
      in.push_back(b->tensors[size_t(at - data.names.begin())]);
      if (b->rows < fixed) in.back() = filled_up(std::get<Tensor>(in.back()), fixed);
    }
    const Result got = run(in, b->rows);
    double loss = got.loss;
    // rows that only fill up count nothing; their part in the loss cannot be told from the others'
    if (b->rows < fixed && metrics.rows() > 0) loss = metrics.loss();
    Tensor scores;
    if (scores_ >= 0) scores = first_rows(got.scores, b->rows);
    if (sample && scores_ >= 0 && label < b->tensors.size())
      sample->add(scores, b->tensors[label], in, first, b->rows);
    first += b->rows;
    if (scores_ >= 0 && label < b->tensors.size())
      metrics.add(scores, b->tensors[label], loss, b->rows);
    else
      metrics.add_loss(loss, b->rows);
  }
  return metrics;
}

}  // namespace onnxtrain::run
