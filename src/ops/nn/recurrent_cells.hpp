// Cells of LSTM, GRU and RNN in standard operators: what the unrolled form and the Scan share.
#pragma once
#include "op/needs_shape.hpp"
#include "ops/nn/recurrent_shape.hpp"

namespace onnxtrain::ops::cells {

using kernels::Cell;
using kernels::CellActivation;
using kernels::CellFn;
using kernels::RecurrentShape;
using V = ValueId;

struct Unrolled {
  GradBuilder& b;
  RecurrentShape s;
  DType type;  // everything is calculated in it
  V input;
  bool open_batch = false;  // s.batch is then 1 and means nothing
  bool open_steps = false;  // the same of s.steps; only where that is allowed

  Unrolled(GradBuilder& builder, V x, V w, V r, bool any_length = false)
      : b(builder), type(saved_type(builder.dtype(x))), input(x) {
    Shape xs = input_shape(any_length);
    if (xs.empty() || !b.shape_known(w) || !b.shape_known(r))
      needs_shape("OT1206",
                  cat("the training form of ", b.node().label(),
                      " in standard operators needs the number of steps and the sizes of "
                      "its weights; its input is ",
                      to_string(b.type(x))),
                  "fix it:  --dim NAME=STEPS (dims={'NAME': STEPS})");
    s = recurrent_shape(b.node(), xs, b.shape(w), b.shape(r));
  }
  // The same cell in another graph.
  Unrolled(GradBuilder& builder, const Unrolled& o)
      : b(builder), s(o.s), type(o.type), input(kNone), open_batch(o.open_batch) {}
  // Empty when more than the batch is unknown; 1 stands for an open batch.
  Shape input_shape(bool any_length) {
    const TypeInfo& t = b.type(input);
    size_t batch = b.node().i("layout", 0) == 1 ? 0 : 1;
    if (!t.is_tensor() || !t.shape || t.shape->size() != 3) return {};
    Shape xs;
    for (size_t d = 0; d < 3; ++d) {
      int64_t n = (*t.shape)[d].value;
      if (n < 0 && d != batch && (d == 2 || !any_length)) return {};
      (d == batch ? open_batch : open_steps) |= n < 0;
      xs.push_back(n < 0 ? 1 : n);
    }
    return xs;
  }
  int64_t batch() const { return open_batch ? -1 : s.batch; }
  int64_t rows() const { return open_batch ? -1 : s.rows(); }

  V typed(V v) {
    return v == kNone || b.dtype(v) == type ? v : b.call("Cast", {v}, {{"to", int64_t(type)}});
  }
  V back(V v, DType to) { return to == type ? v : b.call("Cast", {v}, {{"to", int64_t(to)}}); }
  V num(double v) { return b.scalar(v, type); }
  V slice(V v, int64_t axis, int64_t from, int64_t to) {
    return b.call("Slice",
                  {v, b.constant_ints({from}), b.constant_ints({to}), b.constant_ints({axis})});
  }
  V pick(V v, int64_t axis, int64_t at) {
    return b.call("Gather", {v, b.constant_int(at)}, {{"axis", axis}});
  }
  V columns(V v, int64_t from, int64_t count) {
    return slice(v, 1, from * s.hidden, (from + count) * s.hidden);
  }
  V concat(std::vector<V> v, int64_t axis) {
    return v.size() == 1 ? v[0] : b.call("Concat", std::move(v), {{"axis", axis}});
  }
  V matmul(V x, V y) { return b.call("MatMul", {x, y}); }
  V turned(V v) { return b.transpose(v, {1, 0}); }
  V where(V c, V x, V y) { return b.call("Where", {c, x, y}); }
  // [batch, hidden]
  V zero_state() {
    Tensor zero = type == DType::kDouble ? Tensor::vector<double>({0}) : Tensor::vector<float>({0});
    V shape = b.constant_ints({s.batch, s.hidden});
    if (open_batch) {
      V size = slice(b.shape_of(input), 0, s.batch_first ? 0 : 1, s.batch_first ? 1 : 2);
      shape = concat({size, b.constant_ints({s.hidden})}, 0);
    }
    return b.call("ConstantOfShape", {shape}, {{"value", zero}});
  }
  // [batch, 1] of bool: step t lies inside the sequence; kNone without lengths.
  V active(V lengths, int64_t t) {
    if (lengths == kNone) return kNone;
    V at = b.tensor(Tensor::scalar<int32_t>(int32_t(t)));
    return b.unsqueeze(b.call("Greater", {lengths, at}), {1});
  }
  V keep(V mask, V fresh, V old) { return mask == kNone ? fresh : where(mask, fresh, old); }

