// LSTM, GRU and RNN for training in standard operators, unrolled over the known number of steps:
// the forward pass with what it saves, and the backward pass from that. The batch may be open.
#include "ops/nn/recurrent_cells.hpp"

namespace onnxtrain::ops {

using namespace cells;

std::vector<ValueId> recurrent_train_lower(GradBuilder& b) {
  if (b.node().i(kAsScan, 0) != 0) return recurrent_scan_lower(b);
  auto in = [&](int i) { return b.has(i) ? b.x(i) : kNone; };
  Cells u(b, b.x(0), b.x(1), b.x(2));
  const RecurrentShape& s = u.s;
  bool lstm = s.cell == Cell::kLstm;
  V x = u.typed(b.x(0)), w = u.typed(b.x(1)), r = u.typed(b.x(2)), bias = u.typed(in(3)),
    lengths = in(4);
  V h0 = u.typed(in(5)), c0 = lstm ? u.typed(in(6)) : kNone, p = lstm ? u.typed(in(7)) : kNone;
  std::vector<V> ys, hs, cs, saves;
  for (int d = 0; d < s.directions; ++d) {
    u.w = u.pick(w, 0, d), u.r = u.pick(r, 0, d), u.p = p == kNone ? kNone : u.pick(p, 0, d);
    V bd = bias == kNone ? kNone : u.pick(bias, 0, d);
    u.wb = bd == kNone ? kNone : u.gate_rows(bd, 0, s.gates());
    u.rb = bd == kNone ? kNone : u.gate_rows(bd, s.gates(), s.gates());
    u.h = u.state_of(h0, d), u.c = u.state_of(c0, d), u.f = s.activations[size_t(d)].data();
    std::vector<V> y(size_t(s.steps)), save(size_t(s.steps));
    for (int64_t k = 0; k < s.steps; ++k) {
      int64_t t = u.runs_back(d) ? s.steps - 1 - k : k;
      V xt = u.input_step(x, t), mask = u.active(lengths, t), h = u.h, c = u.c;
      V row = lstm ? u.lstm(xt) : s.cell == Cell::kGru ? u.gru(xt) : u.rnn(xt);
      y[size_t(t)] = u.keep(mask, u.h, u.num(0));
      save[size_t(t)] = u.keep(mask, row, u.num(0));
      u.h = u.keep(mask, u.h, h);
      u.c = u.keep(mask, u.c, c);
    }
    int64_t axis = s.batch_first ? 1 : 0;
    for (V& v : y) v = b.unsqueeze(v, {axis});
    for (V& v : save) v = b.unsqueeze(v, {axis});
    // a direction of Y: [steps, 1, batch, hidden] or [batch, steps, 1, hidden]
    ys.push_back(b.unsqueeze(u.concat(y, axis), {s.batch_first ? 2 : 1}));
    V rows =
        b.call("Reshape", {u.concat(save, axis), b.constant_ints({1, u.rows(), s.saved_width()})});
    saves.push_back(rows);
    hs.push_back(u.h);
    cs.push_back(u.c);
  }
  DType to = b.dtype(b.x(0));
  std::vector<V> out{u.back(u.concat(ys, s.batch_first ? 2 : 1), to), u.back(u.states(hs), to)};
  if (lstm) out.push_back(u.back(u.states(cs), to));
  out.push_back(u.concat(saves, 0));
  return out;
}

namespace {

// ---------------------------------------------------------------- backward
struct Back : Unrolled {
  using Unrolled::Unrolled;
  V r, p, dh, dc, save;
  const CellActivation* f;

  V gate_rows(int64_t from, int64_t count) {
    return slice(r, 0, from * s.hidden, (from + count) * s.hidden);
  }
  V saved(int64_t k, int64_t count = 1) { return columns(save, k, count); }
  V gate_slope(const CellActivation& a, int64_t k) {
    V z = inputs() < 0 ? kNone : saved(inputs() + k);
    V d = slope(a, z, saved(k));
    if (s.clip > 0) d = where(greater(b.call("Abs", {z}), num(s.clip)), num(0), d);
    return d;
  }
  V peephole(int64_t k) { return slice(p, 0, k * s.hidden, (k + 1) * s.hidden); }

