// Evaluation on the inference form of the model, with the weights of a running training.
#include "run/metrics/evaluate.hpp"

#include <algorithm>

#include "distributed/gather_tensors.hpp"
#include "graph/reads.hpp"
#include "model/batch.hpp"
#include "model/training_copies.hpp"
#include "run/data/whole_batches.hpp"

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
  others_ = judged_outputs(m);
  first_other_ = int(outputs.size());
  for (const JudgedOutput& o : others_) outputs.push_back(o.value);
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
  for (size_t k = size_t(first_other_); k < out.size(); ++k)
    r.others.push_back(std::get<Tensor>(out[k]));
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

// What the program is given of a batch. copy: it must outlive the batch.
void Evaluator::feed(const FeedColumns& data, const Batch& b, int64_t fixed, bool copy,
                     Judged& j) const {
  for (const ValueDef& d : inputs_) {
    const auto at = std::find(data.names.begin(), data.names.end(), d.name);
    if (at == data.names.end()) data_error("OT2113", cat("input '", d.name, "' was not given"));
    const Tensor& t = b.tensors[size_t(at - data.names.begin())];
    j.in.emplace_back(b.rows < fixed ? filled_up(t, fixed) : copy ? t.clone() : t);
  }
  auto target = [&](const std::string& name) {
    const auto at = std::find(data.names.begin(), data.names.end(), name);
    if (at == data.names.end()) return Tensor();
    const Tensor& t = b.tensors[size_t(at - data.names.begin())];
    return copy ? t.clone() : t;
  };
  j.label = target(data.label);
  for (const JudgedOutput& o : others_) j.targets.push_back(target(o.target));
}

void Evaluator::run(Judged& j) {
  const Result got = run(j.in, j.rows);
  j.loss = got.loss;
  if (scores_ >= 0) j.scores = first_rows(got.scores, j.rows);
  for (const Tensor& t : got.others) j.others.push_back(first_rows(t, j.rows));
}

// Every process has run one batch of the group.
void Evaluator::share(Communicator& c, std::vector<Judged>& group) {
  std::vector<Tensor> mine;
  if (const auto me = size_t(c.rank()); me < group.size()) {
    const Judged& j = group[me];
    mine = {Tensor::scalar<double>(j.loss), j.scores, j.label};
    for (size_t k = 0; k < j.others.size(); ++k) {
      mine.push_back(j.others[k]);
      mine.push_back(j.targets[k]);
    }
  }
  std::vector<std::vector<Tensor>> all = gather_tensors(c, mine);
  for (size_t r = 0; r < group.size(); ++r) {
    Judged& j = group[r];
    j.loss = all[r][0].to_doubles()[0];
    j.scores = std::move(all[r][1]);
    j.label = std::move(all[r][2]);
    j.others.clear();
    j.targets.clear();
    for (size_t k = 3; k + 1 < all[r].size(); k += 2) {
      j.others.push_back(std::move(all[r][k]));
      j.targets.push_back(std::move(all[r][k + 1]));
    }
  }
}

void Evaluator::count(const Judged& j, int64_t fixed, Metrics& metrics,
                      PredictionSample* sample) const {
  double loss = j.loss;
  // rows that only fill up count nothing; their part in the loss cannot be told from the others'
  if (j.rows < fixed && metrics.rows() > 0) loss = metrics.loss();
  if (scores_ < 0 || !j.label.defined()) return metrics.add_loss(loss, j.rows);
  if (sample) sample->add(j.scores, j.label, j.in, j.first, j.rows);
  metrics.add(j.scores, j.label, loss, j.rows);
}

void Evaluator::count(const Judged& j, std::vector<OutputMetrics>& outputs) {
  for (size_t k = 0; k < j.others.size(); ++k)
    if (j.targets[k].defined()) outputs[k].metrics.add(j.others[k], j.targets[k], 0, j.rows);
}

Metrics Evaluator::evaluate(const FeedColumns& data, int64_t batch, PredictionSample* sample,
                            Communicator* processes, std::vector<OutputMetrics>* outputs) {
  Metrics metrics(task(data), describe_);
  std::vector<OutputMetrics> judged;
  for (const JudgedOutput& o : others_) judged.push_back(o.to);
  const int64_t fixed = fixed_batch(training_.source().main), rows = data.rows();
  if (fixed > 0) batch = fixed;
  batch = std::clamp<int64_t>(rows, 1, batch);  // no room for more rows than there are
  const int64_t ranks = processes ? processes->size() : 1, rank = processes ? processes->rank() : 0;
  const int64_t batches = (rows + batch - 1) / batch;
  auto reads = [&](int64_t i) { return sample || i % ranks == rank; };
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rows; ++i)
    if (reads(i / batch)) order.push_back(i);
  Prefetcher prefetch(data.columns, batch, 1);
  prefetch.start(std::move(order));
  std::vector<Judged> group;
  for (int64_t i = 0; i < batches; ++i) {
    Judged& j = group.emplace_back();
    j.first = i * batch;
    j.rows = std::min(batch, rows - j.first);
    if (reads(i)) feed(data, *prefetch.next(), fixed, ranks > 1, j);
    if (i % ranks == rank) run(j);
    if (int64_t(group.size()) < ranks && i + 1 < batches) continue;
    if (ranks > 1) share(*processes, group);
    for (const Judged& done : group) {
      count(done, fixed, metrics, sample);
      if (outputs) count(done, judged);
    }
    group.clear();
  }
  std::erase_if(judged, [](const OutputMetrics& o) { return o.metrics.rows() == 0; });
  if (outputs) *outputs = std::move(judged);
  return metrics;
}

}  // namespace onnxtrain::run
