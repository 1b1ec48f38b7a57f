// The range test of Smith (2015): exponential growth, smoothed loss, stop when it explodes.
#include "run/lr_finder.hpp"

#include <algorithm>
#include <cmath>

#include "data/prefetch.hpp"
#include "data/sampler.hpp"
#include "model/batch.hpp"
#include "run/data/whole_batches.hpp"

namespace onnxtrain::run {

namespace {

constexpr double kFirst = 1e-7, kLast = 10, kSmooth = 0.9;

double steepest(const std::vector<LrFinder::Point>& p) {
  size_t lowest = 0;
  for (size_t k = 1; k < p.size(); ++k)
    if (p[k].loss < p[lowest].loss) lowest = k;
  double best = 0, lr = 0;
  constexpr size_t kWindow = 4;
  for (size_t k = kWindow; k <= lowest; ++k) {
    double fall = p[k - kWindow].loss - p[k].loss;
    if (fall > best) {
      best = fall;
      lr = p[k - kWindow / 2].lr;
    }
  }
  return lr;
}

}  // namespace

LrFinder find_lr(Training& t, const FeedColumns& data, int64_t batch, uint64_t seed, int steps) {
  batch = batch_size_for(t.source(), batch);
  const bool whole = fixed_batch(t.source().main) > 0;
  if (whole && data.rows() < batch)
    data_error("OT2115",
               cat("the data has ", data.rows(), " rows, the model takes ", batch, " at a time"),
               "more data, or a model with an open batch size");
  t.lr();  // an error when the file has no single learning rate
  std::map<std::string, Tensor> before;
  for (const auto& name : t.state().names()) before.emplace(name, t.state().get(name).clone());
  uint64_t count = t.step_count();
  LrFinder r;
  Sampler sampler(data.rows(), batch, seed, true, whole);
  Prefetcher prefetch(data.columns, batch, 1);
  Feeds feeds;
  double average = 0, lowest = 0;
  int64_t epoch = -1;
  for (int k = 0; k < steps; ++k) {
    const Batch* b = epoch < 0 ? nullptr : prefetch.next();
    if (!b) {
      sampler.set_epoch(uint64_t(++epoch));
      prefetch.start(sampler.order(), 0, whole);
      b = prefetch.next();
    }
    for (size_t c = 0; c < data.names.size(); ++c) feeds[data.names[c]] = b->tensors[c];
    const double lr = kFirst * std::pow(kLast / kFirst, double(k) / (steps - 1));
    t.set_lr(lr);
    double loss;
    try {
      loss = t.step(feeds, -1, false).loss;
    } catch (const NotFiniteError&) {
      break;
    }
    average = kSmooth * average + (1 - kSmooth) * loss;
    double smooth = average / (1 - std::pow(kSmooth, k + 1));
    if (k == 0 || smooth < lowest) lowest = smooth;
    r.points.push_back({lr, smooth});
    if (k > 10 && smooth > 4 * lowest) break;
  }
  for (const auto& [name, tensor] : before) t.state().set(name, tensor);
  t.set_step_count(count);
  r.suggestion = steepest(r.points);
  return r;
}

}  // namespace onnxtrain::run
