// SVMRegressor and SVMClassifier in standard operators.
#include <cmath>

#include "ops/control/body.hpp"
#include "ops/ml/svm_attributes.hpp"

namespace onnxtrain::ops {

namespace {

// Builds with numbers of one element type.
struct Form {
  GradBuilder& b;
  DType type;
  ValueId real(double v) { return b.scalar(v, type); }
  // A table of floats with `columns` columns.
  ValueId table(const std::vector<float>& v, int64_t columns) {
    return float_table(b, v, columns, type);
  }
  // The weights of input i of the node, or of the attribute.
  ValueId weights(int i, const std::vector<float>& v, int64_t columns) {
    return weight_table(b, i, v, columns, type);
  }
};
constexpr int kCoefficients = 1, kRho = 2, kVectors = 3;  // inputs of the node

int64_t features_of(const Svm& s) {
  if (s.supports > 0) return int64_t(s.vectors.size()) / s.supports;
  return int64_t(s.coefficients.size()) / s.classes;
}

// The kernel of every row with every support vector: [rows, supports].
ValueId kernels(Form& f, const Svm& s, ValueId x) {
  GradBuilder& b = f.b;
  ValueId v = f.weights(kVectors, s.vectors, features_of(s));
  if (s.kernel == KernelType::kRbf) {
    ValueId apart = b.sub(b.unsqueeze(x, {1}), v);
    ValueId square = b.reduce_sum(b.mul(apart, apart), {2}, false);
    return b.call("Exp", {b.mul(square, f.real(-double(s.gamma)))});
  }
  ValueId dot = b.call("MatMul", {x, b.transpose(v, {1, 0})});
  if (s.kernel == KernelType::kLinear) return dot;
  dot = b.add(b.mul(dot, f.real(double(s.gamma))), f.real(double(s.coef0)));
  return s.kernel == KernelType::kPoly ? b.call("Pow", {dot, f.real(double(s.degree))})
                                       : b.call("Tanh", {dot});
}

// One score per pair of classes: a product with the coefficients in their places, [supports,
// pairs].
ValueId pair_scores(Form& f, const Svm& s, ValueId x) {
  int64_t n = s.classes, pairs = n * (n - 1) / 2, at = 0;
  const int64_t none = (n - 1) * s.supports;  // behind the coefficients stands a 0
  std::vector<int64_t> from(size_t(s.supports * pairs), none);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j, ++at) {
      auto place = [&](int64_t row, int64_t cls) {
        for (int64_t k = 0; k < s.per_class[size_t(cls)]; ++k) {
          int64_t v = s.starts[size_t(cls)] + k;
          from[size_t(v * pairs + at)] = row * s.supports + v;
        }
      };
      place(j - 1, i);
      place(i, j);
    }
  GradBuilder& b = f.b;
  ValueId weights = kNone;
  if (b.has(kCoefficients)) {
    ValueId flat = b.call("Reshape", {f.weights(kCoefficients, {}, 0), b.constant_ints({-1})});
    flat = b.call("Concat", {flat, b.call("Reshape", {f.real(0), b.constant_ints({1})})},
                  {{"axis", int64_t(0)}});
    weights = b.call("Gather", {flat, b.constant_ints(from)}, {{"axis", int64_t(0)}});
    weights = b.call("Reshape", {weights, b.constant_ints({s.supports, pairs})});
  } else {
    std::vector<float> placed(from.size(), 0.f);
    for (size_t k = 0; k < from.size(); ++k)
      if (from[k] != none) placed[k] = s.coefficients[size_t(from[k])];
    weights = f.table(placed, pairs);
  }
  std::vector<float> rho(s.rho.begin(), s.rho.begin() + long(pairs));
  ValueId product = b.call("MatMul", {kernels(f, s, x), weights});
  return b.add(product, f.weights(kRho, rho, pairs));
}

// The number of the class with the most votes of the pairs (the first one at a tie), [rows].
ValueId most_votes(Form& f, const Svm& s, ValueId scores) {
  GradBuilder& b = f.b;
  int64_t n = s.classes, pairs = n * (n - 1) / 2, at = 0;
  std::vector<float> won(size_t(pairs * n), 0.f), lost(size_t(pairs * n), 0.f);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j, ++at) {
      won[size_t(at * n + i)] = 1;
      lost[size_t(at * n + j)] = 1;
    }
  ValueId first = b.call("Greater", {scores, f.real(0)});
  auto number = [&](ValueId v) { return b.call("Cast", {v}, {{"to", int64_t(f.type)}}); };
  ValueId votes = b.add(b.call("MatMul", {number(first), f.table(won, n)}),
                        b.call("MatMul", {number(b.call("Not", {first})), f.table(lost, n)}));
  return b.call("ArgMax", {votes}, {{"axis", int64_t(1)}, {"keepdims", int64_t(0)}});
}

