// Validation after an epoch, and which epoch is the best: the rules of run/folder/best.hpp as
// graph.
#include <algorithm>

#include "convert/whole/epochs.hpp"

namespace onnxtrain::whole {

namespace {
enum Sum { kLoss, kRight, kCount };
}  // namespace

void Epochs::check_batch(Scope& s, const Part& part, ValueId from, ValueId to, const Values& state,
                         Values& sums) const {
  std::map<std::string, ValueId> batch;
  for (const auto& [name, v] : valid_) {
    ValueId rows = s.slice_rows(s.use(root_, v), from, to);
    for (const StepInput& i : part.step().inputs)
      if (i.name == name && i.type.concrete())
        rows = s.b.call("Reshape", {rows, s.b.constant_ints(i.type.concrete_shape())});
    batch[name] = rows;
  }
  const Values out =
      part.write(s, root_, [&](const StepInput& i) { return given(s, i, state, batch); });
  const ValueId first = s.b.call("Shape", {batch.begin()->second});
  const ValueId rows = s.b.call("Cast", {s.b.call("Gather", {first, s.b.constant_int(0)})},
                                {{"to", int64_t(DType::kFloat)}});
  sums[kLoss] = s.b.add(sums[kLoss], s.b.mul(out[size_t(part.output("loss"))], rows));
  if (sums.size() == 1) return;
  ValueId scores = kNone;
  for (size_t k = 0; k < out.size(); ++k)
    if (part.step().outputs[k].name == portable::kScoresOutput) scores = out[k];
  const ValueId label = batch.at(target_);
  const ValueId chosen =
      s.b.call("ArgMax", {scores}, {{"axis", scores_.class_axis}, {"keepdims", int64_t(0)}});
  auto total = [&](ValueId truth) {
    const ValueId f = s.b.call("Cast", {truth}, {{"to", int64_t(DType::kFloat)}});
    return s.b.call("ReduceSum", {f}, {{"keepdims", int64_t(0)}});
  };
  const ValueId wanted = s.b.call("Cast", {label}, {{"to", int64_t(DType::kInt64)}});
  ValueId right = s.b.call("Equal", {chosen, wanted});
  ValueId counted = s.b.call("Equal", {wanted, wanted});
  if (scores_.ignore_index) {
    const ValueId ignored = s.b.call("Equal", {wanted, s.b.constant_int(*scores_.ignore_index)});
    counted = s.b.call("Not", {ignored});
    right = s.b.call("And", {right, counted});
  }
  sums[kRight] = s.b.add(sums[kRight], total(right));
  sums[kCount] = s.b.add(sums[kCount], total(counted));
}

// Class numbers as target, and one score per class.
bool Epochs::has_accuracy() const {
  const Graph& g = parts_.check[0].step().model.main;
  const ValueId scores = g.find(portable::kScoresOutput);
  if (scores == kNone || !g.value(scores).type.shape) return false;
  for (const StepInput& i : parts_.check[0].step().inputs)
    if (i.name == target_)
      return dtype_is_integer(i.type.elem) && i.type.shape &&
             g.value(scores).type.shape->size() == i.type.shape->size() + 1;
  return false;
}

Epochs::Values Epochs::validate(Scope& s, const Values& state) const {
  const Part& part = parts_.check[0];
  Values sums(has_accuracy() ? 3 : 1, s.number(0));
  const int64_t b = o_.batch, n = parts_.checks_full;
  auto inside = [&](Scope& in) {
    Values here;
    for (ValueId v : state) here.push_back(in.use(s, v));
    return here;
  };
  const ValueId some = s.use(root_, valid_.begin()->second);
  const ValueId total = s.b.call("Gather", {s.b.call("Shape", {some}), s.b.constant_ints({0})});
  if (in_scope_loop()) {
    ValueId trips = s.b.constant_int(n);
    if (n == 0 && parts_.check_last.empty())
      trips = s.b.squeeze(s.b.div(s.b.add(total, s.one(b - 1)), s.one(b)), {0});
    sums = s.loop(trips, sums, [&](Scope& in, ValueId k, Values& carried, ValueId&) {
              const ValueId from = in.b.mul(in.b.unsqueeze(k, {0}), in.one(b));
              check_batch(in, part, from, in.b.add(from, in.one(b)), inside(in), carried);
              return Values{};
            }).carried;
  } else if (o_.loop == "scan" && n > 0) {
    Tensor starts(DType::kInt64, {n, 1});
    for (int64_t k = 0; k < n; ++k) starts.as<int64_t>()[k] = k * b;
    sums = s.scan({s.b.tensor(starts)}, sums, [&](Scope& in, const Values& items, Values& carried) {
              check_batch(in, part, items[0], in.b.add(items[0], in.one(b)), inside(in), carried);
              return Values{};
            }).carried;
  } else {
    for (int64_t k = 0; k < n; ++k)
      check_batch(s, part, s.one(k * b), s.one((k + 1) * b), state, sums);
  }
  if (!parts_.check_last.empty())
    check_batch(s, parts_.check_last[0], s.one(n * b), s.one(n * b + parts_.check_rows), state,
                sums);
  const ValueId rows =
      s.b.squeeze(s.b.call("Cast", {total}, {{"to", int64_t(DType::kFloat)}}), {0});
  Values metrics{s.b.div(sums[kLoss], rows)};
  if (sums.size() > 1) metrics.push_back(s.b.div(sums[kRight], sums[kCount]));
  return metrics;
}

// carried[at..]: best value, best loss, best epoch, best weights
void Epochs::judge(Scope& s, const Values& losses, const Values& metrics, Values& carried) const {
  size_t at = carried_.size();
  const ValueId epochs = carried[at++];
  const bool accuracy = metrics.size() > 1;
  const ValueId loss = !metrics.empty()
                           ? metrics[0]
                           : s.b.call("ReduceMean", {losses[0]}, {{"keepdims", int64_t(0)}});
  const ValueId value = accuracy ? metrics[1] : loss;
  ValueId better =
      accuracy ? s.b.call("Less", {carried[at], value}) : s.b.call("Less", {value, carried[at]});
  if (accuracy) {
    const ValueId tie = s.b.call("And", {s.b.call("Equal", {value, carried[at]}),
                                         s.b.call("Less", {loss, carried[at + 1]})});
    better = s.b.call("Or", {better, tie});
  }
  better = s.b.call("Or", {better, s.b.call("Equal", {epochs, s.b.constant_int(0)})});
  auto choose = [&](ValueId& kept, ValueId now) { kept = s.b.call("Where", {better, now, kept}); };
  choose(carried[at], value);
  choose(carried[at + 1], loss);
  choose(carried[at + 2], s.b.add(epochs, s.b.constant_int(1)));
  if (!o_.best) return;
  for (size_t k = 0; k < weights_.size(); ++k) choose(carried[at + 3 + k], carried[weights_[k]]);
}

// As many epochs as the patience allows have passed since the best.
ValueId Epochs::stop(Scope& s, const Values& carried) const {
  const ValueId since = s.b.sub(carried[carried_.size()], carried[carried_.size() + 3]);
  const ValueId few = s.b.call("Less", {since, s.b.constant_int(o_.patience)});
  return s.b.call("Not", {few});
}

}  // namespace onnxtrain::whole
