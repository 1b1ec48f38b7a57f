// LSTM, GRU, RNN; their training forms (one more output: what the backward pass needs) and
// gradients.
#include "ops/common/cost.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/nn/recurrent_shape.hpp"

namespace onnxtrain::ops {

namespace {

using kernels::Cell;
using kernels::RecurrentShape;

// Inputs of the standard operators.
enum { kX, kW, kR, kB, kLengths, kH0, kC0, kP };
// Inputs of the gradient operators.
enum { kGX, kGW, kGR, kGLengths, kGP, kGSaved, kGDy, kGDyh, kGDyc };

void expect(ShapeCtx& c, int i, const Shape& want, const char* what) {
  if (c.has(i) && c.shape(i) != want)
    model_error("OT1151",
                cat(what, " has shape ", to_string(c.shape(i)), ", expected ", to_string(want)));
}

RecurrentShape check_inputs(ShapeCtx& c) {
  RecurrentShape s = recurrent_shape(c.node(), c.shape(kX), c.shape(kW), c.shape(kR));
  expect(c, kB, {s.directions, 2 * s.gates() * s.hidden}, "the bias B");
  expect(c, kLengths, {s.batch}, "sequence_lens");
  if (c.has(kLengths) && c.dtype(kLengths) != DType::kInt32)
    model_error("OT1151", "sequence_lens is not int32");
  expect(c, kH0, state_shape(s), "initial_h");
  if (s.cell == Cell::kLstm) {
    expect(c, kC0, state_shape(s), "initial_c");
    expect(c, kP, {s.directions, 3 * s.hidden}, "the peepholes P");
  }
  return s;
}

void set_outputs(ShapeCtx& c, const RecurrentShape& s) {
  c.set(0, c.dtype(0), sequence_shape(s));
  c.set(1, c.dtype(0), state_shape(s));
  if (s.cell == Cell::kLstm) c.set(2, c.dtype(0), state_shape(s));
}

void forward_shape(ShapeCtx& c) { set_outputs(c, check_inputs(c)); }

int saved_output(Cell cell) { return cell == Cell::kLstm ? 3 : 2; }

void train_shape(ShapeCtx& c) {
  RecurrentShape s = check_inputs(c);
  set_outputs(c, s);
  c.set(saved_output(s.cell), saved_type(c.dtype(0)), saved_shape(s));
}

void check_lengths(const int32_t* lengths, const RecurrentShape& s) {
  if (!lengths) return;
  for (int64_t b = 0; b < s.batch; ++b)
    if (lengths[b] < 0 || lengths[b] > s.steps)
      data_error("OT1152",
                 cat("sequence_lens[", b, "] is ", lengths[b], ", allowed is 0 to ", s.steps));
}

struct Forward {
  template <class T>
  static Kernel make(Prepare& p) {
    RecurrentShape s = recurrent_shape(p.node(), p.in(kX).shape, p.in(kW).shape, p.in(kR).shape);
    auto plan = std::make_shared<kernels::RecurrentPlan<T>>(s);
    const Tensor *fixed_w = p.constant(kW), *fixed_r = p.constant(kR);
    if (fixed_w && fixed_r) plan->keep_weights(fixed_w->as<T>(), fixed_r->as<T>(), p.pool());
    p.workspace = plan->workspace();
    bool lstm = s.cell == Cell::kLstm;
    int inputs = p.inputs(), outputs = p.outputs(), saved = saved_output(s.cell);
    return [=](const Run& r) {
      auto in = [&](int i) { return i < inputs ? r.in<T>(i) : nullptr; };
      auto out = [&](int i) { return i < outputs ? r.out<T>(i) : nullptr; };
      const int32_t* lengths = inputs > kLengths ? r.in<int32_t>(kLengths) : nullptr;
      check_lengths(lengths, s);
      plan->run(
          {in(kX), in(kW), in(kR), in(kB), in(kH0), lstm ? in(kC0) : nullptr,
           lstm ? in(kP) : nullptr, lengths, out(0), out(1), lstm ? out(2) : nullptr, out(saved)},
          r.workspace, *r.pool);
    };
  }
};

// ---------------------------------------------------------------- gradient operator
void grad_shape(ShapeCtx& c) {
  RecurrentShape s = recurrent_shape(c.node(), c.shape(kGX), c.shape(kGW), c.shape(kGR));
  expect(c, kGLengths, {s.batch}, "sequence_lens");
  expect(c, kGP, {s.directions, 3 * s.hidden}, "the peepholes P");
  expect(c, kGSaved, saved_shape(s), "saved");
  expect(c, kGDy, sequence_shape(s), "dY");
  expect(c, kGDyh, state_shape(s), "dY_h");
  expect(c, kGDyc, state_shape(s), "dY_c");
  DType t = c.dtype(0);
  c.set(0, t, c.shape(kGX));
  c.set(1, t, c.shape(kGW));
  c.set(2, t, c.shape(kGR));
  c.set(3, t, {s.directions, 2 * s.gates() * s.hidden});
  c.set(4, t, state_shape(s));
  c.set(5, t, state_shape(s));
  c.set(6, t, {s.directions, 3 * s.hidden});
}

struct Backward {
  template <class T>
  static Kernel make(Prepare& p) {
    RecurrentShape s = recurrent_shape(p.node(), p.in(kGX).shape, p.in(kGW).shape, p.in(kGR).shape);
    auto plan = std::make_shared<kernels::RecurrentGradPlan<T>>(s);
    p.workspace = plan->workspace();
    int inputs = p.inputs(), outputs = p.outputs();
    return [=](const Run& r) {
      auto in = [&](int i) { return i < inputs ? r.in<T>(i) : nullptr; };
      auto out = [&](int i) { return i < outputs ? r.out<T>(i) : nullptr; };
      const int32_t* lengths = r.in<int32_t>(kGLengths);
      check_lengths(lengths, s);
      plan->run({in(kGX), in(kGW), in(kGR), in(kGP), in(kGSaved), lengths, in(kGDy), in(kGDyh),
                 in(kGDyc), out(0), out(1), out(2), out(3), out(4), out(5), out(6)},
                r.workspace, *r.pool);
    };
  }
};

// What the forward pass kept. The forward node itself becomes its training form, so nothing is
// recomputed.
ValueId saved_of(GradBuilder& b, Cell cell, const std::string& train) {
  int at = saved_output(cell);
  const Node& n = b.node();
  if (n.op == train) return n.outputs[size_t(at)];
  Graph& g = b.graph();
  for (ValueId y : n.outputs) {
    if (y == kNone) continue;
    NodeId k = g.value(y).producer;
    if (k < 0 || size_t(k) >= g.nodes.size()) break;
    Node& f = g.nodes[size_t(k)];
    if (f.outputs != n.outputs && !(f.op == train && f.outputs.size() == size_t(at) + 1)) break;
    if (f.op == n.op) {
      f.op = train;
      f.domain = kOwnDomain;
      f.version = 1;
      f.outputs.resize(size_t(at) + 1, kNone);
      ValueId saved = g.add_value(g.unique_name(n.name + "_saved"));
      g.value(saved).producer = k;
      g.nodes[size_t(k)].outputs[size_t(at)] = saved;
      Node copy = g.nodes[size_t(k)];
      infer_node(g, copy, b.table());
      return saved;
    }
    if (f.op == train) return f.outputs[size_t(at)];
    break;
  }
  return b.own_n(train, n.inputs, at + 1, n.attrs)[size_t(at)];
}

// The operators of a layer: of the standard, with what the gradient needs, the gradient.
struct Names {
  const char *standard, *training_form, *gradient;
};
constexpr Names kLstm = {"LSTM", "LSTMTrain", "LSTMGrad"};
constexpr Names kGru = {"GRU", "GRUTrain", "GRUGrad"};
constexpr Names kRnn = {"RNN", "RNNTrain", "RNNGrad"};

const Names& names_of(Cell cell) {
  return cell == Cell::kLstm ? kLstm : cell == Cell::kGru ? kGru : kRnn;
}

std::vector<ValueId> recurrent_grad(GradBuilder& b) {
  Cell cell = cell_of(b.node());
  const Names& names = names_of(cell);
  ValueId saved = saved_of(b, cell, names.training_form);
  auto input = [&](int i) { return b.has(i) ? b.x(i) : kNone; };
  auto dy = [&](int i) { return b.has_dy(i) ? b.dy(i) : kNone; };
  bool lstm = cell == Cell::kLstm;
  std::vector<ValueId> in = {
      b.x(kX), b.x(kW), b.x(kR), input(kLengths),     lstm ? input(kP) : kNone,
      saved,   dy(0),   dy(1),   lstm ? dy(2) : kNone};
  std::vector<ValueId> out = b.own_n(names.gradient, in, 7, b.node().attrs);
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  const int to[7] = {kX, kW, kR, kB, kH0, kC0, kP};
  std::vector<ValueId>& outputs = b.graph().nodes.back().outputs;
  for (int k = 0; k < 7; ++k) {
    int i = to[k];
    bool wanted = b.has(i) && b.wants(i) && (lstm || i < kC0);
    if (wanted)
      g[size_t(i)] = out[size_t(k)];
    else
      outputs[size_t(k)] = kNone;
  }
  return g;
}

// Multiply-adds of one GEMM of all rows with W or R, per column of it.
double gemm_flops(const RecurrentShape& s) {
  return 2.0 * double(s.directions) * double(s.rows()) * double(s.gates() * s.hidden);
}
Cost forward_cost(const Prepare& p) {
  RecurrentShape s = recurrent_shape(p.node(), p.in(kX).shape, p.in(kW).shape, p.in(kR).shape);
  return cost_of(p, gemm_flops(s) * double(s.inputs + s.hidden));
}
Cost grad_cost(const Prepare& p) {
  RecurrentShape s = recurrent_shape(p.node(), p.in(kGX).shape, p.in(kGW).shape, p.in(kGR).shape);
  double columns = double(s.hidden);
  if (p.wants(0)) columns += double(s.inputs);
  if (p.wants(1)) columns += double(s.inputs);
  if (p.wants(2)) columns += double(s.hidden);
  return cost_of(p, gemm_flops(s) * columns);
}

void add(OpTable& t, const Names& names) {
  t.add({.name = names.standard,
         .shape = forward_shape,
         .impls = {{"gemm", nullptr, float_or_double<Forward>}},
         .grad = recurrent_grad,
         .cost = forward_cost,
         .training_form = names.training_form});
  t.add({.name = names.training_form,
         .domain = std::string(kOwnDomain),
         .shape = train_shape,
         .impls = {{"gemm", nullptr, float_or_double<Forward>}},
         .grad = recurrent_grad,
         .cost = forward_cost,
         .lower = recurrent_train_lower,
         .keeps_values = true});
  t.add({.name = names.gradient,
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"gemm", nullptr, float_or_double<Backward>}},
         .no_grad = "a second derivative of a recurrent layer is made from its standard operators",
         .cost = grad_cost,
         .lower = recurrent_grad_lower});
}

}  // namespace

void register_recurrent(OpTable& t) {
  for (const Names& names : {kLstm, kGru, kRnn}) add(t, names);
}

}  // namespace onnxtrain::ops
