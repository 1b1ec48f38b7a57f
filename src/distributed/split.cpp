// Cuts the graph of a step at its sums over rows.
#include "distributed/split.hpp"

#include <algorithm>
#include <map>

#include "distributed/split_nodes.hpp"
#include "graph/reads.hpp"

namespace onnxtrain {

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  model_error("OT5010", cat("this training cannot be cut into blocks of rows: ", what, "\n  ", why),
              "train in one process, without --micro-blocks");
}

class Splitter {
 public:
  Splitter(const Graph& g, const Graph& t, const RowAnalysis& a, const BlockOptions& o, int blocks)
      : g_(g), t_(t), a_(a), sync_(o.sync_norm && !a.batch_norms.empty()), blocks_(blocks) {}

  SplitStep run(const SplitStep::Updates& updates, const std::vector<BatchNumber>& numbers) {
    check(updates);
    s_.meets = sync_;
    find_lone_row();
    order_sums();
    build_block(numbers);
    build_update(updates, numbers);
    return std::move(s_);
  }

 private:
  // ---------------------------------------------------------------- small parts of graphs
  ValueId cast(Graph& g, ValueId v, DType to) {
    if (to == DType::kDouble) return v;
    return call(g, "Cast", {v}, g.value_name(v) + "_cast", {{"to", int64_t(to)}});
  }
  DType elem(ValueId v) const { return t_.value(v).type.elem; }
  ValueId scalar_input(Graph& g, const char* name) {
    const ValueId v = g.add_value(name, TypeInfo::tensor(DType::kDouble, Shape{}));
    g.inputs.push_back(v);
    return v;
  }
  void known(ValueId v) const {
    if (size_t(v) >= g_.values.size())
      refuse(cat("'", t_.value_name(v), "'"), "it is inside of a branch");
  }
  static Node& producer(Graph& g, ValueId v) {
    for (Node& n : g.nodes)
      if (std::find(n.outputs.begin(), n.outputs.end(), v) != n.outputs.end()) return n;
    OT_ASSERT(false);
  }
  // v stands for `scaled` from now on, in all nodes but the one that makes it.
  void rename(Graph& g, ValueId v, ValueId scaled) {
    const Node maker = g.nodes.back();
    g.replace_uses(v, scaled);
    g.nodes.back() = maker;
    now_[v] = scaled;
  }
  ValueId now(ValueId v) const {
    auto it = now_.find(v);
    return it == now_.end() ? v : it->second;
  }

  // ---------------------------------------------------------------- the parts
  void check(const SplitStep::Updates& updates) const {
    for (const auto& [v, state] : updates) {
      const RowClass& c = a_.values[size_t(v)];
      if (c.kind == RowClass::kMixed) refuse(cat("the new value of '", state, "'"), c.why);
      if (c.kind == RowClass::kRows)
        refuse(cat("the new value of '", state, "'"), "it has rows of the batch");
    }
    for (const auto& c : a_.counts) known(c.sum), known(c.reader);
    for (const auto& [v, m] : a_.means) known(v);
    for (const auto& [v, i] : a_.once) known(v);
    for (ValueId v : a_.random) known(v);
    for (ValueId v : a_.averages) known(v);
    for (ValueId v : a_.sums) known(v);
    for (ValueId v : a_.batch_norms) known(v);
    for (const auto& i : a_.random_inside) known(i.path[0].first);
    for (const auto& turn : a_.turns) known(turn.turned);
  }

  static void draw_by_rows(Node& n, int axis, int64_t outer) {
    n.attrs[kRowAxis] = int64_t(axis);
    n.attrs[kRowOuter] = outer;
  }

  void draw_by_rows(Graph& g) {
    for (ValueId v : a_.random)
      draw_by_rows(producer(g, v), a_.values[size_t(v)].axis, a_.values[size_t(v)].outer);
    for (const RowAnalysis::Inside& i : a_.random_inside) {
      Graph* in = &g;
      for (const auto& [around, key] : i.path) in = producer(*in, around).graph(key).get();
      draw_by_rows(producer(*in, i.value), i.axis, i.outer);
    }
  }

