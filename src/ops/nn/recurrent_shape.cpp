// Attributes and shapes of LSTM, GRU and RNN.
#include "ops/nn/recurrent_shape.hpp"

#include <algorithm>
#include <cctype>

namespace onnxtrain::ops {

using kernels::Cell;
using kernels::CellActivation;
using kernels::CellFn;
using kernels::RecurrentShape;

Cell cell_of(const Node& n) {
  if (n.op.starts_with("LSTM")) return Cell::kLstm;
  return n.op.starts_with("GRU") ? Cell::kGru : Cell::kRnn;
}

namespace {

struct FnInfo {
  const char* name;
  CellFn fn;
  float alpha, beta;
  bool has_alpha, has_beta;
};
constexpr FnInfo kFns[] = {
    {"sigmoid", CellFn::kSigmoid, 0, 0, false, false},
    {"tanh", CellFn::kTanh, 0, 0, false, false},
    {"relu", CellFn::kRelu, 0, 0, false, false},
    {"leakyrelu", CellFn::kLeakyRelu, 0.01f, 0, true, false},
    {"thresholdedrelu", CellFn::kThresholdedRelu, 1, 0, true, false},
    {"scaledtanh", CellFn::kScaledTanh, 1, 1, true, true},
    {"hardsigmoid", CellFn::kHardSigmoid, 0.2f, 0.5f, true, true},
    {"elu", CellFn::kElu, 1, 0, true, false},
    {"softsign", CellFn::kSoftsign, 0, 0, false, false},
    {"softplus", CellFn::kSoftplus, 0, 0, false, false},
    {"affine", CellFn::kAffine, 1, 0, true, true},
};

void read_activations(const Node& n, RecurrentShape& s) {
  size_t per = s.cell == Cell::kLstm ? 3 : s.cell == Cell::kGru ? 2 : 1;
  std::vector<std::string> names = n.strings("activations");
  if (names.empty()) {
    for (int d = 0; d < s.directions; ++d)
      for (size_t k = 0; k < per; ++k)
        names.push_back(k == 0 && s.cell != Cell::kRnn ? "sigmoid" : "tanh");
  }
  if (names.size() != per * size_t(s.directions))
    model_error("OT1150", cat("activations of ", n.label(), " has ", names.size(), " entries, ",
                              per * size_t(s.directions), " are needed"));
  std::vector<float> alphas = n.floats("activation_alpha"), betas = n.floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  for (size_t k = 0; k < names.size(); ++k) {
    std::string name = names[k];
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return char(std::tolower(c)); });
    const FnInfo* info = std::find_if(std::begin(kFns), std::end(kFns),
                                      [&](const FnInfo& f) { return name == f.name; });
    if (info == std::end(kFns))
      model_error("OT1150", cat("activation '", names[k], "' of ", n.label(), " is unknown"));
    CellActivation a{info->fn, info->alpha, info->beta};
    // the lists hold values only for functions that take one, in order
    if (info->has_alpha && next_alpha < alphas.size()) a.alpha = alphas[next_alpha++];
    if (info->has_beta && next_beta < betas.size()) a.beta = betas[next_beta++];
    s.activations[k / per][k % per] = a;
  }
}

}  // namespace

RecurrentShape recurrent_shape(const Node& n, const Shape& x, const Shape& w, const Shape& r) {
  RecurrentShape s;
  s.cell = cell_of(n);
  std::string direction = n.s("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    model_error("OT1150", cat("direction of ", n.label(), " is '", direction, "'"));
  s.directions = direction == "bidirectional" ? 2 : 1;
  s.reverse = direction == "reverse";
  int64_t layout = n.i("layout", 0);
  if (layout != 0 && layout != 1)
    model_error("OT1150", cat("layout of ", n.label(), " is ", layout));
  s.batch_first = layout == 1;
  if (x.size() != 3 || w.size() != 3 || r.size() != 3)
    model_error("OT1151", cat(n.label(), " needs inputs of rank 3, got ", to_string(x), ", ",
                              to_string(w), ", ", to_string(r)));
  s.steps = s.batch_first ? x[1] : x[0];
  s.batch = s.batch_first ? x[0] : x[1];
  s.inputs = x[2];
  s.hidden = r[2];
  int64_t hidden = n.i("hidden_size", s.hidden), gates = s.gates();
  if (hidden != s.hidden || s.hidden < 1 || s.hidden > (int64_t(1) << 31) ||
      r != Shape{s.directions, gates * s.hidden, s.hidden} ||
      w != Shape{s.directions, gates * s.hidden, s.inputs})
    model_error("OT1151", cat("weights ", to_string(w), " and ", to_string(r), " of ", n.label(),
                              " do not fit hidden_size ", hidden, ", ", s.directions,
                              " directions and an input of shape ", to_string(x)));
  s.linear_before_reset = n.i("linear_before_reset", 0) != 0;
  s.input_forget = n.i("input_forget", 0) != 0;
  s.clip = n.f("clip", 0);
  if (!(s.clip >= 0)) model_error("OT1150", cat("clip of ", n.label(), " is ", s.clip));
  read_activations(n, s);
  return s;
}

Shape state_shape(const RecurrentShape& s) {
  return s.batch_first ? Shape{s.batch, s.directions, s.hidden}
                       : Shape{s.directions, s.batch, s.hidden};
}
Shape sequence_shape(const RecurrentShape& s) {
  return s.batch_first ? Shape{s.batch, s.steps, s.directions, s.hidden}
                       : Shape{s.steps, s.directions, s.batch, s.hidden};
}
Shape saved_shape(const RecurrentShape& s) { return {s.directions, s.rows(), s.saved_width()}; }
DType saved_type(DType t) { return t == DType::kDouble ? DType::kDouble : DType::kFloat; }

}  // namespace onnxtrain::ops
