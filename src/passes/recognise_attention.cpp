// Exporters' chains for attention become FusedAttention:
//   softmax(scale * q k^T) v over [batch, heads, rows, width] or [heads, rows, width], whatever
//   transposes and reshapes lie before q, k, v and behind the result, heads of k and v repeated;
//   under a causal constant, a mask that is added, or scores replaced where a condition closes
//   them; rows that see nothing: NaN, or zero where the chain says so; dropout with constant ratio.
#include <algorithm>
#include <limits>

#include "passes/strided.hpp"

namespace onnxtrain {

namespace {

constexpr double kNothing = -1e30;  // of a score so low nothing is left beside any other

enum Empty : int64_t { kNan, kZero, kNeverNan };  // simd::EmptyRow

class Attention {
 public:
  explicit Attention(Chains& c) : c_(&c) {}

  bool match(NodeId softmax) {
    const Node& n = c_->node(softmax);
    p_ = n.outputs[0];
    if (!c_->known(p_, DType::kFloat, dims_) || (dims_.size() != 3 && dims_.size() != 4))
      return false;
    const int64_t last = int64_t(dims_.size()) - 1, axis = n.i("axis", n.version < 13 ? 1 : -1);
    if (axis != last && !(axis == -1 && n.version >= 11)) return false;
    if (*std::min_element(dims_.begin(), dims_.end()) < 1) return false;
    queries_ = dims_[dims_.size() - 2], keys_ = dims_.back();
    heads_ = dims_[dims_.size() - 3], batch_ = dims_.size() == 4 ? dims_[0] : 1;
    return upwards(n.inputs[0]) && downwards() && operands() && wins();
  }

  void rewrite() {
    Node& n = c_->replace(last_, "FusedAttention", 1, {q_.base, k_.base, v_.base});
    n.domain = std::string(kOwnDomain);
    if (mask_ != kNone) n.inputs.push_back(mask_);
    n.attrs["dims"] =
        std::vector<int64_t>{batch_, heads_, kv_heads_, queries_, keys_, width_, value_width_};
    n.attrs["q_strides"] = outer(q_.strides, false);
    n.attrs["k_strides"] = outer(k_.strides, true);
    n.attrs["v_strides"] = outer(v_.strides, false);
    n.attrs["y_strides"] = outer(y_strides_, false);
    n.attrs["y_shape"] = y_shape_;
    n.attrs["scale"] = float(scale_);
    n.attrs["is_causal"] = int64_t(causal_);
    n.attrs["empty"] = int64_t(empty_);
    n.attrs["open_is"] = int64_t(open_is_);
    n.attrs["fill"] = float(fill_);
    n.attrs["ratio"] = float(ratio_);
    if (ratio_ > 0) {
      n.name = dropout_->name;
      n.random_stream = dropout_->random_stream;
      if (dropout_->has("row_axis")) n.attrs["row_axis"] = dropout_->i("row_axis", 0);
    }
  }

 private:
  // ---------------------------------------------------------------- from softmax to the GEMM
  bool upwards(ValueId in, int depth = 0) {
    if (c_->reader(in) < 0 || depth > 3) return false;
    double scale = 1;
    const ValueId plain = c_->unscaled(in, scale);
    const Node* n = c_->producer(plain);
    if (n && n->is("MatMul")) {
      scores_ = n;
      scale_ = scale;
      return c_->reader(plain) >= 0 && c_->same_type(plain, p_);
    }
    n = c_->producer(in);
    if (!n || !c_->same_type(in, p_)) return false;
    if (n->is("Add") && n->version >= 7 && n->inputs[0] != n->inputs[1])
      for (size_t side : {0u, 1u}) {
        const Attention before = *this;
        if (upwards(n->inputs[side], depth + 1)) return bias(n->inputs[1 - side]);
        *this = before;
      }
    if (n->is("Where"))
      for (size_t side : {1u, 2u}) {
        const Attention before = *this;
        if (n->inputs[1] != n->inputs[2] && upwards(n->inputs[side], depth + 1))
          return closed(n->inputs[0], side == 1, n->inputs[3 - side]);
        *this = before;
      }
    return false;
  }

  bool fits_scores(ValueId mask, DType t) const {
    Shape s;
    if (!c_->known(mask, t, s) || s.empty() || s.size() > dims_.size() || s.back() != keys_)
      return false;
    for (size_t k = 0; k < s.size(); ++k)
      if (s[k] != 1 && s[k] != dims_[dims_.size() - s.size() + k]) return false;
    return true;
  }

