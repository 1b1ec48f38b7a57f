// BatchNormalization of a training step with fewer passes over the images, for ONNX Runtime: its
// operator for inference does in one pass what Sub, Div, Mul and Add with numbers per channel do in
// four. The statistics stay as they are written.
#include <algorithm>
#include <utility>

#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

// Both operands of the node that makes v, in both orders, until f is content.
template <class F>
bool operands(Site& s, ValueId v, std::string_view op, const F& f) {
  const Node* n = s.maker(v, op);
  if (!n || n->inputs.size() != 2) return false;
  const ValueId a = n->inputs[0], b = n->inputs[1];  // f may add nodes
  if (f(a, b)) return true;
  return (op == "Mul" || op == "Add") && f(b, a);
}

// One number per channel of images: [C,1,...] or [1,C,1,...]; its count, 0 if it is something else.
int64_t channels_of(Site& s, ValueId v, size_t rank) {
  std::vector<int64_t> sizes = s.sizes(v);
  if (sizes.size() + 1 == rank) sizes.insert(sizes.begin(), 1);
  if (rank < 3 || sizes.size() != rank || sizes[0] != 1 || sizes[1] < 1) return 0;
  const bool ones = std::all_of(sizes.begin() + 2, sizes.end(), [](int64_t n) { return n == 1; });
  return ones ? sizes[1] : 0;
}

bool is_images(Site& s, ValueId v, int64_t channels) {
  const std::vector<int64_t> sizes = s.sizes(v);
  return s.dtype(v) == DType::kFloat && sizes.size() > 2 && sizes[1] == channels;
}

// The standard deviation per channel.
struct Deviation {
  ValueId variance;
  float epsilon;
};
bool deviation(Site& s, ValueId v, Deviation& d) {
  const Node* root = s.maker(v, "Sqrt");
  return root && operands(s, root->inputs[0], "Add", [&](ValueId var, ValueId eps) {
           const Tensor* t = s.constant(eps);
           if (!t || t->size() != 1 || !dtype_is_float(t->dtype())) return false;
           d = {var, float(t->to_doubles()[0])};
           return d.epsilon > 0;
         });
}
bool inverse(Site& s, ValueId v, Deviation& d) {
  return operands(s, v, "Div",
                  [&](ValueId one, ValueId sd) { return s.is_all(one, 1) && deviation(s, sd, d); });
}

ValueId flat(Site& s, ValueId v, int64_t channels) { return s.reshape(v, {channels}); }

// v / sqrt(variance + epsilon) * scale + bias
ValueId normalised(Site& s, ValueId v, ValueId scale, ValueId bias, const Deviation& d,
                   int64_t channels) {
  Tensor zeros(DType::kFloat, {channels});
  std::fill_n(zeros.as<float>(), channels, 0.0F);
  return s.call("BatchNormalization",
                {v, flat(s, scale, channels), flat(s, bias, channels), s.tensor(zeros),
                 flat(s, d.variance, channels)},
                {{"epsilon", d.epsilon}});
}

// Add(Mul(Div(v, deviation), scale), bias)
Values forward(Site& s) {
  const size_t rank = s.sizes(s.y()).size();
  ValueId y = kNone;
  auto add = [&](ValueId product, ValueId bias) {
    const int64_t c = channels_of(s, bias, rank);
    return c > 0 && operands(s, product, "Mul", [&](ValueId hat, ValueId scale) {
             return channels_of(s, scale, rank) == c &&
                    operands(s, hat, "Div", [&](ValueId v, ValueId sd) {
                      Deviation d{};
                      if (!is_images(s, v, c) || channels_of(s, sd, rank) != c ||
                          !deviation(s, sd, d))
                        return false;
                      y = normalised(s, v, scale, bias, d, c);
                      return true;
                    });
           });
  };
  if (!add(s.x(0), s.x(1))) add(s.x(1), s.x(0));
  return y == kNone ? Values{} : Values{y};
}

// (scale / deviation) (dy - mean(dy) - v / deviation * k), all but dy and v per channel, as
// dy / deviation * scale - scale / deviation * mean(dy) - v * (k * scale / variance).
Values backward(Site& s) {
  const size_t rank = s.sizes(s.y()).size();
  ValueId dx = kNone;
  auto product = [&](ValueId a, ValueId rest) {
    const int64_t c = channels_of(s, a, rank);
    if (c == 0 || !is_images(s, rest, c)) return false;
    Deviation d{};
    ValueId scale = kNone, inv = kNone;
    const bool scaled = operands(s, a, "Mul", [&](ValueId p, ValueId q) {
      scale = p, inv = q;
      return channels_of(s, p, rank) == c && inverse(s, q, d);
    });
    return scaled && operands(s, rest, "Sub", [&](ValueId less, ValueId part) {
             return operands(s, less, "Sub", [&](ValueId dy, ValueId mean) {
               if (!is_images(s, dy, c) || channels_of(s, mean, rank) != c) return false;
               return operands(s, part, "Mul", [&](ValueId hat, ValueId k) {
                 if (channels_of(s, k, rank) != c || !is_images(s, hat, c)) return false;
                 return operands(s, hat, "Mul", [&](ValueId v, ValueId by) {
                   if (by != inv || !is_images(s, v, c)) return false;
                   const ValueId first = normalised(s, dy, scale, s.neg(s.mul(a, mean)), d, c);
                   dx = s.sub(first, s.mul(v, s.mul(s.mul(a, inv), k)));
                   return true;
                 });
               });
             });
           });
  };
  if (!product(s.x(0), s.x(1))) product(s.x(1), s.x(0));
  return dx == kNone ? Values{} : Values{dx};
}

// The sum of a * (b * k) with k constant along the axes that are summed: k times the sum of a * b.
Values factor_after_sum(Site& s) {
  std::vector<int64_t> axes;
  if (s.node().i("keepdims", 1) == 0 || !s.has(1) || !s.numbers(s.x(1), axes) || axes.empty())
    return {};
  const size_t rank = s.sizes(s.x(0)).size();
  ValueId y = kNone;
  operands(s, s.x(0), "Mul", [&](ValueId a, ValueId scaled) {
    return operands(s, scaled, "Mul", [&](ValueId b, ValueId k) {
      const std::vector<int64_t> ks = s.sizes(k), as = s.sizes(a), bs = s.sizes(b);
      if (rank < 3 || ks.size() != rank || as.size() != rank || bs != as || ks == as) return false;
      if (std::count(as.begin(), as.end(), -1) > 1) return false;
      for (int64_t d : axes)
        if (ks[size_t(d < 0 ? d + int64_t(rank) : d)] != 1) return false;
      y = s.mul(s.reduce_sum(s.mul(a, b), axes), k);
      return true;
    });
  });
  return y == kNone ? Values{} : Values{y};
}

}  // namespace

Rules norm_rules() {
  return {{"Add", "batch_normalization", forward},
          {"Mul", "batch_normalization", backward},
          {"ReduceSum", "factor_after_sum", factor_after_sum}};
}

}  // namespace onnxtrain::portable
