// The losses of a recipe, by PyTorch's formulas.
#include "convert/step/losses.hpp"

#include <algorithm>

#include "convert/step/augment.hpp"
#include "convert/step/names.hpp"
#include "convert/step/proven.hpp"

namespace onnxtrain {

namespace {

class Terms {
 public:
  explicit Terms(StepBuilder& s) : s_(s), b_(s.nodes()) {}

  ValueId add(const LossTerm& t, const TermSource& src, size_t index) {
    name_ = target_name(s_.main(), t, index);
    y_ = src.file ? kNone : s_.from_main(src.input);
    if (src.kind == "kl" && src.input != src.output) y_ = log_softmax(src);
    for (NodeId k : src.views) y_ = viewed(s_.main().nodes[size_t(k)], y_);
    ValueId v = term(t, src);
    if (t.weight != 1) v = scalar_type(b_.mul(v, scalar(t.weight)));
    return v;
  }
  // Targets of the next row from now on.
  void use_next_rows() { next_rows_ = true; }

 private:
  ValueId term(const LossTerm& t, const TermSource& src) {
    const std::string& k = src.kind;
    if (src.file) return file_loss(t, src);
    type_ = s_.graph().value(y_).type;
    target_ = src.views.empty() ? proven(src.input) : type_;
    if (k == "cross_entropy" || k == "nll") return class_loss(t, src);
    if (k == "output") return is_scalar() ? y_ : reduce(t, y_);
    ValueId target = label(target_);
    check_shapes(k, s_.graph().value(target).type, s_.main().value_name(src.output));
    if (k == "kl") return reduce(t, kl(target));
    if (k == "bce") return reduce(t, bce(target));
    if (k == "bce_logits")  // (1-t) x + log(1 + exp(-x))
      return reduce(
          t, b_.add(b_.mul(b_.sub(scalar(1), target), y_), b_.call("Softplus", {b_.neg(y_)})));
    if (k == "hinge") return reduce(t, b_.call("Relu", {b_.sub(scalar(1), b_.mul(target, y_))}));
    ValueId d = b_.sub(y_, target);
    if (k == "mse") return reduce(t, b_.mul(d, d));
    ValueId a = b_.call("Abs", {d});
    if (k == "l1") return reduce(t, a);
    OT_ASSERT(k == "huber");
    ValueId delta = scalar(t.delta);
    ValueId square = b_.mul(b_.mul(d, d), scalar(0.5));
    ValueId linear = b_.mul(b_.sub(a, scalar(0.5 * t.delta)), delta);
    return reduce(t, b_.call("Where", {b_.call("LessOrEqual", {a, delta}), square, linear}));
  }

  // The type of the output as a target needs it.
  TypeInfo proven(ValueId output) const {
    TypeInfo t = type_;
    if (const TypeInfo p = proven_type(s_.model(), output, s_.ops());
        t.shape && p.shape && t.shape->size() == p.shape->size())
      for (size_t k = 0; k < t.shape->size(); ++k)
        if ((*t.shape)[k].known() && !(*p.shape)[k].known()) (*t.shape)[k] = Dim{};
    return t;
  }

  DType elem() const { return type_.elem; }
  ValueId scalar(double v) { return b_.tensor(scalar_tensor(v, elem())); }
  bool is_scalar() const { return type_.shape && type_.shape->empty(); }
  ValueId scalar_type(ValueId v) {
    s_.set_type(v, TypeInfo::tensor(elem(), {}));
    return v;
  }

  ValueId reduce(const LossTerm& t, ValueId v) {
    return scalar_type(b_.call(t.reduction == "sum" ? "ReduceSum" : "ReduceMean", {v},
                               {{"keepdims", int64_t(0)}}));
  }

  // An input of the model as the target: its rows are compared element by element, not repeated.
  void check_shapes(const std::string& kind, const TypeInfo& target, const std::string& output) {
    if (!target.shape || !type_.shape) return;
    bool same = target.shape->size() == type_.shape->size();
    for (size_t k = 0; same && k < type_.shape->size(); ++k) {
      const auto &a = (*target.shape)[k], &b = (*type_.shape)[k];
      same = !a.known() || !b.known() || a.value == b.value;
    }
    if (!same)
      model_error("OT1244",
                  cat("loss ", kind, " compares target '", name_, "', which is ", to_string(target),
                      ", with output '", output, "', which is ", to_string(type_)),
                  "leave --label out for a new input of the output's shape");
  }
  // The target: an input of the model of that name (an autoencoder's own input), an input that
  // another term made, or a new one.
  ValueId label(TypeInfo type) {
    const ValueId v = own_label(std::move(type));
    return next_rows_ ? next_rows(s_, v) : v;
  }
  ValueId own_label(TypeInfo type) {
    const Graph& m = s_.main();
    for (ValueId v : m.inputs)
      if (m.value_name(v) == name_) return s_.from_main(v);
    for (ValueId v : s_.graph().inputs)
      if (s_.graph().value_name(v) == name_) return v;
    ValueId v = s_.add_input(name_, std::move(type));
    if (s_.graph().value_name(v) != name_)
      usage_error(
          "OT1243",
          cat("the target cannot be named '", name_, "': a tensor of the model has this name"),
          cat("choose another:  --label ", s_.graph().value_name(v)));
    return v;
  }

