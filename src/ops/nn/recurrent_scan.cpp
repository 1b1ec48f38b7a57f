// LSTM, GRU and RNN as a Scan over time. The input's part of the gates is one matrix multiplication
// before it; the body has the recurrent part. Its gradient is that of Scan.
#include "ops/control/body.hpp"
#include "ops/nn/recurrent_cells.hpp"

namespace onnxtrain::ops {

using namespace cells;

namespace {

class Scanned {
 public:
  explicit Scanned(GradBuilder& b) : b_(b), u_(b, b.x(0), b.x(1), b.x(2), true) {
    const std::vector<Dim>& x = *b.type(b.x(0)).shape;
    steps_ = x[u_.s.batch_first ? 1 : 0];
    batch_ = x[u_.s.batch_first ? 0 : 1];
  }

  std::vector<V> build() {
    const RecurrentShape& s = u_.s;
    const bool lstm = s.cell == Cell::kLstm;
    const V x = u_.typed(b_.x(0)), w = u_.typed(b_.x(1));
    const V x_by_time = s.batch_first ? b_.transpose(x, {1, 0, 2}) : x;
    std::vector<V> ys, hs, cs;
    for (int d = 0; d < s.directions; ++d) {
      std::vector<V> made = direction(d, u_.matmul(x_by_time, u_.turned(u_.pick(w, 0, d))));
      hs.push_back(made[0]);
      if (lstm) cs.push_back(made[1]);
      const V y = s.batch_first ? b_.transpose(made.back(), {1, 0, 2}) : made.back();
      ys.push_back(b_.unsqueeze(y, {s.batch_first ? 2 : 1}));
    }
    const DType to = b_.dtype(b_.x(0));
    std::vector<V> out{u_.back(u_.concat(ys, s.batch_first ? 2 : 1), to),
                       u_.back(u_.states(hs), to)};
    if (lstm) out.push_back(u_.back(u_.states(cs), to));
    return out;
  }

 private:
  V given(int i) { return b_.has(i) ? u_.typed(b_.x(i)) : kNone; }

  TypeInfo type_of(DType t, std::vector<Dim> dims) {
    TypeInfo info = TypeInfo::tensor(t);
    info.shape = std::move(dims);
    return info;
  }

  // [steps, batch, 1] of bool: the step lies inside the sequence.
  V mask() {
    if (!b_.has(4) || mask_ != kNone) return mask_;
    V at = kNone;
    if (u_.open_steps) {
      const V count = b_.call("Gather", {b_.shape_of(b_.x(0)), b_.constant_int(time_axis())},
                              {{"axis", int64_t(0)}});
      at = b_.call("Range", {b_.constant_int(0), count, b_.constant_int(1)});
    } else {
      std::vector<int64_t> all;
      for (int64_t t = 0; t < u_.s.steps; ++t) all.push_back(t);
      at = b_.constant_ints(all);
    }
    const V lengths = b_.call("Cast", {b_.x(4)}, {{"to", int64_t(DType::kInt64)}});
    const V inside = b_.call("Greater", {b_.unsqueeze(lengths, {0}), b_.unsqueeze(at, {1})});
    return mask_ = b_.unsqueeze(inside, {2});
  }

  int64_t time_axis() const { return u_.s.batch_first ? 1 : 0; }

  // Weights of direction d, as the body reads them.
  void give_weights(Cells& in, BodyBuilder& body, int d) {
    const V r = u_.pick(u_.typed(b_.x(2)), 0, d), bias = given(3), p = lstm() ? given(7) : kNone;
    const int64_t h = u_.s.hidden, gates = u_.s.gates();
    auto turned = [&](int64_t from, int64_t count) {
      const V part = count == gates ? r : u_.slice(r, 0, from * h, (from + count) * h);
      return body.capture(u_.turned(part));
    };
    in.projected = true;
    if (u_.s.cell == Cell::kGru)
      in.turned_r = {turned(0, 2), turned(2, 1)};
    else
      in.turned_r = {turned(0, gates)};
    in.wb = in.rb = in.p = kNone;
    if (bias != kNone) {
      const V one = u_.pick(bias, 0, d);
      in.wb = body.capture(u_.slice(one, 0, 0, gates * h));
      in.rb = body.capture(u_.slice(one, 0, gates * h, 2 * gates * h));
    }
    if (p != kNone) in.p = body.capture(u_.pick(p, 0, d));
    in.f = u_.s.activations[size_t(d)].data();
  }

  bool lstm() const { return u_.s.cell == Cell::kLstm; }

  // Last states and all of them by time: h, (c), y.
  std::vector<V> direction(int d, V gates_of_input) {
    const TypeInfo state = type_of(u_.type, {batch_, Dim{u_.s.hidden, {}}});
    BodyBuilder body(b_, b_.node().label() + "_cell");
    GradBuilder inner = body.builder();
    Cells in(inner, u_);
    in.h = body.input("h", state);
    in.c = lstm() ? body.input("c", state) : kNone;
    const V old_h = in.h, old_c = in.c;
    const V x = body.input("x", type_of(u_.type, {batch_, Dim{u_.s.gates() * u_.s.hidden, {}}}));
    const V inside = mask();
    const V mask =
        inside == kNone ? kNone : body.input("inside", type_of(DType::kBool, {batch_, Dim{1, {}}}));
    give_weights(in, body, d);
    if (lstm())
      in.lstm(x);
    else if (u_.s.cell == Cell::kGru)
      in.gru(x);
    else
      in.rnn(x);
    const V y = in.keep(mask, in.h, in.num(0));
    body.output(in.keep(mask, in.h, old_h));
    if (lstm()) body.output(in.keep(mask, in.c, old_c));
    body.output(y);
    for (ValueId v : body.graph().outputs) body.graph().value(v).type = state;
    return scan(d, body, gates_of_input, inside, state);
  }

  std::vector<V> scan(int d, BodyBuilder& body, V x, V inside, const TypeInfo& state) {
    std::vector<V> inputs{u_.state_of(given(5), d)};
    if (lstm()) inputs.push_back(u_.state_of(given(6), d));
    inputs.push_back(x);
    if (inside != kNone) inputs.push_back(inside);
    const int64_t back = u_.runs_back(d) ? 1 : 0, scanned = inside == kNone ? 1 : 2;
    const int count = lstm() ? 3 : 2;
    std::vector<V> out =
        b_.call_n("Scan", inputs, count,
                  {{"body", body.finish()},
                   {"num_scan_inputs", scanned},
                   {"scan_input_directions", std::vector<int64_t>(size_t(scanned), back)},
                   {"scan_output_directions", std::vector<int64_t>{back}}});
    for (V v : out) b_.graph().value(v).type = state;
    b_.graph().value(out.back()).type = type_of(u_.type, {steps_, batch_, Dim{u_.s.hidden, {}}});
    return out;
  }

  GradBuilder& b_;
  Cells u_;
  Dim steps_, batch_;
  V mask_ = kNone;
};

}  // namespace

std::vector<ValueId> recurrent_scan_lower(GradBuilder& b) { return Scanned(b).build(); }

}  // namespace onnxtrain::ops