  V clipped(V v) { return s.clip > 0 ? b.call("Clip", {v, num(-s.clip), num(s.clip)}) : v; }
  V fn(const CellActivation& a, V v) {
    switch (a.fn) {
      case CellFn::kSigmoid:
        return b.call("Sigmoid", {v});
      case CellFn::kTanh:
        return b.call("Tanh", {v});
      case CellFn::kRelu:
        return b.call("Relu", {v});
      case CellFn::kLeakyRelu:
        return b.call("LeakyRelu", {v}, {{"alpha", a.alpha}});
      case CellFn::kThresholdedRelu:
        return b.call("ThresholdedRelu", {v}, {{"alpha", a.alpha}});
      case CellFn::kScaledTanh:
        return b.mul(num(a.alpha), b.call("Tanh", {b.mul(num(a.beta), v)}));
      case CellFn::kHardSigmoid:
        return b.call("HardSigmoid", {v}, {{"alpha", a.alpha}, {"beta", a.beta}});
      case CellFn::kElu:
        return b.call("Elu", {v}, {{"alpha", a.alpha}});
      case CellFn::kSoftsign:
        return b.call("Softsign", {v});
      case CellFn::kSoftplus:
        return b.call("Softplus", {v});
      case CellFn::kAffine:
        return b.add(b.mul(num(a.alpha), v), num(a.beta));
    }
    return v;
  }
  V greater(V x, V y) { return b.call("Greater", {x, y}); }
  V not_negative(V v) { return b.call("Not", {b.call("Less", {v, num(0)})}); }
  V slope(const CellActivation& a, V v, V y) {
    switch (a.fn) {
      case CellFn::kSigmoid:
        return b.mul(y, b.sub(num(1), y));
      case CellFn::kTanh:
        return b.sub(num(1), b.mul(y, y));
      case CellFn::kRelu:
        return where(greater(y, num(0)), num(1), num(0));
      case CellFn::kLeakyRelu:
        return where(not_negative(v), num(1), num(a.alpha));
      case CellFn::kThresholdedRelu:
        return where(greater(v, num(a.alpha)), num(1), num(0));
      case CellFn::kScaledTanh: {
        V t = b.call("Tanh", {b.mul(num(a.beta), v)});
        return b.mul(num(double(a.alpha) * double(a.beta)), b.sub(num(1), b.mul(t, t)));
      }
      case CellFn::kHardSigmoid: {
        V u = b.add(b.mul(num(a.alpha), v), num(a.beta));
        return where(b.call("And", {greater(u, num(0)), greater(num(1), u)}), num(a.alpha), num(0));
      }
      case CellFn::kElu:
        return where(not_negative(v), num(1), b.mul(num(a.alpha), b.call("Exp", {v})));
      case CellFn::kSoftsign: {
        V u = b.add(num(1), b.call("Abs", {v}));
        return b.div(num(1), b.mul(u, u));
      }
      case CellFn::kSoftplus:
        return b.call("Sigmoid", {v});
      case CellFn::kAffine:
        return num(a.alpha);
    }
    return num(1);
  }