  // What a constant says about each place: shut(value), in [.., queries, keys].
  enum class Kind { kOpen, kCausal, kOther };
  template <class T, class Shut, class Free>
  Kind kind_of(const Tensor& t, Shut shut, Free open) const {
    const T* at = t.as<T>();
    if (std::all_of(at, at + t.size(), open)) return Kind::kOpen;
    const Shape& s = t.shape();
    if (queries_ != keys_ || s.size() < 2 || s[s.size() - 2] != queries_ || s.back() != keys_)
      return Kind::kOther;
    for (int64_t i = 0; i < t.size(); ++i) {
      const int64_t row = i / keys_ % queries_, column = i % keys_;
      if (column <= row ? !open(at[i]) : !shut(at[i])) return Kind::kOther;
    }
    return Kind::kCausal;
  }

  bool causal(double low) {
    // together with another mask only infinity stays what it is
    if (causal_ || (mask_ != kNone && low != -INFINITY)) return false;
    causal_ = true;
    low_ = low;
    return true;
  }
  bool take_mask(ValueId m) {
    if (mask_ != kNone || (causal_ && low_ != -INFINITY)) return false;
    mask_ = m;
    return true;
  }

  // A mask that is added.
  bool bias(ValueId m) {
    if (!fits_scores(m, DType::kFloat)) return false;
    if (const Tensor* t = c_->constant(m)) {
      double low = -INFINITY;
      auto shut = [&](float v) {
        low = std::max(low, double(v));
        return double(v) <= kNothing;
      };
      const Kind k = kind_of<float>(*t, shut, [](float v) { return v == 0; });
      if (k == Kind::kOpen) return true;
      if (k == Kind::kCausal) return causal(low);
    }
    return take_mask(m);
  }

  // Scores where `condition` is not `open` become `fill`.
  bool closed(ValueId condition, bool open, ValueId fill) {
    double number = 0;
    if (!c_->number(fill, number) || condition_ != kNone || !fits_scores(condition, DType::kBool))
      return false;
    condition_ = condition;
    condition_open_ = open;
    if (const Tensor* t = c_->constant(condition)) {
      auto is_open = [&](bool v) { return v == open; };
      const Kind k = kind_of<bool>(
          *t, [&](bool v) { return v != open && number <= kNothing; }, is_open);
      if (k == Kind::kOpen) return true;
      if (k == Kind::kCausal) return causal(number);
    }
    if (mask_ != kNone && !open && number <= kNothing && is_infinity_of(condition, mask_))
      return needs_zero_ = true;  // the mask has closed these already
    if (!take_mask(condition)) return false;
    open_is_ = open;
    fill_ = number;
    return true;
  }
  // condition = (mask == -infinity)
  bool is_infinity_of(ValueId condition, ValueId mask) const {
    const Node* n = c_->producer(condition);
    double number = 0;
    if (n && n->is("Equal")) return c_->number(c_->other(*n, mask), number) && number == -INFINITY;
    const Tensor *a = c_->constant(condition), *b = c_->constant(mask);
    if (!a || !b || a->shape() != b->shape()) return false;
    for (int64_t i = 0; i < a->size(); ++i)
      if (a->as<bool>()[i] != (b->as<float>()[i] == -std::numeric_limits<float>::infinity()))
        return false;
    return true;
  }

  // ---------------------------------------------------------------- from softmax to the result
  bool downwards() {
    ValueId at = p_;
    if (!zero_where_empty(at) || (needs_zero_ && empty_ != kZero) || !dropout(at)) return false;
    const NodeId mix = c_->reader(at);
    if (mix < 0) return false;
    mix_ = &c_->node(mix);
    if (!mix_->is("MatMul") || mix_->inputs[0] != at || mix_->inputs[1] == at) return false;
    last_ = mix;
    return true;
  }

  // Where(condition, 0, p) or Where(IsNaN(p), 0, p) behind the softmax.
  bool zero_where_empty(ValueId& at) {
    const auto& readers = c_->readers(at);
    double number = 1;
    NodeId where = c_->reader(at);
    ValueId condition = condition_;
    Empty rule = kZero;
    if (!c_->fixed(at) && readers.size() == 2) {
      const NodeId nan = c_->node(readers[0]).is("IsNaN") ? readers[0] : readers[1];
      where = readers[0] == nan ? readers[1] : readers[0];
      condition = c_->node(nan).outputs[0];
      if (!c_->node(nan).is("IsNaN") || c_->reader(condition) != where) return false;
      rule = kNeverNan;
    }
    if (where < 0 || !c_->node(where).is("Where")) return true;
    const Node& n = c_->node(where);
    const bool open = rule == kZero && condition_open_;  // condition says what stays
    if (condition == kNone || n.inputs[0] != condition || n.inputs[open ? 1 : 2] != at ||
        !c_->number(n.inputs[open ? 2 : 1], number) || number != 0 ||
        !c_->same_type(at, n.outputs[0]))
      return false;
    // only what is too low to have weight is zero already
    if (rule == kZero && mask_ == condition) {
      if (fill_ > kNothing) return false;
      fill_ = -INFINITY;
    }
    empty_ = rule;
    at = n.outputs[0];
    return true;
  }

