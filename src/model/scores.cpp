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

int64_t class_axis(const Model& m, const std::vector<Dim>& shape) {
  if (const std::string* axis = metadata(m, "onnxtrain.class_axis"); axis && !axis->empty())
    if (int64_t k = std::strtoll(axis->c_str(), nullptr, 10); k > 0 && k < int64_t(shape.size()))
      return k;
  const std::vector<Dim>* labels = label_shape(m);
  size_t last = shape.size() - 1;
  bool first_fits = !labels || fits_without(shape, *labels, 1);
  return labels && !first_fits && fits_without(shape, *labels, last) ? int64_t(last) : 1;
}

}  // namespace

Scores describe_scores(const Model& m) {
  Scores s;
  if (m.training.empty()) return s;
  s.value = scores_value(m);
  if (s.value == kNone) return s;
  const ValueDef& d = m.main.value(s.value);
  s.output = d.name;
  if (d.producer >= 0) s.probability = m.main.nodes[size_t(d.producer)].is("Sigmoid");
  if (const std::string* kind = metadata(m, "onnxtrain.loss")) s.probability |= *kind == "bce";
  if (d.type.shape && d.type.shape->size() >= 2) {
    s.class_axis = class_axis(m, *d.type.shape);
    const Dim& classes = (*d.type.shape)[size_t(s.class_axis)];
    if (classes.known()) s.classes = classes.value;
  }
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
