// Operators that are a formula of others, and comparisons in the one form that all runtimes have.
#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

Values cast_like(Site& s) {
  const DType to = s.dtype(s.x(1));
  if (to == DType::kUndefined) return {};
  if (s.dtype(s.x(0)) == to) return {s.x(0)};
  return {s.call("Cast", {s.x(0)}, {{"to", int64_t(to)}})};
}

Values cast(Site& s) {
  if (s.dtype(s.x(0)) == DType(s.node().i("to", 0))) return {s.x(0)};
  return {};
}

Values greater(Site& s) { return {s.call("Less", {s.x(1), s.x(0)})}; }
Values greater_or_equal(Site& s) {
  return {s.call("Or", {s.call("Less", {s.x(1), s.x(0)}), s.call("Equal", {s.x(0), s.x(1)})})};
}
Values less_or_equal(Site& s) {
  return {s.call("Or", {s.call("Less", {s.x(0), s.x(1)}), s.call("Equal", {s.x(0), s.x(1)})})};
}

// Two at a time, from the left.
Values fold_left(Site& s, const char* op) {
  ValueId v = s.x(0);
  for (int k = 1; k < s.inputs(); ++k) v = s.call(op, {v, s.x(k)});
  return {v};
}
Values sum(Site& s) { return fold_left(s, "Add"); }
Values mean(Site& s) { return {s.div(sum(s)[0], s.scalar(s.inputs(), s.x(0)))}; }
Values max(Site& s) { return s.inputs() == 2 ? Values{} : fold_left(s, "Max"); }
Values min(Site& s) { return s.inputs() == 2 ? Values{} : fold_left(s, "Min"); }

Values clip(Site& s) {
  ValueId v = s.x(0);
  if (s.node().version < 11) return {};
  if (s.has(1)) v = s.call("Max", {v, s.x(1)});
  if (s.has(2)) v = s.call("Min", {v, s.x(2)});
  return {v};
}

// Whole numbers by a positive constant: exact up to 2^22, in arithmetic that all runtimes round
// alike.
Values mod(Site& s) {
  std::vector<int64_t> by;
  const DType t = s.dtype(s.x(0));
  if (!dtype_is_integer(t) || !s.numbers(s.x(1), by) || by.size() != 1 || by[0] < 1) return {};
  const ValueId x = s.cast(s.x(0), DType::kFloat), n = s.scalar(double(by[0]), DType::kFloat);
  const ValueId half = s.scalar(0.5, DType::kFloat);
  const ValueId whole = s.call("Floor", {s.div(s.add(x, half), n)});
  return {s.cast(s.sub(x, s.mul(n, whole)), t)};
}

Values reciprocal(Site& s) { return {s.div(s.scalar(1, s.x(0)), s.x(0))}; }

Values softsign(Site& s) {
  return {s.div(s.x(0), s.add(s.scalar(1, s.x(0)), s.call("Abs", {s.x(0)})))};
}

Values hard_sigmoid(Site& s) {
  const ValueId x = s.x(0);
  const ValueId line = s.add(s.mul(s.scalar(double(s.node().f("alpha", 0.2f)), x), x),
                             s.scalar(double(s.node().f("beta", 0.5f)), x));
  return {s.call("Min", {s.call("Max", {line, s.scalar(0, x)}), s.scalar(1, x)})};
}

Values hard_swish(Site& s) {
  const ValueId x = s.x(0), line = s.add(s.mul(s.scalar(1.0 / 6, x), x), s.scalar(0.5, x));
  return {s.mul(x, s.call("Min", {s.call("Max", {line, s.scalar(0, x)}), s.scalar(1, x)}))};
}

// max(x, 0) + log(1 + exp(-|x|)): right for large numbers too.
ValueId softplus_of(Site& s, ValueId x) {
  const ValueId tail = s.call("Exp", {s.neg(s.call("Abs", {x}))});
  return s.add(s.call("Relu", {x}), s.call("Log", {s.add(s.scalar(1, x), tail)}));
}
Values softplus(Site& s) { return {softplus_of(s, s.x(0))}; }
Values mish(Site& s) { return {s.mul(s.x(0), s.call("Tanh", {softplus_of(s, s.x(0))}))}; }

Values prelu(Site& s) {
  const ValueId x = s.x(0);
  return {s.call("Where", {s.call("Less", {x, s.scalar(0, x)}), s.mul(x, s.x(1)), x})};
}
// exp() only of what is below 0: it would overflow elsewhere
ValueId exp_part(Site& s, ValueId x, double alpha) {
  const ValueId low = s.call("Min", {x, s.scalar(0, x)});
  return s.mul(s.scalar(alpha, x), s.sub(s.call("Exp", {low}), s.scalar(1, x)));
}
ValueId elu_of(Site& s, ValueId x, double alpha) {
  return s.call("Where", {s.call("Less", {x, s.scalar(0, x)}), exp_part(s, x, alpha), x});
}
Values elu(Site& s) { return {elu_of(s, s.x(0), double(s.node().f("alpha", 1)))}; }
Values selu(Site& s) {
  const ValueId x = s.x(0);
  const double alpha = double(s.node().f("alpha", 1.67326319217681884765625f)),
               gamma = double(s.node().f("gamma", 1.05070102214813232421875f));
  return {s.mul(s.scalar(gamma, x), elu_of(s, x, alpha))};
}
Values thresholded_relu(Site& s) {
  const ValueId x = s.x(0), at = s.scalar(double(s.node().f("alpha", 1)), x);
  return {s.call("Where", {s.call("Less", {at, x}), x, s.scalar(0, x)})};
}

// OpenCV takes Erf of a quotient for a part of Gelu, and crashes where the gradient reads it too.
Values erf(Site& s) {
  const Node* before = s.producer(s.x(0));
  if (s.context().few_nodes || !before || !before->is("Div")) return {};
  const ValueId over = before->inputs[0];
  const Tensor* by = s.constant(before->inputs[1]);
  if (!by || by->dtype() != DType::kFloat || by->size() != 1) return {};
  return {s.call("Erf", {s.mul(over, s.scalar(1 / by->to_doubles()[0], DType::kFloat))})};
}

}  // namespace

Rules math_rules() {
  return {{"CastLike", "cast", cast_like},
          {"Cast", "cast", cast},
          {"Greater", "compare", greater},
          {"GreaterOrEqual", "compare", greater_or_equal},
          {"LessOrEqual", "compare", less_or_equal},
          {"Sum", "variadic", sum},
          {"Mean", "variadic", mean},
          {"Max", "variadic", max},
          {"Min", "variadic", min},
          {"Clip", "clip", clip},
          {"Mod", "mod", mod},
          {"Erf", "of_a_product", erf},
          {"Reciprocal", "reciprocal", reciprocal},
          {"Softsign", "activation", softsign},
          {"HardSigmoid", "activation", hard_sigmoid},
          {"HardSwish", "activation", hard_swish},
          {"Softplus", "activation", softplus},
          {"Mish", "activation", mish},
          {"PRelu", "activation", prelu},
          {"Elu", "activation", elu},
          {"Selu", "activation", selu},
          {"ThresholdedRelu", "activation", thresholded_relu}};
}

}  // namespace onnxtrain::portable