  bool dropout(ValueId& at) {
    const NodeId k = c_->reader(at);
    if (k < 0 || !c_->node(k).is("Dropout")) return true;
    if (c_->node(k).i("row_axis", 0) > 0 || c_->node(k).i("row_outer", 1) > 1)
      return false;  // rows of a block that are no batch items
    const Node& n = c_->node(k);
    if (n.version < 7 || n.inputs[0] != at || n.has("seed")) return false;
    if (n.outputs.size() > 1 && n.outputs[1] != kNone &&
        (c_->fixed(n.outputs[1]) || !c_->readers(n.outputs[1]).empty()))
      return false;
    at = n.outputs[0];
    if (n.version < 12 || n.inputs.size() < 3 || n.inputs[2] == kNone) return true;  // inference
    const Tensor* train = c_->constant(n.inputs[2]);
    if (!train || train->dtype() != DType::kBool || train->size() != 1) return false;
    if (!*train->as<bool>()) return true;
    double ratio = 0.5;
    if (n.inputs[1] != kNone && !c_->number(n.inputs[1], ratio)) return false;
    ratio_ = float(ratio);
    dropout_ = &n;
    return ratio_ >= 0 && ratio_ < 1;
  }

  // ---------------------------------------------------------------- q, k, v and the result
  Shape with_dims(int64_t heads, int64_t rows, int64_t columns) const {
    return dims_.size() == 4 ? Shape{batch_, heads, rows, columns} : Shape{heads, rows, columns};
  }

  // The value whose heads `v` repeats, each `times` next to each other; v itself when it does not.
  ValueId unrepeated(ValueId v, int64_t& times) const {
    const Node *join = c_->producer(v), *wide = join ? c_->producer(join->inputs[0]) : nullptr,
               *cut = wide ? c_->producer(wide->inputs[0]) : nullptr;
    Shape s, to, from;
    if (!cut || !join->is("Reshape") || !wide->is("Expand") ||
        !(cut->is("Unsqueeze") || cut->is("Reshape")) ||
        !c_->known(cut->inputs[0], DType::kFloat, s) ||
        !c_->known(wide->inputs[0], DType::kFloat, from) ||
        !c_->known(wide->outputs[0], DType::kFloat, to) || s.size() != 4)
      return v;
    const Shape middle{s[0], s[1], 1, s[2], s[3]};
    if (from != middle || to.size() != 5 || to != Shape{s[0], s[1], to[2], s[2], s[3]}) return v;
    Shape all;
    if (!c_->known(v, DType::kFloat, all) || all != Shape{s[0], s[1] * to[2], s[2], s[3]}) return v;
    times = to[2];
    return cut->inputs[0];
  }

  bool operands() {
    const size_t rank = dims_.size();
    Shape q, k, v;
    const ValueId q_at = c_->unscaled(scores_->inputs[0], scale_);
    ValueId k_at = c_->unscaled(scores_->inputs[1], scale_), v_at = mix_->inputs[1];
    if (!c_->known(q_at, DType::kFloat, q) || !c_->known(k_at, DType::kFloat, k) ||
        !c_->known(v_at, DType::kFloat, v) || q.size() != rank || v.size() != rank)
      return false;
    width_ = q.back(), value_width_ = v.back();
    if (q != with_dims(heads_, queries_, width_) || k != with_dims(heads_, width_, keys_) ||
        v != with_dims(heads_, keys_, value_width_) || width_ < 1 || value_width_ < 1)
      return false;
    kv_heads_ = heads_;
    k_ = strided_view(*c_, k_at, rank - 2);
    // heads that are repeated for k and v alike
    int64_t k_times = 1, v_times = 1;
    const Node* turn = c_->producer(k_at);
    if (rank == 4 && turn && turn->is("Transpose") &&
        turn->ints("perm") == std::vector<int64_t>{0, 1, 3, 2}) {
      const ValueId fewer = unrepeated(turn->inputs[0], k_times);
      const ValueId fewer_v = unrepeated(v_at, v_times);
      if (k_times > 1 && k_times == v_times) {
        k_ = strided_view(*c_, fewer, rank - 1);
        if (k_.base != kNone) std::swap(k_.strides[2], k_.strides[3]);
        v_at = fewer_v;
        kv_heads_ = heads_ / k_times;
      }
    }
    q_ = strided_view(*c_, q_at, rank - 1);
    v_ = strided_view(*c_, v_at, rank - 1);
    return q_.base != kNone && k_.base != kNone && v_.base != kNone && result();
  }

