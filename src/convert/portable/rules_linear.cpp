// Linear maps that runtimes have in part only: Einsum by MatMul, LRN by a band matrix.
#include <algorithm>
#include <map>
#include <set>

#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

// ---------------------------------------------------------------- Einsum
struct Equation {
  std::vector<std::string> in;
  std::string out;
};

// Letters without an ellipsis and without a letter twice in one term; false for others.
bool read_equation(const std::string& text, size_t operands, Equation& e) {
  std::string s;
  std::copy_if(text.begin(), text.end(), std::back_inserter(s), [](char c) { return c != ' '; });
  const size_t arrow = s.find("->");
  std::string left = s.substr(0, arrow);
  for (size_t at = 0; at <= left.size();) {
    const size_t comma = std::min(left.find(',', at), left.size());
    e.in.push_back(left.substr(at, comma - at));
    at = comma + 1;
  }
  if (e.in.size() != operands || s.find('.') != std::string::npos) return false;
  for (const std::string& t : e.in)
    if (std::set<char>(t.begin(), t.end()).size() != t.size()) return false;
  if (arrow != std::string::npos) {
    e.out = s.substr(arrow + 2);
  } else {
    std::map<char, int> count;
    for (const std::string& t : e.in)
      for (char c : t) ++count[c];
    for (const auto& [c, n] : count)
      if (n == 1) e.out += c;
  }
  return std::set<char>(e.out.begin(), e.out.end()).size() == e.out.size();
}

bool has(const std::string& s, char c) { return s.find(c) != std::string::npos; }

struct Term {
  std::string letters;
  ValueId v;
};

// Sums over letters that nobody else has.
Term summed(Site& s, Term t, const std::string& needed) {
  std::vector<int64_t> axes;
  std::string rest;
  for (size_t d = 0; d < t.letters.size(); ++d) {
    if (has(needed, t.letters[d]))
      rest += t.letters[d];
    else
      axes.push_back(int64_t(d));
  }
  return {rest, axes.empty() ? t.v : s.reduce_sum(t.v, axes, false)};
}

Term ordered(Site& s, const Term& t, const std::string& order) {
  std::vector<int64_t> perm;
  for (char c : order) perm.push_back(int64_t(t.letters.find(c)));
  return {order, std::is_sorted(perm.begin(), perm.end()) ? t.v : s.transpose(t.v, perm)};
}

// Sizes of letters, -1 where open; false when more than one of a group would have to be.
bool grouped(const std::map<char, int64_t>& size, const std::vector<std::string>& groups,
             std::vector<int64_t>& shape) {
  shape.clear();
  for (const std::string& g : groups) {
    int64_t n = 1;
    for (char c : g) n = size.at(c) < 0 || n < 0 ? -1 : n * size.at(c);
    shape.push_back(n);
  }
  return std::count(shape.begin(), shape.end(), -1) <= 1;
}

Values einsum(Site& s) {
  Equation e;
  if (s.inputs() < 1 || s.inputs() > 2) return {};
  if (!read_equation(s.node().s("equation", ""), size_t(s.inputs()), e)) return {};
  std::map<char, int64_t> size;
  for (int k = 0; k < s.inputs(); ++k) {
    const std::vector<int64_t> sizes = s.sizes(s.x(k));
    if (sizes.size() != e.in[size_t(k)].size()) return {};
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t& have = size.emplace(e.in[size_t(k)][d], -1).first->second;
      if (sizes[d] == 1 && have > 1) return {};  // broadcasting
      have = std::max(have, sizes[d]);
    }
  }
  if (s.inputs() == 1) return {ordered(s, summed(s, {e.in[0], s.x(0)}, e.out), e.out).v};
  const Term a = summed(s, {e.in[0], s.x(0)}, e.in[1] + e.out),
             b = summed(s, {e.in[1], s.x(1)}, e.in[0] + e.out);
  std::string both, left, right, inner;
  for (char c : e.out) (has(a.letters, c) ? has(b.letters, c) ? both : left : right) += c;
  for (char c : a.letters)
    if (has(b.letters, c) && !has(e.out, c)) inner += c;
  std::vector<int64_t> shape_a, shape_b, shape_y;
  if (!grouped(size, {both, left, inner}, shape_a) || !grouped(size, {both, inner, right}, shape_b))
    return {};
  const std::string order = both + left + right;
  for (char c : order) shape_y.push_back(size.at(c));
  if (std::count(shape_y.begin(), shape_y.end(), -1) > 1) return {};
  const ValueId x = s.reshape(ordered(s, a, both + left + inner).v, shape_a),
                y = s.reshape(ordered(s, b, both + inner + right).v, shape_b);
  const ValueId product = s.reshape(s.call("MatMul", {x, y}), shape_y);
  return {ordered(s, {order, product}, e.out).v};
}

// ---------------------------------------------------------------- LRN
// Sums over neighbouring channels: a matrix of ones around the diagonal.
Values lrn(Site& s) {
  const std::vector<int64_t> sizes = s.sizes(s.x(0));
  const int64_t size = s.node().i("size", 1), before = (size - 1) / 2, after = size - 1 - before;
  if (sizes.size() < 3 || sizes[1] < 1 || s.dtype(s.x(0)) != DType::kFloat) return {};
  const int64_t c = sizes[1];
  Tensor band(DType::kFloat, {c, c});
  for (int64_t i = 0; i < c; ++i)
    for (int64_t k = 0; k < c; ++k)
      band.as<float>()[i * c + k] = k >= i - before && k <= i + after ? 1.0F : 0.0F;
  const ValueId x = s.x(0), flat = s.call("Reshape", {x, s.ints({0, c, -1})});
  const ValueId sums = s.call("MatMul", {s.tensor(band), s.mul(flat, flat)});
  const ValueId by =
      s.add(s.mul(sums, s.scalar(double(s.node().f("alpha", 1e-4F)) / double(size), x)),
            s.scalar(double(s.node().f("bias", 1.0F)), x));
  const ValueId power = s.call("Pow", {by, s.scalar(double(s.node().f("beta", 0.75F)), x)});
  return {s.reshape_like(s.div(flat, power), x)};
}

}  // namespace

Rules linear_rules() { return {{"Einsum", "matmul", einsum}, {"LRN", "band_matrix", lrn}}; }

}  // namespace onnxtrain::portable