// The matrix Q of Wu, Lin, Weng 2004 from the probabilities of the pairs, [rows, n, n].
ValueId pair_matrix(Form& f, const Svm& s, ValueId scores) {
  GradBuilder& b = f.b;
  int64_t n = s.classes, pairs = n * (n - 1) / 2, at = 0;
  std::vector<float> place(size_t(pairs * n * n), 0.f), base(size_t(n * n), 0.f);
  std::vector<float> diagonal(size_t(n * n), 0.f);
  for (int64_t i = 0; i < n; ++i) {
    diagonal[size_t(i * n + i)] = 1;
    for (int64_t j = i + 1; j < n; ++j, ++at) {
      place[size_t((at * n + i) * n + j)] = 1;
      place[size_t((at * n + j) * n + i)] = -1;
      base[size_t(j * n + i)] = 1;
    }
  }
  std::vector<float> pa(s.prob_a.begin(), s.prob_a.begin() + long(pairs)),
      pb(s.prob_b.begin(), s.prob_b.begin() + long(pairs));
  ValueId z = b.add(b.mul(scores, f.table(pa, pairs)), f.table(pb, pairs));
  ValueId p = b.call("Sigmoid", {b.neg(z)});
  p = b.call("Min", {b.call("Max", {p, f.real(1e-7)}), f.real(1 - 1e-7)});
  ValueId flat = b.add(b.call("MatMul", {p, f.table(place, n * n)}), f.table(base, n * n));
  ValueId r = b.call("Reshape", {flat, b.constant_ints({-1, n, n})});
  ValueId squares = b.reduce_sum(b.mul(r, r), {1});
  return b.sub(b.mul(squares, f.table(diagonal, n)), b.mul(r, b.transpose(r, {0, 2, 1})));
}

// One sweep over the classes, for all rows: p [rows, n] from Q.
ValueId sweep(Form& f, int64_t n, ValueId q, ValueId p, ValueId qp, ValueId pqp) {
  GradBuilder& b = f.b;
  for (int64_t t = 0; t < n; ++t) {
    ValueId index = b.constant_ints({t});
    std::vector<float> unit(size_t(n), 0.f);
    unit[size_t(t)] = 1;
    auto column = [&](ValueId v) { return b.call("Gather", {v, index}, {{"axis", int64_t(1)}}); };
    ValueId row = b.squeeze(column(q), {1}), qtt = column(row), qpt = column(qp);
    ValueId diff = b.div(b.sub(pqp, qpt), qtt), grown = b.add(f.real(1), diff);
    p = b.div(b.add(p, b.mul(diff, f.table(unit, n))), grown);
    ValueId inner = b.add(b.mul(diff, qtt), b.mul(f.real(2), qpt));
    pqp = b.div(b.div(b.add(pqp, b.mul(diff, inner)), grown), grown);
    qp = b.div(b.add(qp, b.mul(diff, row)), grown);
  }
  return p;
}

// The probabilities that the iteration approaches: the least p'Qp among those that sum to 1. With
// A = Q + ee' the least is at the same place and A is positive definite, so that p = A^-1 e up to
// its sum; elimination needs no pivoting. In double: classes that are far apart make Q nearly
// singular.
ValueId solved(Form& f, int64_t n, ValueId q) {
  GradBuilder& b = f.b;
  ValueId a = b.add(q, f.real(1));
  ValueId v = b.add(b.reduce_sum(b.mul(q, f.real(0)), {2}), f.real(1));
  for (int64_t t = 0; t < n; ++t) {
    ValueId index = b.constant_ints({t});
    std::vector<float> unit(size_t(n), 0.f);
    unit[size_t(t)] = 1;
    auto at = [&](ValueId m, int64_t axis) {
      return b.call("Gather", {m, index}, {{"axis", axis}});
    };
    ValueId row = at(a, 1), pivot = at(row, 2);
    ValueId factor = b.div(b.sub(at(a, 2), f.table(unit, 1)), pivot);
    v = b.sub(v, b.mul(factor, at(v, 1)));
    if (t + 1 < n) a = b.sub(a, b.mul(factor, row));
  }
  return b.squeeze(b.div(v, b.reduce_sum(v, {1})), {2});
}

