// Unique: the distinct elements, or slices along an axis, with positions and counts.
#include <algorithm>
#include <numeric>

#include "core/counted.hpp"
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  if (c.node().has("axis")) normalize_axis(c.node().i("axis", 0), c.rank(0), "axis of Unique");
  c.set_dynamic(0, c.dtype(0));
  for (int k = 1; k < 4; ++k) c.set_dynamic(k, DType::kInt64);
}

// Slices of [outer, size, inner] along the middle; flat input is [1, n, 1].
template <class T>
struct Slices {
  const T* x;
  int64_t outer, size, inner;
  int compare(int64_t i, int64_t j) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k) {
        const T &a = x[(o * size + i) * inner + k], &b = x[(o * size + j) * inner + k];
        if (less(a, b)) return -1;
        if (less(b, a)) return 1;
      }
    return 0;
  }
  // NaN last, so that the order is total
  static bool less(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, std::string>) {
      return a < b;
    } else {
      auto u = compute_t<T>(a), v = compute_t<T>(b);
      if (u != u || v != v) return u == u && v != v;
      return u < v;
    }
  }
};

template <class T>
void find_unique(const Run& r, const Slices<T>& s, const Shape& in, bool flat, size_t axis,
                 bool sorted, const bool* wants) {
  CountedVector<int64_t> order(size_t(s.size)), group(size_t(s.size));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return s.compare(i, j) < 0; });
  CountedVector<int64_t> first, counts;  // per distinct slice, in sorted order
  for (size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || s.compare(order[k - 1], order[k]) != 0) {
      first.push_back(order[k]);
      counts.push_back(0);
    }
    group[size_t(order[k])] = int64_t(first.size()) - 1;
    ++counts.back();
  }
  int64_t n = int64_t(first.size());
  const size_t distinct = first.size();
  CountedVector<int64_t> by(distinct), rank(distinct);  // output position -> group and back
  std::iota(by.begin(), by.end(), 0);
  if (!sorted)
    std::sort(by.begin(), by.end(),
              [&](int64_t a, int64_t b) { return first[size_t(a)] < first[size_t(b)]; });
  for (int64_t k = 0; k < n; ++k) rank[size_t(by[size_t(k)])] = k;
  if (wants[0]) {
    Shape out = flat ? Shape{n} : in;
    if (!flat) out[axis] = n;
    T* y = r.allocate<T>(0, out);
    for (int64_t o = 0; o < s.outer; ++o)
      for (int64_t k = 0; k < n; ++k)
        std::copy_n(s.x + (o * s.size + first[size_t(by[size_t(k)])]) * s.inner, s.inner,
                    y + (o * n + k) * s.inner);
  }
  if (wants[1]) {
    int64_t* y = r.allocate<int64_t>(1, {n});
    for (int64_t k = 0; k < n; ++k) y[k] = first[size_t(by[size_t(k)])];
  }
  if (wants[2]) {
    int64_t* y = r.allocate<int64_t>(2, {s.size});
    for (int64_t i = 0; i < s.size; ++i) y[i] = rank[size_t(group[size_t(i)])];
  }
  if (wants[3]) {
    int64_t* y = r.allocate<int64_t>(3, {n});
    for (int64_t k = 0; k < n; ++k) y[k] = counts[size_t(by[size_t(k)])];
  }
}

Kernel make(Prepare& p) {
  Shape in = p.in(0).shape;
  bool flat = !p.node().has("axis"), sorted = p.node().i("sorted", 1) != 0;
  size_t axis = flat ? 0 : size_t(normalize_axis(p.node().i("axis", 0), int64_t(in.size())));
  int64_t outer = flat ? 1 : product(in, 0, axis), size = flat ? num_elements(in) : in[axis];
  int64_t inner = flat ? 1 : product(in, axis + 1, in.size());
  bool w[4];
  for (int k = 0; k < 4; ++k) w[k] = p.wants(k);
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, int16_t,
                  uint16_t, uint32_t, uint64_t, bool, std::string>(
      p.in(0).dtype, "Unique", [&]<class T>() -> Kernel {
        return [=](const Run& r) {
          bool wants[4] = {w[0], w[1], w[2], w[3]};
          find_unique<T>(r, {r.in<T>(0), outer, size, inner}, in, flat, axis, sorted, wants);
        };
      });
}

// The values are copies of the elements at the first positions: that is how they are differentiated
// (where no two elements are equal, the set of positions does not change with small moves).
std::vector<ValueId> form(GradBuilder& b) {
  const Node& n = b.node();
  Node positions = n;
  positions.inputs = {b.own("Detach", {b.x(0)})};
  positions.outputs.clear();
  std::vector<ValueId> made = b.graph().add_node(std::move(positions), 4);
  b.graph().value(made[0]).type = TypeInfo::tensor(b.dtype(b.x(0)));
  TypeInfo list = TypeInfo::tensor(DType::kInt64);
  list.shape.emplace(1, Dim{});
  for (size_t k = 1; k < 4; ++k) b.graph().value(made[k]).type = list;
  bool flat = !n.has("axis");
  ValueId x = flat ? b.call("Reshape", {b.x(0), b.constant_ints({-1})}) : b.x(0);
  made[0] = b.call("Gather", {x, made[1]}, {{"axis", flat ? int64_t(0) : n.i("axis", 0)}});
  return made;
}

}  // namespace

void register_unique(OpTable& t) {
  t.add({.name = "Unique", .shape = shape, .impls = {{"ref", nullptr, make}}, .lower = form});
}

}  // namespace onnxtrain::ops