  // Each returns the row of gate gradients [dz..., (GRU: gradient of the candidate's recurrent
  // part)].
  V lstm() {
    V i = saved(0), o = saved(1), forget = saved(2), g = saved(3);
    int64_t e = s.gates() + 1;
    V before = saved(e), after = saved(e + 1), hc = saved(e + 2);
    V zo = b.mul(b.mul(dh, hc), gate_slope(f[0], 1));
    V d = b.add(dc, b.mul(b.mul(dh, o), slope(f[2], after, hc)));
    if (p != kNone) d = b.add(d, b.mul(peephole(1), zo));
    V di = b.mul(d, g), df = b.mul(d, before);
    if (s.input_forget) di = b.sub(di, df);
    V zi = b.mul(di, gate_slope(f[0], 0));
    V zf = s.input_forget ? b.mul(df, num(0)) : b.mul(df, gate_slope(f[0], 2));
    V zc = b.mul(b.mul(d, i), gate_slope(f[1], 3));
    dc = b.mul(d, forget);
    if (p != kNone) dc = b.add(dc, b.add(b.mul(peephole(0), zi), b.mul(peephole(2), zf)));
    V z = concat({zi, zo, zf, zc}, 1);
    dh = matmul(z, r);
    return z;
  }
  V gru() {
    V z = saved(0), reset = saved(1), g = saved(2), h = saved(3), kept = saved(4);
    V zh = b.mul(b.mul(dh, b.sub(num(1), z)), gate_slope(f[1], 2));
    V zz = b.mul(b.mul(dh, b.sub(h, g)), gate_slope(f[0], 0));
    V direct = b.mul(dh, z), rh = gate_rows(2, 1), zr, rec;
    if (s.linear_before_reset) {
      rec = b.mul(zh, reset);
      zr = b.mul(b.mul(zh, kept), gate_slope(f[0], 1));
      direct = b.add(direct, matmul(rec, rh));
    } else {
      rec = zh;
      V sent = matmul(zh, rh);
      zr = b.mul(b.mul(sent, h), gate_slope(f[0], 1));
      direct = b.add(direct, b.mul(sent, reset));
    }
    dh = b.add(direct, matmul(concat({zz, zr}, 1), gate_rows(0, 2)));
    return concat({zz, zr, zh, rec}, 1);
  }
  V rnn() {
    V z = b.mul(dh, gate_slope(f[0], 0));
    dh = matmul(z, r);
    return z;
  }
};

}  // namespace

std::vector<ValueId> recurrent_grad_lower(GradBuilder& b) {
  auto in = [&](int i) { return b.has(i) ? b.x(i) : kNone; };
  Back u(b, b.x(0), b.x(1), b.x(2));
  const RecurrentShape& s = u.s;
  bool gru = s.cell == Cell::kGru;
  int64_t h = s.hidden, g = s.gates(), dz_width = gru ? 4 : g;
  V x = u.typed(b.x(0)), w = u.typed(b.x(1)), r = u.typed(b.x(2)), lengths = in(3),
    p = u.typed(in(4)), saved = b.x(5);
  V dy = u.typed(in(6)), dyh = u.typed(in(7)), dyc = u.typed(in(8));
  V flat_x = b.call("Reshape", {x, b.constant_ints({u.rows(), s.inputs})}), dx = kNone;
  std::vector<V> dws, drs, dbs, dhs, dcs, dps;
  for (int d = 0; d < s.directions; ++d) {
    u.r = u.pick(r, 0, d), u.p = p == kNone ? kNone : u.pick(p, 0, d),
    u.f = s.activations[size_t(d)].data();
    u.dh = u.state_of(dyh, d), u.dc = u.state_of(dyc, d);
    V rows = u.pick(saved, 0, d);
    Shape by_step = s.batch_first ? Shape{u.batch(), s.steps, s.saved_width()}
                                  : Shape{s.steps, u.batch(), s.saved_width()};
    V steps = b.call("Reshape", {rows, b.constant_ints(by_step)});
    V dyd = dy == kNone ? kNone : u.pick(dy, s.batch_first ? 2 : 1, d);
    std::vector<V> zs(size_t(s.steps));
    int64_t axis = s.batch_first ? 1 : 0;
    for (int64_t k = 0; k < s.steps; ++k) {
      int64_t t = u.runs_back(d) ? k : s.steps - 1 - k;
      V mask = u.active(lengths, t), dh = u.dh, dc = u.dc;
      if (dyd != kNone) u.dh = b.add(u.dh, u.pick(dyd, axis, t));
      u.save = u.pick(steps, axis, t);
      V z = s.cell == Cell::kLstm ? u.lstm() : gru ? u.gru() : u.rnn();
      zs[size_t(t)] = b.unsqueeze(u.keep(mask, z, u.num(0)), {axis});
      u.dh = u.keep(mask, u.dh, dh);
      u.dc = u.keep(mask, u.dc, dc);
    }
    V dz = b.call("Reshape", {u.concat(zs, axis), b.constant_ints({u.rows(), dz_width * h})});
    V gates = gru ? u.columns(dz, 0, 3) : dz, h_prev = u.columns(rows, g, 1);
    V part = b.call("Reshape", {u.matmul(gates, u.pick(w, 0, d)), b.shape_of(x)});
    dx = dx == kNone ? part : b.add(dx, part);
    dws.push_back(b.unsqueeze(u.matmul(u.turned(gates), flat_x), {0}));
    V dr, rec = gates;
    if (gru) {
      V last = u.columns(dz, 3, 1),
        seen = s.linear_before_reset ? h_prev : u.columns(rows, u.extra(), 1);
      dr = u.concat(
          {u.matmul(u.turned(u.columns(dz, 0, 2)), h_prev), u.matmul(u.turned(last), seen)}, 0);
      rec = u.concat({u.columns(dz, 0, 2), last}, 1);
    } else {
      dr = u.matmul(u.turned(dz), h_prev);
    }
    drs.push_back(b.unsqueeze(dr, {0}));
    dbs.push_back(b.unsqueeze(
        u.concat({b.reduce_sum(gates, {0}, false), b.reduce_sum(rec, {0}, false)}, 0), {0}));
    dhs.push_back(u.dh);
    dcs.push_back(u.dc);
    if (p != kNone) {
      V before = u.columns(rows, u.extra(), 1), after = u.columns(rows, u.extra() + 1, 1);
      V both = u.concat({b.mul(u.columns(dz, 0, 1), before), b.mul(u.columns(dz, 1, 1), after),
                         b.mul(u.columns(dz, 2, 1), before)},
                        1);
      dps.push_back(b.reduce_sum(both, {0}, true));
    }
  }
  DType to = b.dtype(b.x(0));
  std::vector<V> out{u.back(dx, to), u.back(u.concat(dws, 0), to), u.back(u.concat(drs, 0), to),
                     u.back(u.concat(dbs, 0), to), u.back(u.states(dhs), to)};
  out.push_back(s.cell == Cell::kLstm ? u.back(u.states(dcs), to) : kNone);
  out.push_back(dps.empty() ? kNone : u.back(u.concat(dps, 0), to));
  return out;
}

}  // namespace onnxtrain::ops