  // A node whose statistics have one value in every row: one row alone has a variance of 0.
  void find_lone_row() {
    for (ValueId v : a_.batch_norms) {
      const Node& n = t_.nodes[size_t(t_.producer_of(v))];
      const Shape x = t_.value(n.inputs[0]).type.concrete_shape();
      int64_t each = 1;
      for (size_t d = 2; d < x.size(); ++d) each *= x[d];
      const bool elements = n.version < 9 && n.i("spatial", 1) == 0;
      if ((each == 1 || elements) && s_.lone_row.empty()) s_.lone_row = n.label();
    }
  }

  // Sums in the order in which a step knows them: what the forward pass gives, then the gradients
  // of what it reads last.
  void order_sums() {
    std::map<ValueId, size_t> first_read;
    for (size_t k = 0; k < t_.nodes.size(); ++k)
      if (!t_.nodes[k].is("Gradient", kTrainingDomain))
        for (ValueId v : t_.reads(t_.nodes[k])) first_read.try_emplace(v, k);
    auto known_at = [&](ValueId v) -> size_t {
      for (int hops = 0; hops < 64; ++hops) {
        const NodeId p = t_.producer_of(v);
        if (p < 0) break;
        const Node& n = t_.nodes[size_t(p)];
        if (n.inputs.empty()) break;
        if (!n.is("Gradient", kTrainingDomain)) {
          v = n.inputs[0];
          continue;
        }
        const auto at = std::find(n.outputs.begin(), n.outputs.end(), v) - n.outputs.begin();
        const auto read = first_read.find(n.inputs[size_t(at)]);
        return read == first_read.end() ? t_.nodes.size() : t_.nodes.size() - read->second;
      }
      return 0;
    };
    std::vector<std::pair<size_t, ValueId>> all;
    for (ValueId v : a_.sums) all.emplace_back(known_at(v), v);
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [at, v] : all) {
      sums_.push_back(v);
      s_.forward_sums += at == 0;
    }
  }

  // Every node waits for the one before it, so that all blocks add up in one order.
  void use_whole_batch(Graph& g) {
    ValueId before = kNone;
    for (ValueId v : a_.batch_norms) {
      const ValueId kept = g.add_value(g.unique_name(g.value_name(v) + "_kept"));
      Node& n = producer(g, v);
      const bool elements = n.version < 9 && n.i("spatial", 1) == 0;
      if (n.name.empty()) n.name = g.value_name(v);
      Attributes attrs = {{"over_blocks", int64_t(1)}, {"per_element", int64_t(elements)}};
      for (const char* key : {"epsilon", "momentum"})
        if (n.has(key)) attrs[key] = n.f(key, 0);
      n.op = "SyncBatchNormalization";
      n.domain = std::string(kOwnDomain);
      n.version = 1;
      n.attrs = std::move(attrs);
      n.inputs.resize(5, kNone);
      if (before != kNone) n.inputs.push_back(before);
      n.outputs.resize(5, kNone);
      n.outputs.push_back(kept);
      before = kept;
    }
  }

  // The weight of a block's labels, as a loss counts them.
  ValueId label_weight(Graph& g, const Node& n) {
    const ValueId labels = n.inputs[1];
    const std::string name = n.name.empty() ? g.value_name(n.outputs[0]) : n.name;
    const DType type = elem(n.outputs[0]);
    ValueId used = kNone, safe = labels;
    if (n.has("ignore_index")) {
      Tensor ignored(elem(labels), {});
      dispatch<int64_t, int32_t>(ignored.dtype(), "labels",
                                 [&]<class T>() { *ignored.as<T>() = T(n.i("ignore_index", 0)); });
      const ValueId equal =
          call(g, "Equal", {labels, g.add_constant(ignored, g.unique_name("ignored"))},
               name + "_ignored");
      const ValueId keep = call(g, "Not", {equal}, name + "_kept");
      used = call(g, "Cast", {keep}, name + "_used", {{"to", int64_t(type)}});
      const ValueId number =
          call(g, "Cast", {keep}, name + "_used_int", {{"to", int64_t(elem(labels))}});
      safe = call(g, "Mul", {labels, number}, name + "_safe");
    }
    ValueId each = used;
    if (n.inputs.size() > 2 && n.inputs[2] != kNone) {
      each = call(g, "Gather", {n.inputs[2], safe}, name + "_weights", {{"axis", int64_t(0)}});
      if (used != kNone) each = call(g, "Mul", {each, used}, name + "_used_weights");
    }
    const ValueId sum = call(g, "ReduceSum", {each}, name + "_weight", {{"keepdims", int64_t(0)}});
    g.value(sum).type = TypeInfo::tensor(type, Shape{});
    return sum;
  }

  void build_block(const std::vector<BatchNumber>& numbers) {
    Graph& g = s_.block = g_.clone();
    const ValueId share = scalar_input(g, kShareInput), once = scalar_input(g, kOnceInput),
                  whole = scalar_input(g, kWholeInput);
    draw_by_rows(g);
    if (sync_) use_whole_batch(g);
    for (ValueId v : a_.averages)  // of the whole batch: the same in every block
      now_[v] =
          call(g, "Mul", {v, cast(g, sync_ ? once : share, elem(v))}, g.value_name(v) + "_share");
    for (const auto& [o, i] : a_.once) {
      const ValueId operand = producer(g, o).inputs[i];
      const ValueId scaled =
          call(g, "Mul", {operand, cast(g, once, elem(operand))}, g.value_name(operand) + "_once");
      producer(g, o).inputs[i] = scaled;
    }
    for (const BatchNumber& b : numbers) {
      known(b.value);
      if (b.how == BatchNumber::kGiven) {
        now_[b.value] = number_input(g, b.value, t_.value(b.value).type);
        s_.given.push_back(b.value);
        continue;
      }
      const ValueId factor = b.how == BatchNumber::kGrows ? whole : share;
      rename(g, b.value,
             call(g, "Mul", {b.value, cast(g, factor, elem(b.value))},
                  g.value_name(b.value) + "_of_batch"));
    }
    struct Weighted {
      ValueId mean, weight;
    };
    std::vector<Weighted> weighted;
    for (const auto& [v, mean] : a_.means) {
      if (mean == MeanOf::kLabels) {
        weighted.push_back({v, label_weight(g, Node(producer(g, v)))});
        continue;
      }
      rename(g, v, call(g, "Mul", {v, cast(g, share, elem(v))}, g.value_name(v) + "_share"));
    }
    const TurnedRows turned(g, t_, a_.turns, blocks_);
    std::vector<ValueId> counted = turned.tables();
    for (const Weighted& w : weighted) counted.push_back(w.weight);
    build_count(counted);
    std::vector<ValueId> tables;
    for (ValueId v : turned.tables()) tables.push_back(count_input(g, v));
    turned.use(g, tables);
    for (size_t k = 0; k < weighted.size(); ++k) {
      const auto [v, weight] = weighted[k];
      const ValueId all = count_input(g, weight);
      const DType type = elem(v);
      Tensor zero(type, {}), one(type, {});
      dispatch<float, double, Half, BFloat16>(type, "a loss", [&]<class T>() {
        *zero.as<T>() = T(0.0f);
        *one.as<T>() = T(1.0f);
      });
      const ValueId c1 = g.add_constant(one, g.unique_name("one"));
      const ValueId none = call(g, "Equal", {all, g.add_constant(zero, g.unique_name("zero"))},
                                g.value_name(v) + "_none");
      const ValueId by = call(g, "Where", {none, c1, all}, g.value_name(v) + "_by");
      const ValueId part = call(g, "Div", {weight, by}, g.value_name(v) + "_part");
      rename(g, v, call(g, "Mul", {v, part}, g.value_name(v) + "_share"));
    }
    read_counts(g);
    g.outputs.clear();
    for (ValueId v : sums_) {
      s_.sum_names.push_back(g_.value_name(v));
      g.outputs.push_back(now(v));
    }
    add_row_outputs(g);
    finish(g);
  }

  // The same graph with the counts as its outputs.
  void build_count(const std::vector<ValueId>& more) {
    Graph& g = s_.count = s_.block.clone();
    g.outputs.clear();
    auto add = [&](ValueId v) {
      const std::string name = g.value_name(v);
      if (std::find(s_.count_names.begin(), s_.count_names.end(), name) != s_.count_names.end())
        return;
      s_.count_names.push_back(name);
      g.outputs.push_back(now(v));
    };
    for (const auto& c : a_.counts) add(c.sum);
    for (ValueId v : more) add(v);
    if (g.outputs.empty())
      g = Graph();
    else
      finish(g);
    for (const Node& n : g.nodes)
      if (n.is("SyncBatchNormalization", kOwnDomain))
        refuse(
            n.label(),
            "a count that the loss needs depends on it, before the blocks can add up statistics");
  }

  ValueId count_input(Graph& g, ValueId v) {
    const std::string name = "onnxtrain.sum." + g.value_name(v);
    for (ValueId i : g.inputs)
      if (g.value_name(i) == name) return i;
    TypeInfo type = size_t(v) < g_.values.size() ? t_.value(v).type : g.value(v).type;
    const ValueId i = g.add_value(name, std::move(type));
    g.inputs.push_back(i);
    return i;
  }
  void read_counts(Graph& g) {
    for (const auto& c : a_.counts)
      if (g.producer_of(c.reader) >= 0)
        producer(g, c.reader).inputs[c.operand] = count_input(g, c.sum);
  }

  void add_row_outputs(Graph& g) {
    for (ValueId v : g_.outputs) {
      SplitStep::Output o;
      const RowClass& c = a_.values[size_t(v)];
      if (c.kind == RowClass::kMixed) o.refused = c.why;
      if (c.kind == RowClass::kRows) {
        o.block = int(g.outputs.size());
        o.axis = c.axis;
        o.outer = c.outer;
        g.outputs.push_back(now(v));
      }
      s_.outputs.push_back(std::move(o));
    }
  }

  // A number of the whole batch as an input.
  static ValueId number_input(Graph& g, ValueId v, const TypeInfo& type) {
    const ValueId in = g.add_value(kNumberInput + g.value_name(v), type);
    g.inputs.push_back(in);
    g.replace_uses(v, in);
    return in;
  }

  void build_update(const SplitStep::Updates& updates, const std::vector<BatchNumber>& numbers) {
    Graph& g = s_.update = g_.clone();
    s_.updates = updates;
    read_counts(g);
    for (size_t k = 0; k < sums_.size(); ++k) {
      const ValueId v = sums_[k];
      const ValueId in = g.add_value("onnxtrain.sum." + s_.sum_names[k], t_.value(v).type);
      g.inputs.push_back(in);
      g.replace_uses(v, in);
      for (auto& [u, state] : s_.updates)
        if (u == v) u = in;
    }
    std::vector<std::pair<ValueId, ValueId>> given;
    for (const BatchNumber& b : numbers)
      given.emplace_back(number_input(g, b.value, t_.value(b.value).type), b.value);
    std::vector<ValueId> outputs;
    for (size_t k = 0; k < g.outputs.size(); ++k) {
      SplitStep::Output& o = s_.outputs[k];
      if (o.block >= 0 || !o.refused.empty()) continue;
      o.update = int(outputs.size());
      outputs.push_back(g.outputs[k]);
    }
    g.outputs = std::move(outputs);
    finish(g, s_.updates);
    for (const auto& [in, v] : given)
      if (std::find(g.inputs.begin(), g.inputs.end(), in) != g.inputs.end() &&
          std::find(s_.given.begin(), s_.given.end(), v) == s_.given.end())
        s_.given.push_back(v);
    for (ValueId v : g.inputs)
      if (size_t(v) < g_.values.size() && a_.values[size_t(v)].kind == RowClass::kRows)
        refuse(cat("the update reads input '", g.value_name(v), "'"),
               "a number that it needs follows from the shape of the batch");
  }

  void finish(Graph& g, const SplitStep::Updates& updates = {}) {
    std::vector<ValueId> keep;
    for (const auto& [v, state] : updates) keep.push_back(v);
    g.sort();
    g.remove_dead(keep);
    const std::vector<char> used = values_used(g, keep);
    std::erase_if(g.inputs, [&](ValueId v) { return !used[size_t(v)]; });
    g.renumber();
  }

  const Graph &g_, &t_;
  const RowAnalysis& a_;
  const bool sync_;
  const int blocks_;
  SplitStep s_;
  std::vector<ValueId> sums_;  // in order
  std::map<ValueId, ValueId> now_;
};

}  // namespace

SplitStep split_step(const Graph& g, const SplitStep::Updates& updates, const Graph& t,
                     const RowAnalysis& a, const std::vector<BatchNumber>& numbers,
                     const BlockOptions& options, int blocks) {
  return Splitter(g, t, a, options, blocks).run(updates, numbers);
}

}  // namespace onnxtrain