// Probabilities of classes: the iteration of libsvm, every row until it is done.
ValueId iterated(Form& f, const Svm& s, ValueId q) {
  GradBuilder& b = f.b;
  int64_t n = s.classes;
  TypeInfo rows = TypeInfo::tensor(f.type);
  rows.shape.emplace();
  rows.shape->push_back(b.type(q).shape ? (*b.type(q).shape)[0] : Dim{});
  rows.shape->push_back(Dim{n, {}});
  ValueId start = b.reduce_sum(b.mul(q, f.real(0)), {2}, false);
  start = b.add(start, f.real(1.0 / double(n)));
  b.graph().value(start).type = rows;
  BodyBuilder body(b, "couple");
  body.input("i", TypeInfo::tensor(DType::kInt64, {}));
  body.input("cond", TypeInfo::tensor(DType::kBool, {}));
  ValueId p = body.input("p", rows);
  GradBuilder in = body.builder();
  Form g{in, f.type};
  ValueId matrix = body.capture(q);
  ValueId qp = in.squeeze(in.call("MatMul", {matrix, in.unsqueeze(p, {2})}), {2});
  ValueId pqp = in.reduce_sum(in.mul(p, qp), {1});
  ValueId off = in.call("Abs", {in.sub(qp, pqp)});
  ValueId worst = n == 1 ? off : in.call_n("TopK", {off, in.constant_ints({1})}, 2)[0];
  ValueId done = in.call("Less", {worst, g.real(double(0.005f / float(n)))});
  ValueId open = in.call("Cast", {in.call("Not", {done})}, {{"to", int64_t(DType::kInt32)}});
  ValueId left = in.call("ReduceMax", {open}, {{"keepdims", int64_t(0)}});
  ValueId more = in.call("Cast", {left}, {{"to", int64_t(DType::kBool)}});
  body.graph().value(more).type = TypeInfo::tensor(DType::kBool, {});
  ValueId next = in.call("Where", {done, p, sweep(g, n, matrix, p, qp, pqp)});
  body.graph().value(next).type = rows;
  body.output(more);
  body.output(next);
  ValueId trips = b.constant_int(std::max<int64_t>(100, n));
  ValueId out = b.call("Loop", {trips, kNone, start}, {{"body", body.finish()}});
  b.graph().value(out).type = rows;
  return out;
}

// The numbers are those of the iteration, which stops at a tolerance; the derivative is that of
// what it approaches. (How often it went round jumps from point to point, and where the start is
// good enough it does nothing at all: its own derivative would be 0 there.)
ValueId coupled(Form& f, const Svm& s, ValueId scores) {
  GradBuilder& b = f.b;
  Form wide{b, DType::kDouble};
  ValueId exact = b.call("Cast", {scores}, {{"to", int64_t(DType::kDouble)}});
  exact = solved(wide, s.classes, pair_matrix(wide, s, exact));
  exact = b.call("Cast", {exact}, {{"to", int64_t(f.type)}});
  ValueId reached = iterated(f, s, pair_matrix(f, s, scores));
  return b.add(exact, b.own("Detach", {b.sub(reached, exact)}));
}

TensorType like_rows(int64_t features) { return {DType::kFloat, {1, features}}; }

// How many features the attributes speak of; then they are read as for a row of so many.
int64_t features_in(const Node& n, int64_t supports, int64_t classes) {
  int64_t numbers = int64_t(n.floats(supports > 0 ? "support_vectors" : "coefficients").size());
  return numbers / std::max<int64_t>(1, supports > 0 ? supports : classes);
}

}  // namespace

std::vector<ValueId> svm_regressor_form(GradBuilder& b) {
  const Node& n = b.node();
  Svm s = svm_regressor_of(n, like_rows(features_in(n, n.i("n_supports", 0), 1)));
  Form f{b, form_type(b)};
  ValueId x = feature_rows(b, features_of(s)), y;
  if (s.supports > 0) {
    std::vector<float> w(s.coefficients.begin(), s.coefficients.begin() + long(s.supports));
    y = b.call("MatMul", {kernels(f, s, x), f.weights(kCoefficients, w, 1)});
  } else {
    y = b.call("MatMul", {x, f.weights(kCoefficients, s.coefficients, 1)});
  }
  y = b.add(y, f.weights(kRho, {s.rho[0]}, 1));
  if (s.one_class) y = b.call("Where", {b.call("Greater", {y, f.real(0)}), f.real(1), f.real(-1)});
  return {to_float(b, post_form(b, s.post, y))};
}

std::vector<ValueId> svm_classifier_form(GradBuilder& b) {
  const Node& n = b.node();
  int64_t supports = 0;
  for (int64_t v : n.ints("vectors_per_class")) supports += v;
  Labels labels = labels_of(n, "classlabels_ints", "classlabels_strings");
  Svm s = svm_classifier_of(n, like_rows(features_in(n, supports, labels.count())));
  Form f{b, form_type(b)};
  ValueId x = feature_rows(b, features_of(s)), scores, best = kNone;
  if (s.supports == 0) {
    ValueId w = b.transpose(f.weights(kCoefficients, s.coefficients, features_of(s)), {1, 0});
    scores = b.add(b.call("MatMul", {x, w}), f.weights(kRho, {s.rho[0]}, 1));
    if (b.has(kCoefficients))
      best = b.call("ArgMax", {scores}, {{"axis", int64_t(1)}, {"keepdims", int64_t(0)}});
  } else {
    scores = pair_scores(f, s, x);
    if (b.has(kCoefficients)) best = most_votes(f, s, scores);
    if (!s.prob_a.empty()) scores = coupled(f, s, scores);
  }
  bool two = s.rho.size() == 1 && s.labels.count() == 2 && s.post != Post::kProbit;
  bool single = s.supports > 0 && s.prob_a.empty() ? s.classes == 2 : s.classes == 1;
  if (two && single) scores = b.call("Concat", {b.neg(scores), scores}, {{"axis", int64_t(1)}});
  scores = to_float(b, post_form(b, s.post, scores));
  if (best == kNone) return with_label(b, scores);
  return {label_form(b, s.labels, best), scores};
}

}  // namespace onnxtrain::ops