  bool result() {
    const ValueId y = mix_->outputs[0];
    if (!c_->known(y, DType::kFloat, y_shape_) ||
        y_shape_ != with_dims(heads_, queries_, value_width_))
      return false;
    std::vector<int64_t> perm;
    const NodeId turn = c_->reader(y);
    if (turn >= 0 && c_->node(turn).is("Transpose")) perm = c_->node(turn).ints("perm");
    const size_t rank = dims_.size();
    if (perm.size() == rank && perm.back() == int64_t(rank) - 1) {
      last_ = turn;
      if (!c_->known(c_->node(turn).outputs[0], DType::kFloat, y_shape_)) return false;
    } else {
      perm.clear();
      for (size_t d = 0; d < rank; ++d) perm.push_back(int64_t(d));
    }
    y_strides_.assign(rank, 0);
    int64_t step = 1;
    for (size_t d = rank; d-- > 0; step *= y_shape_[d]) y_strides_[size_t(perm[d])] = step;
    return true;
  }

  // Strides of batch, head and row; k's last two dimensions are turned.
  std::vector<int64_t> outer(const Shape& s, bool turned) const {
    const size_t rank = s.size();
    return {rank == 4 ? s[0] : 0, s[rank - 3], s[rank - (turned ? 1 : 2)]};
  }

  bool wins() const;

  Chains* c_;
  Shape dims_;  // of the scores
  int64_t batch_ = 1, heads_ = 1, kv_heads_ = 1, queries_ = 0, keys_ = 0, width_ = 0,
          value_width_ = 0;
  const Node *scores_ = nullptr, *mix_ = nullptr, *dropout_ = nullptr;
  ValueId p_ = kNone, mask_ = kNone, condition_ = kNone;
  bool causal_ = false, open_is_ = true, condition_open_ = false, needs_zero_ = false;
  double scale_ = 1, low_ = 0, fill_ = -INFINITY;
  Empty empty_ = kNan;
  float ratio_ = 0;
  Strided q_, k_, v_;
  Shape y_shape_, y_strides_;
  NodeId last_ = -1;
};

// The operator makes the scores a second time for the gradient, one GEMM and one exponential
// each, and draws dropout's numbers again; the chain moves scores, probabilities and what masks and
// dropout make of them through the caches, or through memory when they are too many to stay. A
// mask that is learned has a gradient for every score either way. In numbers moved per score, as
// measured on whole steps (docs/performance.md). Under a causal mask every block of queries leaves
// out the keys behind it: with more than one block that always wins.
bool Attention::wins() const {
  constexpr int64_t kBlock = 64;      // queries that the kernel takes at a time
  constexpr double kStays = 8 << 20;  // bytes of scores that are still in a cache in the gradient
  if (causal_ && queries_ > kBlock) return true;
  const bool masked = causal_ || mask_ != kNone;
  const bool learned = mask_ != kNone && mask_ != condition_ && c_->learned(mask_);
  const double bytes = 4.0 * double(num_elements(dims_));
  const double moved = 8 + (masked ? 4 : 0) + (empty_ != kNan ? 4 : 0) + (ratio_ > 0 ? 5 : 0);
  const double again = double(width_) / 4 + 5 + (ratio_ > 0 ? 6 : 0) + (learned ? 4 : 0);
  return moved * (bytes > kStays && !learned ? 3 : 1) > again;
}

}  // namespace

bool recognise_attention(Chains& c, NodeId softmax) {
  Attention a(c);
  if (!a.match(softmax)) return false;
  a.rewrite();
  return true;
}

bool second_derivatives(const Graph& g) {
  std::vector<char> derived(g.values.size(), 0);
  for (const Node& n : g.nodes) {
    const bool gradient = n.is("Gradient", kTrainingDomain);
    bool from = false;
    for (ValueId v : g.reads(n)) from |= derived[size_t(v)] != 0;
    if (gradient && from) return true;
    if (gradient || from)
      for (ValueId v : n.outputs)
        if (v != kNone) derived[size_t(v)] = 1;
  }
  return false;
}

}  // namespace onnxtrain
