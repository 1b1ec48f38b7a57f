// Which loss fits a model's output, and why; terms resolved to values of the main graph.
#include <algorithm>
#include <cctype>

#include "convert/analysis.hpp"
#include "convert/analysis/no_loss.hpp"
#include "convert/analysis/output_range.hpp"
#include "convert/step/names.hpp"
#include "core/shell.hpp"
#include "model/trained_outputs.hpp"
#include "onnx/onnx.hpp"
#include "onnx/raise.hpp"

namespace onnxtrain {

namespace {

std::string lower_case(std::string s) {
  for (char& c : s) c = char(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

// The node that makes v, seen through Identity.
const Node* maker_through_identity(const Graph& g, ValueId v) {
  while (g.value(v).producer >= 0) {
    const Node& n = g.nodes[size_t(g.value(v).producer)];
    if (!n.is("Identity")) return &n;
    v = n.inputs[0];
  }
  return nullptr;
}

bool is_op(const Graph& g, const Activation& a, std::string_view op) {
  return a.node >= 0 && g.nodes[size_t(a.node)].is(op);
}

// The output a loss applies to when none is named: the first of floating point, because classifiers
// may return the class number before its scores; what ZipMap packs into maps is as good.
ValueId default_output(const Graph& g) {
  auto fits = [&](ValueId v) {
    const TypeInfo& t = g.value(v).type;
    return t.is_tensor() && dtype_is_differentiable(t.elem);
  };
  for (ValueId v : g.outputs)
    if (fits(v)) return v;
  for (ValueId v : g.outputs)
    if (const Node* n = maker_through_identity(g, v);
        n && n->is("ZipMap", "ai.onnx.ml") && fits(n->inputs[0]))
      return n->inputs[0];
  return g.outputs[0];
}

// A tensor whose name says that it holds probabilities, although no activation that a loss knows
// makes it: taking it for scores would be silently wrong.
bool is_named_probability(const ValueDef& d) {
  return lower_case(d.name).find("prob") != std::string::npos;
}

std::string scores_hint(const Graph& g, ValueId v) {
  const ValueId scores = scores_before(g, v);
  auto rank = [&](ValueId t) {
    const TypeInfo& type = g.value(t).type;
    return type.shape ? type.shape->size() : size_t(0);
  };
  if (scores != kNone && scores != v && rank(scores) == rank(v))
    return cat("name the scores before it:  --loss cross_entropy --loss-input ",
               shell_word(g.value_name(scores)));
  return "train the probabilities themselves, with a target of 0s and 1s [N,classes]:  --loss bce";
}

// The activation that `v` goes into on its way to an output of the model, seen through reshapings.
const Node* activation_after(const Graph& g, ValueId v) {
  for (int hops = 0; hops < 8; ++hops) {
    const Node* next = nullptr;
    for (const Node& n : g.nodes) {
      if (n.inputs.empty() || n.inputs[0] != v) continue;
      if (n.is("Sigmoid") || n.is("Softmax") || n.is("LogSoftmax")) {
        for (ValueId out : g.outputs)
          if (const Activation a = activation_behind(g, out);
              a.node >= 0 && &g.nodes[size_t(a.node)] == &n)
            return &n;
      }
      if (n.is("Identity") || n.is("Reshape") || n.is("Flatten") || n.is("Squeeze") ||
          n.is("Unsqueeze"))
        next = &n;
    }
    if (!next) return nullptr;
    v = next->outputs[0];
  }
  return nullptr;
}

// "[N,10] float"
std::string shape_text(const TypeInfo& t) {
  if (!t.shape) return cat(dtype_name(t.elem), " of unknown rank");
  std::string s = "[";
  for (const Dim& d : *t.shape)
    s += (s.size() > 1 ? "," : "") + (d.known()          ? std::to_string(d.value)
                                      : d.symbol.empty() ? "?"
                                                         : d.symbol);
  return cat(s, "] ", dtype_name(t.elem));
}

// An input of the same shape behind the batch dimension: an autoencoder.
const ValueDef* input_of_same_shape(const Graph& g, const TypeInfo& t) {
  for (ValueId v : g.inputs) {
    const ValueDef& d = g.value(v);
    if (d.constant.defined() || !d.type.is_tensor() || d.type.elem != t.elem || !d.type.shape)
      continue;
    if (d.type.shape->size() != t.shape->size() || t.shape->size() < 2) continue;
    bool same = true;
    for (size_t k = 1; k < t.shape->size(); ++k)
      same &= (*t.shape)[k].known() && (*t.shape)[k] == (*d.type.shape)[k];
    if (same) return &d;
  }
  return nullptr;
}

// A name that says that these are scores of classes, whatever the shape looks like.
bool is_named_logits(const ValueDef& d) {
  return lower_case(d.name).find("logit") != std::string::npos;
}

// Does a GEMM make the scores (a dense layer over the last axis, perhaps with a
// bias)?
bool made_by_dense_layer(const Graph& g, ValueId v) {
  for (int hops = 0; hops < 8; ++hops) {
    const Node* n = maker_through_identity(g, v);
    if (!n || n->inputs.empty()) return false;
    if (n->is("MatMul") || n->is("Gemm")) return true;
    bool passes_on = n->is("Add") || n->is("Sub") || n->is("Mul") || n->is("Div") ||
                     n->is("Identity") || n->is("Cast") || n->is("Dropout");
    if (!passes_on) return false;
    // of two operands the one that is computed
    ValueId next = n->inputs[0];
    if (n->inputs.size() > 1 && n->inputs[1] != kNone && !maker_through_identity(g, next))
      next = n->inputs[1];
    v = next;
  }
  return false;
}

// Where the classes lie: Softmax says it; a dense layer puts them last, as in [batch, time,
// vocabulary]; otherwise PyTorch's rule (axis 1) unless only the last size is a number.
int64_t class_axis_of(const Graph& g, ValueId output) {
  const TypeInfo& t = g.value(output).type;
  int64_t rank = t.shape ? int64_t(t.shape->size()) : 2;
  if (Activation a = activation_behind(g, output); a.axis >= 0) return a.axis;
  if (rank >= 3 && made_by_dense_layer(g, output)) return rank - 1;
  if (rank >= 3 && !(*t.shape)[1].known() && t.shape->back().known()) return rank - 1;
  return 1;
}

}  // namespace

bool is_made_for_numbers(const Model& m) {
  const auto it = m.metadata.find("onnxtrain.task");
  return it != m.metadata.end() && it->second == "numbers";
}

std::vector<LossTerm> terms_of(const Model& m, const Recipe& r) {
  std::vector<LossTerm> told = r.losses.empty() ? std::vector<LossTerm>{LossTerm{}} : r.losses;
  const bool open = told.size() == 1 && told[0].kind == "auto" && told[0].output.empty();
  const std::vector<TrainedOutput> outputs =
      open ? trained_outputs(m.metadata) : std::vector<TrainedOutput>();
  std::vector<LossTerm> all;
  for (const TrainedOutput& o : outputs) {  // a model made for several targets learns all of them
    LossTerm t = told[0];
    t.output = o.name;
    t.weight = o.weight;
    if (!all.empty()) t.label.clear();
    if (o.loss != "cross_entropy") t.class_weights.clear(), t.label_smoothing = 0;
    all.push_back(t);
    const ValueId v = m.main.find(o.name);
    if (std::find(m.main.outputs.begin(), m.main.outputs.end(), v) == m.main.outputs.end())
      return told;
  }
  if (all.empty() && open && told[0].weight == 1 && is_made_for_numbers(m))
    told[0].weight = loss_weight(m.metadata);
  return all.empty() ? told : all;
}

ValueId find_output(const Model& m, const std::string& name) {
  if (m.main.outputs.empty())
    model_error("OT1236", "the model has no outputs, there is nothing to train",
                "add an output to the graph: model.graph.output in the onnx package");
  if (name.empty()) return default_output(m.main);
  std::vector<std::string> names;
  for (ValueId v : m.main.outputs) {
    if (m.main.value_name(v) == name) return v;
    names.push_back(m.main.value_name(v));
  }
  // a tensor inside the model is as good: training on an earlier one
  ValueId inside = m.main.find(name);
  if (inside != kNone && m.main.value(inside).producer >= 0) return inside;
  usage_error("OT1237", cat("the model has no output '", name, "'"), suggestion(name, names));
}

LossChoice choose_loss(const Model& m, const std::string& output) {
  const Graph& g = m.main;
  ValueId v = find_output(m, output);
  const ValueDef& d = g.value(v);
  const TypeInfo& t = d.type;
  LossChoice c;
  c.output = d.name;
  const Activation a = activation_behind(g, v);
  auto source = [&] { return g.value_name(g.nodes[size_t(a.node)].inputs[0]); };
  if (!t.is_tensor() || !dtype_is_differentiable(t.elem))
    no_loss_fits(
        cat("no loss fits output '", d.name, "': it is ", to_string(t), ", not floating point"),
        "name another output or a tensor inside the model:  --loss-input NAME");
  if ((is_op(g, a, "Softmax") || is_op(g, a, "LogSoftmax")) && a.axis < 0)
    no_loss_fits(cat("no loss can be chosen for '", d.name, "': the classes of the ",
                     g.nodes[size_t(a.node)].op, " before it cannot be found in ", shape_text(t)),
                 cat("name the scores before it:  --loss-input ", source()));
  std::string made_for;
  for (const TrainedOutput& o : trained_outputs(m.metadata))
    if (o.name == d.name) made_for = o.loss;
  if (!made_for.empty()) {
    c.kind = made_for;
    c.because = cat("the model was made to learn ", made_for == "mse" ? "numbers" : "classes",
                    " here, '", c.output, "' is ", shape_text(t));
  } else if (is_made_for_numbers(m)) {
    c.kind = "mse";
    c.because = cat("the model was made to learn numbers, '", c.output, "' is ", shape_text(t));
  } else if (is_op(g, a, "Softmax")) {
    c.kind = "cross_entropy";
    c.because = cat("'", c.output, "' is a Softmax: cross-entropy on '", source(), "' before it");
  } else if (is_op(g, a, "LogSoftmax")) {
    c.kind = "nll";
    c.because = cat("'", c.output, "' is a LogSoftmax");
  } else if (is_op(g, a, "Sigmoid")) {
    c.kind = "bce_logits";
    c.because =
        cat("'", c.output, "' is a Sigmoid: binary cross-entropy on '", source(), "' before it");
  } else if (const Node* next = activation_after(g, v)) {
    c.kind = next->is("Sigmoid") ? "bce_logits" : "cross_entropy";
    c.because = cat("'", c.output, "' goes into a ", next->op);
  } else if (!t.shape) {
    no_loss_fits(
        cat("no loss can be chosen for output '", d.name, "': the file does not tell its rank"),
        "choose one, --loss mse for numbers, --loss cross_entropy for classes");
  } else if (t.shape->empty()) {
    c.kind = "output";
    c.because = cat("'", c.output, "' is a scalar: taken as the loss itself");
  } else if (const ValueDef* in = is_named_logits(d) ? nullptr : input_of_same_shape(g, t)) {
    c.kind = "mse";
    c.because = cat("'", c.output, "' is ", shape_text(t), " like input '", in->name, "'");
  } else if (t.shape->size() == 1 || (t.shape->back().value == 1 && t.shape->size() == 2)) {
    c.kind = "mse";
    c.because = cat("'", c.output, "' is ", shape_text(t), ": one number per row");
  } else {
    int64_t axis = class_axis_of(g, v);
    int64_t classes = (*t.shape)[size_t(axis)].value;
    if (t.shape->size() > 2 && axis == 1 && (classes == 1 || classes == 3)) {
      c.kind = "mse";
      c.because = cat("'", c.output, "' is ", shape_text(t), ": ", classes, " channel",
                      classes == 1 ? "" : "s", " look like an image");
    } else if (is_named_probability(d)) {
      no_loss_fits(cat("no loss can be chosen for '", d.name,
                       "': by its name it holds probabilities, "
                       "and no Softmax makes them from scores"),
                   scores_hint(g, v));
    } else {
      c.kind = "cross_entropy";
      c.because = cat("'", c.output, "' is ", shape_text(t), " with no Softmax at the end");
      if (t.shape->size() > 2) c.because += cat(", classes along axis ", axis);
    }
  }
  return c;
}

TermSource resolve_term(const Model& m, const LossTerm& t, const OpTable& ops,
                        std::vector<LossChoice>* chosen) {
  const Graph& g = m.main;
  TermSource s;
  s.kind = t.kind;
  if (is_onnx_path(t.kind)) {
    auto opset = m.opsets.find("");
    const int target = opset == m.opsets.end() ? 0 : opset->second;
    std::optional<Model> file = load_model(t.kind, ops);
    if (target > 0) file = at_opset(*file, target, ops);
    if (!file)
      model_error("OT1239",
                  cat("the loss '", t.kind, "' cannot be brought to opset ", target,
                      ", which the model has"),
                  cat("write it for opset ", target, ", or bring the model to a newer one"));
    s.file = std::make_shared<const Model>(std::move(*file));
    for (const std::string& name : s.file->input_names())
      for (ValueId v : g.outputs)
        if (g.value_name(v) == name) s.file_inputs.push_back(v);
    if (s.file_inputs.empty())
      model_error("OT1239",
                  cat("no input of the loss '", t.kind, "' has the name of a model output"),
                  cat("name one of its inputs '", g.value_name(g.outputs.at(0)), "'"));
    s.output = s.input = s.file_inputs[0];
    return s;
  }
  s.output = find_output(m, t.output);
  if (t.kind == "auto") {
    const LossChoice choice = choose_loss(m, t.output);
    s.kind = choice.kind;
    if (s.kind != "cross_entropy" && s.kind != "nll" &&
        (t.ignore_index || !t.class_weights.empty() || t.label_smoothing != 0))
      usage_error(
          "OT1234",
          cat("class weights, ignore_index and label smoothing belong to cross_entropy; the "
              "loss of output '",
              choice.output, "' is ", s.kind, ", because ", choice.because),
          "leave them out");
    if (chosen) chosen->push_back(choice);
  }
  s.input = s.output;
  const TypeInfo& type = g.value(s.output).type;
  if (type.is_tensor() && !dtype_is_differentiable(type.elem))
    no_loss_fits(cat("output '", g.value_name(s.output), "' is ", to_string(type),
                     ": a loss needs floating point"));
  bool classes = s.kind == "cross_entropy" || s.kind == "nll";
  if (classes) s.class_axis = class_axis_of(g, s.output);
  // A loss that contains the activation reads what stands before it.
  const Activation a = activation_behind(g, s.output);
  bool softmax = is_op(g, a, "Softmax"), log_softmax = is_op(g, a, "LogSoftmax");
  bool scores = classes && a.axis >= 0 && (softmax || (log_softmax && s.kind == "cross_entropy"));
  if (scores) s.kind = "cross_entropy";
  if (scores || (s.kind == "bce_logits" && is_op(g, a, "Sigmoid")) || (s.kind == "kl" && softmax)) {
    s.input = g.nodes[size_t(a.node)].inputs[0];
    s.views = a.views;
  }
  return s;
}

}  // namespace onnxtrain
