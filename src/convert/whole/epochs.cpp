// Epochs, steps and state of a whole training.
#include "convert/whole/epochs.hpp"

#include <algorithm>
#include <numeric>

#include "convert/portable/manifest.hpp"

namespace onnxtrain::whole {

Epochs::Epochs(const Model& m, const WholeOptions& o, const RowInputs& rows, const Scores& scores,
               Scope& root, Sized parts)
    : o_(o), rows_(rows), scores_(scores), root_(root), parts_(std::move(parts)) {
  for (const Part& p : parts_.steps) add_state(p.step(), m);
  for (const Part& p : parts_.check) add_state(p.step(), m);
  for (size_t k = 0; k < carried_.size(); ++k)
    if (m.main.find(carried_[k].name) != kNone) weights_.push_back(k);
}

void Epochs::add_state(const StepModel& s, const Model& m) {
  auto known = [&](const std::string& name) {
    auto same = [&](const Start& x) { return x.name == name; };
    return std::any_of(carried_.begin(), carried_.end(), same) ||
           std::any_of(fixed_.begin(), fixed_.end(), same);
  };
  std::set<std::string> fed;
  for (const Part& p : parts_.steps)
    for (const auto& [from, to] : p.step().feedback) fed.insert(to);
  for (const auto& [name, value] : portable::initial_state({s}, m)) {
    if (known(name)) continue;
    const TypeInfo t = TypeInfo::tensor(value.dtype(), value.shape());
    const ValueId v = root_.g.add_constant(value, "initial/" + name);
    root_.g.value(v).initializer = true;
    (fed.contains(name) ? carried_ : fixed_).push_back({name, t, v});
  }
}

std::string Epochs::free_name(std::string name) const {
  while (root_.g.find(name) != kNone || std::any_of(carried_.begin(), carried_.end(),
                                                    [&](const Start& s) { return s.name == name; }))
    name += "_";
  return name;
}

void Epochs::add_inputs(WholeModel& out) {
  auto add = [&](const std::string& name, const std::string& role, const std::string& of,
                 const TypeInfo& t) {
    const ValueId v = root_.g.add_value(name, t);
    root_.g.inputs.push_back(v);
    out.inputs.push_back({name, role, of, t});
    return v;
  };
  auto with_rows = [&](TypeInfo t, int64_t n, const char* symbol) {
    (*t.shape)[0] = n > 0 ? Dim{n, {}} : Dim{-1, symbol};
    return t;
  };
  for (const Part& p : parts_.steps)
    for (const StepInput& i : p.step().inputs) {
      if ((i.role != "data" && i.role != "target") || arrays_.contains(i.name)) continue;
      const bool rows = rows_.names.contains(i.name);
      arrays_[i.name] =
          add(i.name, i.role, i.name, rows ? with_rows(i.type, o_.rows, "rows") : i.type);
    }
  const Dim n = o_.rows > 0 ? Dim{o_.rows, {}} : Dim{-1, "order"};
  TypeInfo t = TypeInfo::tensor(DType::kInt64, {o_.epochs, 0});
  (*t.shape)[1] = n;
  order_ = add(free_name("order"), "order", "", t);
  for (const Part& p : parts_.check)
    for (const StepInput& i : p.step().inputs) {
      if ((i.role != "data" && i.role != "target") || valid_.contains(i.name)) continue;
      if (i.role == "target" && i.type.elem != DType::kUndefined && target_.empty())
        target_ = i.name;
      if (!rows_.names.contains(i.name)) continue;  // the same as for training
      valid_[i.name] = add(free_name("valid_" + i.name), "valid", i.name,
                           with_rows(i.type, o_.valid_rows, "valid_rows"));
    }
}

ValueId Epochs::row_count(Scope& s, ValueId array) {
  return s.b.call("Gather", {s.b.call("Shape", {array}), s.b.constant_ints({0})});
}

// Batches of an open number of rows: at least one, and no part of one where the file fixes its
// size.
void Epochs::require_batches(ValueId order, const Require& require) const {
  const ValueId n =
      root_.b.call("Gather", {root_.b.call("Shape", {order}), root_.b.constant_ints({1})});
  require(root_.b.call("Not", {root_.b.call("Less", {n, root_.one(o_.batch)})}),
          cat("the_row_order_has_fewer_rows_than_a_batch_of_", o_.batch));
  if (rows_.fixed > 0 && !o_.drop_last) {
    const ValueId whole = root_.b.mul(root_.b.div(n, root_.one(o_.batch)), root_.one(o_.batch));
    require(root_.b.call("Equal", {whole, n}),
            cat("the_number_of_rows_is_not_a_multiple_of_", o_.batch));
  }
}

// Class numbers and rows of tables that there are: a step takes others for ignored ones.
void Epochs::require_numbers(const std::vector<Part>& parts,
                             const std::map<std::string, ValueId>& arrays,
                             const Require& require) const {
  std::set<std::string> seen;
  for (const Part& p : parts)
    for (const StepInput& i : p.step().inputs) {
      const auto it = arrays.find(i.name);
      if (!i.range || it == arrays.end() || !seen.insert(i.name).second) continue;
      GradBuilder& b = root_.b;
      const ValueId v = b.call("Cast", {b.call("Reshape", {it->second, root_.one(-1)})},
                               {{"to", int64_t(DType::kInt64)}});
      ValueId beyond = b.call("Or", {b.call("Less", {v, root_.one(i.range->least)}),
                                     b.call("Less", {root_.one(i.range->most), v})});
      if (i.range->ignored)
        beyond = b.call(
            "And", {beyond, b.call("Not", {b.call("Equal", {v, root_.one(*i.range->ignored)})})});
      const ValueId count =
          b.reduce_sum(b.call("Cast", {beyond}, {{"to", int64_t(DType::kFloat)}}), {0});
      require(b.call("Less", {count, b.scalar(0.5, DType::kFloat)}),
              cat("numbers_in_", root_.g.value_name(it->second), "_are_not_from_", i.range->least,
                  "_to_", i.range->most));
    }
}

// A model cannot raise an error by itself: a Reshape that does not fit does it, and its name says
// what is wrong.
ValueId Epochs::checked_order(ValueId order) {
  auto require = [&](ValueId fine, const std::string& name) {
    const ValueId bad =
        root_.b.call("Cast", {root_.b.call("Not", {fine})}, {{"to", int64_t(DType::kInt64)}});
    const ValueId shape = root_.b.add(root_.one(1), bad);
    const ValueId zero = root_.b.call("Reshape", {root_.one(0), shape});
    root_.g.nodes.back().name = name;
    order = root_.b.add(order, zero);
  };
  auto same_rows = [&](const std::map<std::string, ValueId>& arrays, const char* what) {
    ValueId first = kNone;
    for (const auto& [name, v] : arrays) {
      if (!rows_.names.contains(name)) continue;
      const ValueId count = row_count(root_, v);
      if (first == kNone)
        first = count;
      else
        require(root_.b.call("Equal", {count, first}),
                cat("the_", what, "arrays_have_different_numbers_of_rows_at_", name));
    }
    return first;
  };
  if (o_.valid && o_.valid_rows == 0) {
    const ValueId rows = same_rows(valid_, "validation_");
    require(root_.b.call("Less", {root_.one(0), rows}), "the_validation_arrays_have_no_rows");
  }
  require_numbers(parts_.steps, arrays_, require);
  require_numbers(parts_.check, valid_, require);
  if (o_.rows == 0) require_batches(order, require);
  if (o_.rows == 0) same_rows(arrays_, "");
  TypeInfo t = root_.g.value(order_).type;
  root_.g.value(order).type = t;
  return order;
}

ValueId Epochs::given(Scope& s, const StepInput& i, const Values& state,
                      const std::map<std::string, ValueId>& batch) const {
  if (const auto it = batch.find(i.name); it != batch.end()) return it->second;
  for (size_t k = 0; k < carried_.size(); ++k)
    if (carried_[k].name == i.name) return state[k];
  for (const Start& f : fixed_)
    if (f.name == i.name) return s.use(root_, f.value);
  if (const auto it = arrays_.find(i.name); it != arrays_.end()) return s.use(root_, it->second);
  model_error("OT1771", cat("the training has no value for input '", i.name, "' of its step"));
}

Epochs::Values Epochs::step(Scope& s, const std::vector<Part>& parts, ValueId index,
                            Values& state) const {
  std::map<std::string, ValueId> batch;
  for (const auto& [name, v] : arrays_)
    if (rows_.names.contains(name)) batch[name] = s.b.call("Gather", {s.use(root_, v), index});
  Values losses;
  for (const Part& p : parts) {
    const Values out =
        p.write(s, root_, [&](const StepInput& i) { return given(s, i, state, batch); });
    for (const auto& [from, to] : p.step().feedback)
      for (size_t k = 0; k < carried_.size(); ++k)
        if (carried_[k].name == to)
          for (size_t j = 0; j < out.size(); ++j)
            if (p.step().outputs[j].name == from) state[k] = out[j];
    if (const int k = p.output("loss"); k >= 0) losses.push_back(out[size_t(k)]);
  }
  return losses;
}

Epochs::Values Epochs::full_steps(Scope& s, ValueId row_order, Values& state) const {
  const int64_t b = o_.batch, n = parts_.steps_full;
  if (o_.loop == "scan") {
    const ValueId used = s.b.call("Slice", {row_order, s.one(0), s.one(n * b), s.one(0)});
    const ValueId table = s.b.call("Reshape", {used, s.b.constant_ints({n, b})});
    const Scope::Result r =
        s.scan({table}, state, [&](Scope& in, const Values& items, Values& carried) {
          return step(in, parts_.steps, items[0], carried);
        });
    state = r.carried;
    return r.collected;
  }
  if (o_.loop == "unrolled") {
    std::vector<Values> all;
    for (int64_t k = 0; k < n; ++k) {
      const ValueId index =
          s.b.call("Slice", {row_order, s.one(k * b), s.one((k + 1) * b), s.one(0)});
      const Values losses = step(s, parts_.steps, index, state);
      all.resize(losses.size());
      for (size_t j = 0; j < losses.size(); ++j) all[j].push_back(s.b.unsqueeze(losses[j], {0}));
    }
    Values stacked;
    for (Values& v : all)
      stacked.push_back(v.size() == 1 ? v[0] : s.b.call("Concat", v, {{"axis", int64_t(0)}}));
    return stacked;
  }
  ValueId trips = s.b.constant_int(n);
  if (n == 0)  // as many as there are rows for
    trips = s.b.squeeze(s.b.div(s.b.call("Shape", {row_order}), s.one(b)), {0});
  Tensor numbers(DType::kInt64, {b});
  std::iota(numbers.as<int64_t>(), numbers.as<int64_t>() + b, int64_t(0));
  const ValueId in_batch = root_.b.tensor(numbers);
  const Scope::Result r =
      s.loop(trips, state, [&](Scope& in, ValueId k, Values& carried, ValueId&) {
        // places by addition, not by Slice: their number is then known without running
        const ValueId at = in.b.add(in.use(root_, in_batch), in.b.mul(k, in.b.constant_int(b)));
        const ValueId index = in.b.call("Gather", {in.use(s, row_order), at});
        return step(in, parts_.steps, index, carried);
      });
  state = r.carried;
  Values flat;  // not every runtime stacks scalars to one dimension
  for (ValueId v : r.collected) flat.push_back(s.b.call("Reshape", {v, s.one(-1)}));
  return flat;
}

// The rows that are left, if any: a loop of one iteration, or none. Its body is given the rows, so
// that runtimes that plan for sizes know them.
Epochs::Values Epochs::open_rest(Scope& s, ValueId row_order, const Values& losses,
                                 Values& state) const {
  const ValueId n = s.b.call("Shape", {row_order}), b = s.one(o_.batch);
  const ValueId full = s.b.div(n, b), from = s.b.mul(full, b);
  const ValueId index = s.slice_rows(row_order, from, n);
  const ValueId some = s.b.call("Less", {from, n});
  const ValueId trips =
      s.b.squeeze(s.b.call("Cast", {some}, {{"to", int64_t(DType::kInt64)}}), {0});
  Values start = state;
  for (size_t k = 0; k < losses.size(); ++k) start.push_back(s.number(0));
  Values after = s.loop(trips, start, [&](Scope& in, ValueId, Values& carried, ValueId&) {
                    Values inner(carried.begin(), carried.begin() + std::ptrdiff_t(state.size()));
                    const Values last = step(in, parts_.last, in.use(s, index), inner);
                    carried = inner;
                    carried.insert(carried.end(), last.begin(), last.end());
                    return Values{};
                  }).carried;
  Values joined;
  const ValueId count = s.b.add(full, s.b.unsqueeze(trips, {0}));
  for (size_t k = 0; k < losses.size(); ++k) {
    const ValueId last = s.b.unsqueeze(after[state.size() + k], {0});
    const ValueId all = s.b.call("Concat", {losses[k], last}, {{"axis", int64_t(0)}});
    joined.push_back(s.slice_rows(all, s.one(0), count));
  }
  after.resize(state.size());
  state = after;
  return joined;
}

Epochs::Values Epochs::steps(Scope& s, ValueId row_order, Values& state) const {
  Values losses = full_steps(s, row_order, state);
  if (parts_.last.empty()) return losses;
  if (parts_.last_rows == 0) return open_rest(s, row_order, losses, state);
  const int64_t from = parts_.steps_full * o_.batch;
  const ValueId index =
      s.b.call("Slice", {row_order, s.one(from), s.one(from + parts_.last_rows), s.one(0)});
  const Values last = step(s, parts_.last, index, state);
  for (size_t k = 0; k < losses.size(); ++k)
    losses[k] =
        s.b.call("Concat", {losses[k], s.b.unsqueeze(last[k], {0})}, {{"axis", int64_t(0)}});
  return losses;
}

Epochs::Values Epochs::epoch(Scope& s, ValueId row_order, Values& carried) const {
  const Values before = carried;
  Values state(carried.begin(), carried.begin() + std::ptrdiff_t(carried_.size()));
  const Values losses = steps(s, row_order, state);
  std::copy(state.begin(), state.end(), carried.begin());
  const Values metrics = parts_.check.empty() ? Values{} : validate(s, state);
  if (watches()) judge(s, losses, metrics, carried);
  Values all = losses;
  all.insert(all.end(), metrics.begin(), metrics.end());
  ValueId& epochs = carried[carried_.size()];
  epochs = s.b.add(epochs, s.b.constant_int(1));
  if (in_scope_loop() || o_.patience == 0) return all;
  // a scan cannot end early: what it does after that changes nothing
  const ValueId ended = stop(s, before);
  for (size_t k = 0; k < carried.size(); ++k)
    carried[k] = s.b.call("Where", {ended, before[k], carried[k]});
  for (ValueId& v : all) v = s.b.call("Where", {ended, s.number(0), v});
  return all;
}

void Epochs::build(WholeModel& out) {
  add_inputs(out);
  const ValueId order = checked_order(order_);
  Values start;
  for (const Start& c : carried_) start.push_back(c.value);
  start.push_back(root_.b.constant_int(0));
  if (watches()) {
    start.push_back(root_.number(0));
    start.push_back(root_.number(0));
    start.push_back(root_.b.constant_int(0));
    if (o_.best)
      for (size_t k : weights_) start.push_back(carried_[k].value);
  }
  Scope::Result r;
  if (o_.loop == "scan") {
    r = root_.scan({order}, start, [&](Scope& in, const Values& items, Values& carried) {
      return epoch(in, items[0], carried);
    });
  } else if (o_.loop == "unrolled") {
    r.carried = start;
    std::vector<Values> all;
    for (int64_t e = 0; e < o_.epochs; ++e) {
      const ValueId row = root_.b.call("Gather", {order, root_.b.constant_int(e)});
      const Values made = epoch(root_, row, r.carried);
      all.resize(made.size());
      for (size_t j = 0; j < made.size(); ++j) all[j].push_back(root_.b.unsqueeze(made[j], {0}));
    }
    for (Values& v : all)
      r.collected.push_back(v.size() == 1 ? v[0]
                                          : root_.b.call("Concat", v, {{"axis", int64_t(0)}}));
  } else {
    r = root_.loop(root_.b.constant_int(o_.epochs), start,
                   [&](Scope& in, ValueId k, Values& carried, ValueId& go_on) {
                     const ValueId row = in.b.call("Gather", {in.use(root_, order), k});
                     Values all = epoch(in, row, carried);
                     if (o_.patience > 0) go_on = in.b.call("Not", {stop(in, carried)});
                     return all;
                   });
  }
  name_outputs(out, r);
}

void Epochs::name_outputs(WholeModel& out, const Scope::Result& r) {
  auto add = [&](ValueId v, const std::string& name, const std::string& role, const std::string& of,
                 TypeInfo t) {
    const ValueId named = root_.own(v);
    root_.g.value(named).name = name;
    root_.g.value(named).type = t;
    root_.g.outputs.push_back(named);
    out.outputs.push_back({name, role, of, std::move(t)});
  };
  const bool all_epochs = !in_scope_loop() || o_.patience == 0;
  auto per_epoch = [&](std::vector<Dim> more) {
    TypeInfo t = TypeInfo::tensor(DType::kFloat);
    more.insert(more.begin(), all_epochs ? Dim{o_.epochs, {}} : Dim{-1, "epochs"});
    t.shape = std::move(more);
    return t;
  };
  for (size_t k = 0; k < carried_.size(); ++k)
    add(r.carried[k], carried_[k].name, "state", carried_[k].name, carried_[k].type);
  const int64_t n = parts_.steps_full + (parts_.last.empty() ? 0 : 1);
  const Dim per = parts_.steps_full > 0 ? Dim{n, {}} : Dim{-1, "steps"};
  auto flat = [&](ValueId v) { return root_.b.call("Reshape", {v, root_.one(-1)}); };
  size_t at = 0;
  std::vector<int> with_loss;
  for (const Part& p : parts_.steps)
    if (p.output("loss") >= 0) with_loss.push_back(p.step().section);
  const ValueId ran = root_.b.unsqueeze(r.carried[carried_.size()], {0});
  const ValueId per_step = root_.b.call(
      "Concat", {all_epochs ? root_.one(o_.epochs) : ran, root_.one(-1)}, {{"axis", int64_t(0)}});
  for (int section : with_loss)
    add(root_.b.call("Reshape", {r.collected[at++], per_step}),
        free_name(with_loss.size() == 1 ? "losses" : cat("losses_", section)), "losses", "",
        per_epoch({per}));
  if (!parts_.check.empty())
    add(flat(r.collected[at++]), free_name("valid_loss"), "metric", "", per_epoch({}));
  if (at < r.collected.size())
    add(flat(r.collected[at++]), free_name("valid_accuracy"), "metric", "", per_epoch({}));
  const TypeInfo count = TypeInfo::tensor(DType::kInt64, {});
  size_t c = carried_.size();
  add(r.carried[c++], free_name("epochs"), "epochs", "", count);
  if (!watches()) return;
  add(r.carried[c + 2], free_name("best_epoch"), "best_epoch", "", count);
  c += 3;
  if (!o_.best) return;
  for (size_t k : weights_)
    add(r.carried[c++], free_name("best/" + carried_[k].name), "best", carried_[k].name,
        carried_[k].type);
}

}  // namespace onnxtrain::whole