  int64_t extra() const { return s.gates() + 1; }
  int64_t width() const { return s.saved_width() / s.hidden; }
  // Column of the gates' inputs in a saved row, or -1.
  int64_t inputs() const {
    int64_t plain = extra() + (s.cell == Cell::kLstm ? 3 : s.cell == Cell::kGru ? 1 : 0);
    return width() > plain ? plain : -1;
  }
  bool runs_back(int d) const { return (d == 1) != s.reverse; }
  V input_step(V x, int64_t t) { return pick(x, s.batch_first ? 1 : 0, t); }
  V state_of(V v, int d) { return v == kNone ? zero_state() : pick(v, s.batch_first ? 1 : 0, d); }
  V states(std::vector<V> per_direction) {
    for (V& v : per_direction) v = b.unsqueeze(v, {s.batch_first ? 1 : 0});
    return concat(std::move(per_direction), s.batch_first ? 1 : 0);
  }
};

// ---------------------------------------------------------------- forward
struct Cells : Unrolled {
  using Unrolled::Unrolled;
  V w, r, wb, rb, p, h, c;
  const CellActivation* f;
  bool projected = false;  // x holds x W^T already, and `turned_r` the parts of R^T
  std::vector<V> turned_r = {};

  V from_input(V x) { return projected ? x : matmul(x, turned(w)); }
  V recurrent() { return projected ? turned_r[0] : turned(r); }
  V column_or_none(V v, int64_t k) {
    return v == kNone ? kNone : slice(v, 0, k * s.hidden, (k + 1) * s.hidden);
  }
  V plus(V x, V y) { return y == kNone ? x : b.add(x, y); }
  V gate_rows(V m, int64_t from, int64_t count) {
    return slice(m, 0, from * s.hidden, (from + count) * s.hidden);
  }

  // Returns the saved row; moves h and c.
  V lstm(V x) {
    V z = plus(plus(b.add(from_input(x), matmul(h, recurrent())), wb), rb);
    V zi = columns(z, 0, 1), zo = columns(z, 1, 1), zf = columns(z, 2, 1), zc = columns(z, 3, 1),
      before = c;
    if (p != kNone) {
      zi = b.add(zi, b.mul(column_or_none(p, 0), c));
      zf = b.add(zf, b.mul(column_or_none(p, 2), c));
    }
    V i = fn(f[0], clipped(zi)), g = fn(f[1], clipped(zc));
    V forget = s.input_forget ? b.sub(num(1), i) : fn(f[0], clipped(zf));
    V after = b.add(b.mul(forget, before), b.mul(i, g));
    if (p != kNone) zo = b.add(zo, b.mul(column_or_none(p, 1), after));
    V o = fn(f[0], clipped(zo)), hc = fn(f[2], after);
    std::vector<V> save{i, o, forget, g, h, before, after, hc};
    if (inputs() >= 0) save.insert(save.end(), {zi, zo, zf, zc});
    c = after;
    h = b.mul(o, hc);
    return concat(save, 1);
  }
  V gru(V x) {
    V xz = plus(from_input(x), wb);
    V zr =
        b.add(columns(xz, 0, 2), matmul(h, projected ? turned_r[0] : turned(gate_rows(r, 0, 2))));
    if (rb != kNone) zr = b.add(zr, gate_rows(rb, 0, 2));
    V zrs = fn(f[0], clipped(zr)), z = columns(zrs, 0, 1), reset = columns(zrs, 1, 1),
      rh = projected ? turned_r[1] : gate_rows(r, 2, 1);
    V bias = column_or_none(rb, 2), kept, zh;
    if (s.linear_before_reset) {
      kept = plus(matmul(h, projected ? rh : turned(rh)), bias);
      zh = b.add(columns(xz, 2, 1), b.mul(reset, kept));
    } else {
      kept = b.mul(reset, h);
      zh = b.add(columns(xz, 2, 1), plus(matmul(kept, projected ? rh : turned(rh)), bias));
    }
    V g = fn(f[1], clipped(zh));
    std::vector<V> save{z, reset, g, h, kept};
    if (inputs() >= 0) save.insert(save.end(), {zr, zh});
    h = b.add(b.mul(b.sub(num(1), z), g), b.mul(z, h));
    return concat(save, 1);
  }
  V rnn(V x) {
    V z = plus(plus(b.add(from_input(x), matmul(h, recurrent())), wb), rb),
      y = fn(f[0], clipped(z));
    std::vector<V> save{y, h};
    if (inputs() >= 0) save.push_back(z);
    h = y;
    return concat(save, 1);
  }
};

}  // namespace onnxtrain::ops::cells