  TypeInfo labels_type(int64_t axis) {
    TypeInfo t = TypeInfo::tensor(DType::kInt64);
    if (!target_.shape) return t;
    t.shape.emplace();
    for (size_t k = 0; k < target_.shape->size(); ++k)
      if (int64_t(k) != axis) t.shape->push_back((*target_.shape)[k]);
    return t;
  }

  ValueId class_loss(const LossTerm& t, const TermSource& src) {
    int64_t rank = type_.shape ? int64_t(type_.shape->size()) : 2, axis = src.class_axis;
    const std::string& output = s_.main().value_name(src.output);
    if (rank == 2 && type_.shape && (*type_.shape)[1].value == 1)
      model_error("OT1244",
                  cat(src.kind, " needs scores of at least two classes, output '", output, "' is ",
                      to_string(type_), ": its loss is always 0"),
                  "one number per row:  --loss mse   or, for yes and no:  --loss bce_logits");
    if (rank < 2)
      model_error(
          "OT1244",
          cat(src.kind, " needs scores [N,classes], output '", output, "' is ", to_string(type_)),
          "choose another loss:  --loss mse   or   --loss bce_logits");
    if (axis != 1 && axis != rank - 1)
      model_error("OT1244",
                  cat("classes of output '", output, "' lie along axis ", axis, " of ", rank,
                      "; they must be along axis 1 or the last"),
                  "put a Transpose behind the output that moves the classes to axis 1");
    int64_t classes = type_.shape ? (*type_.shape)[size_t(axis)].value : -1;
    if (!t.class_weights.empty() && classes >= 0 && int64_t(t.class_weights.size()) != classes)
      usage_error("OT1233",
                  cat("there are ", t.class_weights.size(), " class weights, output '", output,
                      "' has ", classes, " classes"),
                  cat("give ", classes, " numbers in the order of the classes:  --class-weights ",
                      equal_weights(classes)));
    ValueId labels = label(labels_type(axis)), scores = y_;
    const TypeInfo& given = s_.graph().value(labels).type;
    if (given.is_tensor() && given.elem != DType::kInt64 && given.elem != DType::kInt32)
      model_error(
          "OT1244",
          cat(src.kind, " needs class numbers (int64), input '", name_, "' is ", to_string(given)),
          "leave --label out for a new input, or choose a loss for numbers:  --loss mse");
    if (rank > 2 && axis == rank - 1) {  // classes last: rows of scores
      ValueId shape =
          classes >= 0
              ? b_.constant_ints({-1, classes})
              : b_.call("Concat",
                        {b_.constant_ints({-1}), b_.call("Shape", {y_}, {{"start", int64_t(-1)}})},
                        {{"axis", int64_t(0)}});
      scores = b_.call("Reshape", {y_, shape});
      labels = b_.call("Reshape", {labels, b_.constant_ints({-1})});
    }
    std::vector<ValueId> in = {scores, labels};
    if (!t.class_weights.empty()) in.push_back(b_.tensor(weights(t)));
    GradBuilder::Attrs attrs = {{"reduction", t.reduction}};
    if (t.ignore_index) attrs["ignore_index"] = *t.ignore_index;
    if (src.kind == "nll") return scalar_type(b_.call("NegativeLogLikelihoodLoss", in, attrs));
    if (t.label_smoothing == 0) return scalar_type(b_.call("SoftmaxCrossEntropyLoss", in, attrs));
    return smoothed(t, in, attrs, classes);
  }

  Tensor weights(const LossTerm& t) {
    Tensor w(elem(), {int64_t(t.class_weights.size())});
    dispatch<float, double, Half, BFloat16>(elem(), "class weights", [&]<class T>() {
      for (size_t k = 0; k < t.class_weights.size(); ++k) w.as<T>()[k] = T(t.class_weights[k]);
    });
    return w;
  }

