// Random nodes in arithmetic that every runtime rounds alike. A counter, part of the state, is
// hashed with the number of the element: three rounds of (L, R) -> (L^2 + R + key mod 4093, L) for
// columns and for rows, three more for their sum. All numbers are whole and below 2^24, so float32
// holds them exactly, with or without fused multiply-add. Or: an input of uniform numbers that the
// caller fills.
#include <cmath>
#include <numbers>

#include "convert/portable/rules.hpp"
#include "convert/portable/stages.hpp"

namespace onnxtrain::portable {

namespace {

constexpr int64_t kPrime = 4093;
constexpr int kRounds = 3;

struct Pair {
  ValueId low, high;
};

class Numbers {
 public:
  Numbers(Site& s, ValueId counter, int64_t stream) : s_(s), stream_(stream) {
    Pair c = rounds(digits(counter), 0, 2 * kRounds, kNone);
    first_ = c;
  }

  // Uniform numbers in [0,1) in the shape of `like`: rows along its first dimension.
  ValueId uniform(ValueId like) {
    const std::vector<int64_t> sizes = s_.sizes(like);
    int64_t columns = 1;
    for (size_t d = 1; d < sizes.size(); ++d) {
      if (sizes[d] < 0) refuse_open(like);
      columns *= sizes[d];
    }
    if (columns >= int64_t(1) << 24)
      model_error("OT1260",
                  cat(s_.node().label(), " draws ", columns,
                      " random numbers per row; portable steps can count to ", 1 << 24),
                  "--random input lets the caller fill them");
    Pair c = digits(column_numbers(sizes));
    c = {mod(s_.add(c.low, first_.low)), mod(s_.add(c.high, first_.high))};
    c = rounds(c, 0, kRounds, kNone);
    const Pair r = rounds(digits(row_numbers(like, sizes)), 0, kRounds, first_.low);
    Pair both{mod(s_.add(c.low, r.low)), mod(s_.add(c.high, r.high))};
    both = rounds(both, kRounds, 2 * kRounds, kNone);
    const ValueId whole = s_.add(s_.mul(both.low, num(double(kPrime))), both.high);
    return s_.call("Abs", {s_.mul(whole, num(1.0 / double(kPrime * kPrime)))});
  }

 private:
  ValueId num(double v) { return s_.scalar(v, DType::kFloat); }
  ValueId key(int round) { return num(double((1597 * round + 911 * stream_) % kPrime)); }
  ValueId mod(ValueId v) {
    const ValueId q = s_.call("Floor", {s_.mul(v, num(1.0 / double(kPrime)))});
    return s_.sub(v, s_.mul(num(double(kPrime)), q));
  }
  Pair digits(ValueId v) {
    const ValueId q = s_.call("Floor", {s_.mul(v, num(1.0 / double(kPrime)))});
    return {s_.sub(v, s_.mul(num(double(kPrime)), q)), q};
  }
  Pair rounds(Pair p, int from, int to, ValueId more) {
    for (int r = from; r < to; ++r) {
      const ValueId k = more == kNone ? key(r) : mod(s_.add(key(r), more));
      p = {mod(s_.add(s_.mul(p.low, p.low), s_.add(p.high, k))), p.low};
    }
    return p;
  }
  [[noreturn]] void refuse_open(ValueId like) {
    model_error("OT1260",
                cat("the step cannot be portable: ", s_.node().label(), " draws numbers of shape ",
                    to_string(s_.type(like)), ", only the first size may be open"),
                "fix the sizes:  --dim NAME=N");
  }
  // 0, 1, 2, ... along one axis of so many.
  ValueId counted(int64_t n, size_t axis, size_t rank) {
    Tensor t(DType::kFloat, {n});
    for (int64_t k = 0; k < n; ++k) t.as<float>()[k] = float(k);
    std::vector<int64_t> shape(rank, 1);
    shape[axis] = n;
    return s_.tensor(t.reshaped(shape));
  }
  ValueId column_numbers(const std::vector<int64_t>& sizes) {
    ValueId sum = kNone;
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 1;) {
      ValueId at = counted(sizes[d], d, sizes.size());
      if (stride > 1) at = s_.mul(at, num(double(stride)));
      sum = sum == kNone ? at : s_.add(at, sum);
      stride *= sizes[d];
    }
    return sum == kNone ? num(0) : sum;
  }
  ValueId row_numbers(ValueId like, const std::vector<int64_t>& sizes) {
    if (sizes.empty()) return num(0);
    if (sizes[0] >= 0) return counted(sizes[0], 0, sizes.size());
    const ValueId rows =
        s_.call("Gather", {s_.call("Shape", {like}), s_.constant_int(0)}, {{"axis", int64_t(0)}});
    const ValueId at = s_.call("Range", {s_.constant_int(0), rows, s_.constant_int(1)});
    std::vector<int64_t> shape(sizes.size(), 1);
    shape[0] = -1;
    return s_.reshape(s_.cast(at, DType::kFloat), shape);
  }

  Site& s_;
  int64_t stream_;
  Pair first_;
};

// Where uniform numbers come from; one call, one stream.
class Source {
 public:
  Source(StepModel& m, const StepOptions& o, Graph& g) : step_(m), o_(o), g_(g) {}

