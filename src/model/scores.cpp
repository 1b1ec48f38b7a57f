// Scores of a training model, found by name or by shape.
#include "model/scores.hpp"

#include <algorithm>
#include <cstdlib>

namespace onnxtrain {

namespace {

const std::string* metadata(const Model& m, const char* key) {
  auto it = m.metadata.find(key);
  return it == m.metadata.end() ? nullptr : &it->second;
}

bool is_class_loss(const Node& n) {
  return n.is("SoftmaxCrossEntropyLoss") || n.is("NegativeLogLikelihoodLoss");
}

// v is this value, or a Reshape of it.
bool is_or_shapes(const Graph& g, ValueId v, ValueId of) {
  if (v == of) return true;
  const int producer = g.value(v).producer;
  return producer >= 0 && g.nodes[size_t(producer)].is("Reshape") &&
         g.nodes[size_t(producer)].inputs[0] == of;
}

ValueId scores_value(const Model& m) {
  if (const std::string* name = metadata(m, "onnxtrain.output")) {
    ValueId v = m.main.find(*name);
    if (v != kNone) return v;
  }
  for (ValueId v : m.main.outputs) {
    const TypeInfo& t = m.main.value(v).type;
    if (t.is_tensor() && dtype_is_float(t.elem)) return v;
  }
  return kNone;
}

// The declared shape of the integer target, when there is exactly one.
const std::vector<Dim>* label_shape(const Model& m) {
  const std::vector<Dim>* found = nullptr;
  const Graph& g = m.training[0].algorithm;
  for (ValueId v : g.inputs) {
    const TypeInfo& t = g.value(v).type;
    if (!t.is_tensor() || !dtype_is_integer(t.elem)) continue;
    if (found || !t.shape) return nullptr;
    found = &*t.shape;
  }
  return found;
}

// Could `labels` be the shape of `scores` without this axis?
bool fits_without(const std::vector<Dim>& scores, const std::vector<Dim>& labels, size_t axis) {
  if (labels.size() + 1 != scores.size()) return false;
  for (size_t k = 0, j = 0; k < scores.size(); ++k) {
    if (k == axis) continue;
    const Dim &a = scores[k], &b = labels[j++];
    if (a.known() && b.known() && a.value != b.value) return false;
  }
  return true;
}

int64_t class_axis(const std::vector<Dim>& shape, const std::vector<Dim>* labels) {
  size_t last = shape.size() - 1;
  bool first_fits = !labels || fits_without(shape, *labels, 1);
  return labels && !first_fits && fits_without(shape, *labels, last) ? int64_t(last) : 1;
}

// As prepare wrote it down, or by the shapes.
int64_t class_axis(const Model& m, const std::vector<Dim>& shape) {
  if (const std::string* axis = metadata(m, "onnxtrain.class_axis"); axis && !axis->empty())
    if (int64_t k = std::strtoll(axis->c_str(), nullptr, 10); k > 0 && k < int64_t(shape.size()))
      return k;
  return class_axis(shape, label_shape(m));
}

void set_classes(const std::vector<Dim>& shape, int64_t axis, Scores& s) {
  s.class_axis = axis;
  if (const Dim& classes = shape[size_t(axis)]; classes.known()) s.classes = classes.value;
}

}  // namespace

Scores describe_output(const Model& m, const std::string& output, const std::string& loss,
                       const std::string& target) {
  Scores s;
  s.value = m.main.find(output);
  if (s.value == kNone || m.training.empty()) return {};
  const ValueDef& d = m.main.value(s.value);
  s.output = d.name;
  s.probability =
      loss == "bce" || (d.producer >= 0 && m.main.nodes[size_t(d.producer)].is("Sigmoid"));
  const Graph& g = m.training[0].algorithm;
  const ValueId label = g.find(target);
  if (label != kNone)
    for (const Node& n : g.nodes)
      if (is_class_loss(n) && is_or_shapes(g, n.inputs[1], label) && n.attrs.count("ignore_index"))
        s.ignore_index = n.i("ignore_index", 0);
  if (!d.type.shape || d.type.shape->size() < 2) return s;
  const auto* shape =
      label != kNone && g.value(label).type.shape ? &*g.value(label).type.shape : nullptr;
  set_classes(*d.type.shape, class_axis(*d.type.shape, shape), s);
  return s;
}

Scores describe_scores(const Model& m) {
  Scores s;
  if (m.training.empty()) return s;
  s.value = scores_value(m);
  if (s.value == kNone) return s;
  const ValueDef& d = m.main.value(s.value);
  s.output = d.name;
  if (d.producer >= 0) s.probability = m.main.nodes[size_t(d.producer)].is("Sigmoid");
  if (const std::string* kind = metadata(m, "onnxtrain.loss")) s.probability |= *kind == "bce";
  if (d.type.shape && d.type.shape->size() >= 2)
    set_classes(*d.type.shape, class_axis(m, *d.type.shape), s);
  const Graph& g = m.training[0].algorithm;
  for (const Node& n : g.nodes) {
    if (!is_class_loss(n)) continue;
    if (n.attrs.count("ignore_index")) s.ignore_index = n.i("ignore_index", 0);
    bool is_the_loss =
        std::find(g.outputs.begin(), g.outputs.end(), n.outputs[0]) != g.outputs.end();
    s.log_loss = is_the_loss && n.s("reduction", "mean") == "mean" && n.inputs.size() < 3;
  }
  return s;
}

}  // namespace onnxtrain