  // (1-s) * nll + s/classes * sum of all negative log-probabilities, ignored rows left out.
  ValueId smoothed(const LossTerm& t, const std::vector<ValueId>& inputs,
                   const GradBuilder::Attrs& attrs, int64_t classes) {
    std::vector<ValueId> out = b_.call_n("SoftmaxCrossEntropyLoss", inputs, 2, attrs);
    s_.set_type(out[1], TypeInfo::tensor(elem()));
    ValueId each = out[1], labels = inputs[1];
    if (inputs.size() > 2) {  // class weights along axis 1
      int64_t rank = b_.rank(inputs[0]) < 0 ? 2 : b_.rank(inputs[0]);
      std::vector<int64_t> view(size_t(rank) - 1, 1);
      view[0] = -1;
      each = b_.mul(each, b_.call("Reshape", {inputs[2], b_.constant_ints(view)}));
    }
    // sums and counts of 16-bit types in float
    const DType wide = elem() == DType::kDouble ? elem() : DType::kFloat;
    auto number = [&](double v) { return b_.tensor(scalar_tensor(v, wide)); };
    auto in = [&](DType to, ValueId v) { return elem() == wide ? v : s_.cast(v, to); };
    ValueId smooth = in(wide, b_.neg(b_.reduce_sum(each, {1}, false)));
    ValueId used = kNone;
    if (t.ignore_index) {
      used = s_.cast(b_.call("Not", {b_.call("Equal", {labels, b_.constant_int(*t.ignore_index)})}),
                     wide);
      smooth = b_.mul(smooth, used);
    }
    ValueId sum = b_.call("ReduceSum", {smooth}, {{"keepdims", int64_t(0)}});
    if (t.reduction == "mean") {
      ValueId by = kNone;
      if (inputs.size() > 2) {
        ValueId safe = labels;
        if (used != kNone) safe = b_.mul(labels, s_.cast(used, DType::kInt64));
        by = in(wide, b_.call("Gather", {inputs[2], safe}));
        if (used != kNone) by = b_.mul(by, used);
        by = b_.call("ReduceSum", {by}, {{"keepdims", int64_t(0)}});
      } else if (used != kNone) {
        by = b_.call("ReduceSum", {used}, {{"keepdims", int64_t(0)}});
      } else {
        by = s_.cast(b_.call("Size", {labels}), wide);
      }
      if (used != kNone)  // everything ignored: 0 loss (ruling G16)
        by = b_.call("Where", {b_.call("Equal", {by, number(0)}), number(1), by});
      sum = b_.div(sum, by);
    }
    ValueId share = number(t.label_smoothing);
    if (classes > 0) {
      share = number(t.label_smoothing / double(classes));
    } else {
      ValueId n = b_.call("Gather", {b_.call("Shape", {inputs[0]}), b_.constant_int(1)},
                          {{"axis", int64_t(0)}});
      share = b_.div(share, s_.cast(n, wide));
    }
    return scalar_type(
        b_.add(b_.mul(out[0], scalar(1 - t.label_smoothing)), in(elem(), b_.mul(sum, share))));
  }

  // Log of a probability, never below -100 (PyTorch), without the infinite slope at 0.
  ValueId safe_log(ValueId p) {
    ValueId positive = b_.call("Greater", {p, scalar(0)});
    ValueId log = b_.call("Log", {b_.call("Where", {positive, p, scalar(1)})});
    return b_.call("Max", {b_.call("Where", {positive, log, scalar(-100)}), scalar(-100)});
  }

  ValueId bce(ValueId target) {
    ValueId one = scalar(1);
    ValueId a = b_.mul(target, safe_log(y_));
    ValueId c = b_.mul(b_.sub(one, target), safe_log(b_.sub(one, y_)));
    return b_.neg(b_.add(a, c));
  }

  // t (log t - log p); the model gives log-probabilities, or probabilities by a Softmax.
  ValueId kl(ValueId target) {
    ValueId positive = b_.call("Greater", {target, scalar(0)});
    ValueId log_t = b_.call("Log", {b_.call("Where", {positive, target, scalar(1)})});
    return b_.mul(target, b_.sub(log_t, y_));
  }

  // Of the scores before the output's Softmax.
  ValueId log_softmax(const TermSource& src) {
    const Activation a = activation_behind(s_.main(), src.output);
    const Node& n = s_.main().nodes[size_t(a.node)];
    ValueId logs = b_.call("LogSoftmax", {y_}, {{"axis", n.i("axis", n.version >= 13 ? -1 : 1)}});
    s_.set_type(logs, s_.main().value(n.outputs[0]).type);
    return logs;
  }

  // The scores as the node reshapes what the activation made of them.
  ValueId viewed(Node n, ValueId scores) {
    const TypeInfo type = s_.main().value(n.outputs[0]).type;
    for (size_t i = 1; i < n.inputs.size(); ++i)
      if (n.inputs[i] != kNone) n.inputs[i] = s_.from_main(n.inputs[i]);
    n.inputs[0] = scores;
    n.name.clear();
    ValueId v = s_.graph().add_node(std::move(n), 1)[0];
    s_.set_type(v, type);
    return v;
  }