  ValueId uniform(Site& s, ValueId like) {
    if (o_.random == "input") return fed(s, like);
    if (counter_ == kNone) {
      counter_ = g_.add_value(g_.unique_name("random_counter"), scalar_type());
      g_.inputs.push_back(counter_);
    }
    return Numbers(s, counter_, ++streams_).uniform(like);
  }
  // A tensor of this shape has no value to be like: a constant stands for it.
  ValueId like(Site& s, const std::vector<int64_t>& shape) {
    return s.tensor(Tensor(DType::kFloat, shape));
  }
  // The counter's next value; it begins again after 2^23 steps.
  void finish(const Context& c) {
    if (counter_ == kNone) return;
    Node none;
    Site s(g_, c, none);
    const ValueId more = s.add(counter_, s.scalar(1, DType::kFloat));
    const ValueId end = s.call("Less", {more, s.scalar(double(1 << 23), DType::kFloat)});
    const ValueId next = s.call("Where", {end, more, s.scalar(0, DType::kFloat)});
    g_.value(next).name = g_.unique_name(g_.value_name(counter_) + "_new");
    g_.value(next).type = scalar_type();
    g_.outputs.push_back(next);
    step_.feedback.emplace_back(g_.value_name(next), g_.value_name(counter_));
    step_.added_state.emplace_back(g_.value_name(counter_), Tensor::scalar<float>(0));
    step_.inputs.push_back({g_.value_name(counter_), "counter", scalar_type()});
    step_.outputs.push_back({g_.value_name(next), "state"});
  }

 private:
  static TypeInfo scalar_type() { return TypeInfo::tensor(DType::kFloat, {}); }
  ValueId fed(Site& s, ValueId like) {
    TypeInfo t = s.type(like);
    t.elem = DType::kFloat;
    const std::string base = s.node().name.empty() ? s.node().op : s.node().name;
    const ValueId v = g_.add_value(g_.unique_name(base + "_uniform"), t);
    g_.inputs.push_back(v);
    step_.inputs.push_back({g_.value_name(v), "random", t});
    return v;
  }

  StepModel& step_;
  const StepOptions& o_;
  Graph& g_;
  ValueId counter_ = kNone;
  int64_t streams_ = 0;
};

std::vector<ValueId> dropped(Site& s, Source& from) {
  const ValueId x = s.x(0);
  const Tensor* given = s.has(1) ? s.constant(s.x(1)) : nullptr;
  if (s.has(1) && !given)
    model_error("OT1260", cat("the ratio of ", s.node().label(), " is computed in the step"),
                "--form compact keeps it as it is");
  const double ratio = given ? given->to_doubles()[0] : double(s.node().f("ratio", 0.5f));
  const ValueId u = from.uniform(s, x);
  ValueId keep = s.call("Not", {s.call("Less", {u, s.scalar(ratio, DType::kFloat)})});
  if (s.has(2) && !s.constant(s.x(2)))  // the mode is an input
    keep = s.call("Or", {keep, s.call("Not", {s.x(2)})});
  ValueId scale = s.scalar(ratio < 1 ? 1 / (1 - ratio) : 0, x);
  if (s.has(2) && !s.constant(s.x(2))) scale = s.call("Where", {s.x(2), scale, s.scalar(1, x)});
  const ValueId y = s.call("Where", {keep, s.mul(x, scale), s.scalar(0, x)});
  return {y, keep};
}

std::vector<ValueId> drawn(Site& s, Source& from) {
  const Node& n = s.node();
  const bool normal = n.is("RandomNormal") || n.is("RandomNormalLike");
  const DType type = DType(n.i("dtype", int64_t(DType::kFloat)));
  if (n.is("Dropout")) return dropped(s, from);
  if (n.is("Bernoulli")) {
    const ValueId hit = s.call("Less", {from.uniform(s, s.x(0)), s.x(0)});
    return {s.cast(hit, n.has("dtype") ? type : s.dtype(s.x(0)))};
  }
  if (n.is("Multinomial") || type != DType::kFloat)
    model_error("OT1260",
                cat("the step cannot be portable: ", n.label(),
                    " draws numbers that have no form in plain operators"),
                "--form compact keeps it as it is");
  const ValueId like = n.inputs.empty() ? from.like(s, n.ints("shape")) : s.x(0);
  const ValueId u = from.uniform(s, like);
  auto num = [&](double v) { return s.scalar(v, DType::kFloat); };
  if (!normal) {
    const double low = double(n.f("low", 0)), high = double(n.f("high", 1));
    return {s.add(s.mul(u, num(high - low)), num(low))};
  }
  // Box and Muller
  const ValueId log = s.call("Log", {s.sub(num(1), u)});
  const ValueId radius = s.call("Sqrt", {s.mul(num(-2), log)});
  const ValueId angle = s.mul(num(2 * std::numbers::pi), from.uniform(s, like));
  const ValueId z = s.mul(radius, s.call("Cos", {angle}));
  return {s.add(s.mul(z, num(double(n.f("scale", 1)))), num(double(n.f("mean", 0))))};
}

}  // namespace

void spell_random(StepModel& step, const StepOptions& o, const Context& c) {
  Graph& g = step.model.edit_main();
  Source from(step, o, g);
  Rules rules;
  for (const char* op : {"Dropout", "Bernoulli", "RandomUniform", "RandomUniformLike",
                         "RandomNormal", "RandomNormalLike", "Multinomial"})
    rules.push_back({op, "random", [&](Site& s) { return drawn(s, from); }});
  apply(g, rules, c);
  from.finish(c);
  g.renumber();
}

}  // namespace onnxtrain::portable