  ValueId file_loss(const LossTerm& t, const TermSource& src) {
    const Graph& f = src.file->main;
    if (f.outputs.empty()) model_error("OT1239", cat("the loss '", t.kind, "' has no output"));
    std::map<ValueId, ValueId> given;
    const Graph& m = s_.main();
    for (ValueId v : f.inputs) {
      if (f.value(v).constant.defined()) continue;
      name_ = f.value_name(v);
      ValueId here = kNone;
      for (ValueId o : m.outputs)
        if (m.value_name(o) == name_) here = s_.from_main(o);
      const DType wanted = f.value(v).type.elem;
      if (here != kNone && wanted != DType::kUndefined) here = s_.cast(here, wanted);
      given[v] = here != kNone ? here : label(f.value(v).type);
    }
    auto to = inline_graph(s_, f, given, "loss/");
    type_ = f.value(f.outputs[0]).type;
    ValueId v = to.at(f.outputs[0]);
    return is_scalar() || !type_.shape ? v : reduce(t, v);
  }

  StepBuilder& s_;
  GradBuilder& b_;
  bool next_rows_ = false;
  std::string name_;   // of the target
  ValueId y_ = kNone;  // what the model gives
  TypeInfo target_;    // of the output, as far as it is proven
  TypeInfo type_;      // of y_
};

}  // namespace

std::string target_name(const Graph& main, const LossTerm& t, size_t index) {
  if (!t.label.empty()) return t.label;
  const std::string end = index == 0 ? "" : cat("_", index);
  for (std::string base : {"label", "target", "expected", "training_target"})
    if (main.find(base + end) == kNone) return base + end;
  return "label" + end;  // refused when it is added
}

std::map<ValueId, ValueId> inline_graph(StepBuilder& s, const Graph& from,
                                        std::map<ValueId, ValueId> to, const std::string& prefix) {
  Graph& g = s.graph();
  for (size_t k = 0; k < from.values.size(); ++k) {
    const ValueDef& d = from.values[k];
    if (to.count(ValueId(k)) || !d.constant.defined() || d.producer >= 0) continue;
    to[ValueId(k)] = g.add_constant(d.constant, s.claim(prefix + d.name));
  }
  auto map = [&](ValueId v) { return v == kNone ? kNone : to.at(v); };
  for (const Node& n : from.nodes) {
    Node c = n;
    c.name = prefix + n.name;
    for (ValueId& v : c.inputs) v = map(v);
    for (auto& [key, a] : c.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        auto copy = std::make_shared<Graph>((*sub)->clone());
        for (auto& cap : copy->captures) cap.outer = map(cap.outer);
        *sub = copy;
      }
    std::vector<ValueId> made = g.add_node(std::move(c), int(n.outputs.size()));
    for (size_t k = 0; k < made.size(); ++k) {
      if (n.outputs[k] == kNone) {
        g.nodes.back().outputs[k] = kNone;
        continue;
      }
      s.rename(made[k], prefix + from.value_name(n.outputs[k]));
      s.set_type(made[k], from.value(n.outputs[k]).type);
      to[n.outputs[k]] = made[k];
    }
  }
  return to;
}

namespace {

ValueId sum_of_terms(StepBuilder& s, Terms& make, const std::vector<LossTerm>& terms,
                     const std::vector<TermSource>& sources) {
  ValueId total = kNone;
  for (size_t k = 0; k < terms.size(); ++k) {
    ValueId v = make.add(terms[k], sources[k], k);
    if (total == kNone) {
      total = v;
      continue;
    }
    TypeInfo type = s.graph().value(total).type;
    total = s.nodes().add(total, s.cast(v, type.elem));
    s.set_type(total, type);
  }
  return total;
}

}  // namespace

ValueId add_losses(StepBuilder& s, const std::vector<LossTerm>& terms,
                   const std::vector<TermSource>& sources, ValueId share) {
  Terms make(s);
  ValueId total = sum_of_terms(s, make, terms, sources);
  if (share != kNone) {
    make.use_next_rows();
    GradBuilder& b = s.nodes();
    const TypeInfo type = s.graph().value(total).type;
    const ValueId other = s.cast(sum_of_terms(s, make, terms, sources), type.elem);
    const ValueId own = s.cast(share, type.elem);
    const ValueId rest = b.sub(b.tensor(scalar_tensor(1, type.elem)), own);
    total = b.add(b.mul(total, own), b.mul(other, rest));
    s.set_type(total, type);
  }
  bool captured = false;
  for (const auto& c : s.graph().captures) captured |= c.inner == total;
  if (captured) {
    TypeInfo type = s.graph().value(total).type;
    total = s.nodes().call("Identity", {total});
    s.set_type(total, type);
  }
  s.rename(total, "loss");
  return total;
}

}  // namespace onnxtrain
