// Gradients of data movement without scattering: of Slice and of Gather at a known place by Pad, of
// Gather by one-hot rows and MatMul, of MaxPool by its windows (rules_pool.cpp).
#include <algorithm>
#include <numeric>

#include "convert/portable/rules.hpp"
#include "convert/portable/windows.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

int64_t product(const std::vector<int64_t>& v, size_t from, size_t to) {
  int64_t p = 1;
  for (size_t d = from; d < to; ++d) {
    if (v[d] < 0) return -1;
    p *= v[d];
  }
  return p;
}

bool adds(const Node& n) { return n.s("reduction", "none") == "add"; }

// v before it was made flat; v itself if it was not.
ValueId unflattened(Site& s, ValueId v) {
  const Node* n = s.maker(v, "Reshape");
  std::vector<int64_t> to;
  if (!n || !s.numbers(n->inputs[1], to) || to.size() != 1) return v;
  return n->inputs[0];
}

// Numbers of the elements of a tensor: Reshape(Range(0, count, 1), shape). Its sizes, empty if it
// is something else.
std::vector<int64_t> numbered(Site& s, ValueId v) {
  const Node* reshape = s.maker(v, "Reshape");
  const Node* range = reshape ? s.maker(reshape->inputs[0], "Range") : nullptr;
  std::vector<int64_t> from, step;
  if (!range || !s.numbers(range->inputs[0], from) || !s.numbers(range->inputs[2], step)) return {};
  return from == std::vector<int64_t>{0} && step == std::vector<int64_t>{1}
             ? s.sizes(v)
             : std::vector<int64_t>{};
}

struct Cut {
  int64_t axis, from, step, count;
};

// What a Slice takes of a tensor with these sizes; false when that is not known.
bool cuts_of(Site& s, const Node& n, const std::vector<int64_t>& sizes, std::vector<Cut>& cuts) {
  std::vector<int64_t> from, to, axes, steps;
  if (n.inputs.size() < 3 || !s.numbers(n.inputs[1], from) || !s.numbers(n.inputs[2], to))
    return false;
  if (n.inputs.size() > 3 && n.inputs[3] != kNone) {
    if (!s.numbers(n.inputs[3], axes)) return false;
  } else {
    axes.resize(from.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  steps.assign(from.size(), 1);
  if (n.inputs.size() > 4 && n.inputs[4] != kNone && !s.numbers(n.inputs[4], steps)) return false;
  for (size_t k = 0; k < from.size(); ++k) {
    const int64_t axis = axes[k] < 0 ? axes[k] + int64_t(sizes.size()) : axes[k];
    const int64_t size = sizes[size_t(axis)], step = steps[k];
    if (size < 0) {  // all of it, or not known
      if (from[k] == 0 && step == 1 && to[k] >= INT32_MAX) continue;
      return false;
    }
    auto wrapped = [&](int64_t v) { return v < 0 ? v + size : v; };
    int64_t a = wrapped(from[k]), b = to[k] < -size && step < 0 ? -1 : wrapped(to[k]);
    if (step > 0) {
      a = std::clamp<int64_t>(a, 0, size), b = std::clamp<int64_t>(b, 0, size);
    } else {
      a = std::clamp<int64_t>(a, 0, size - 1), b = std::clamp<int64_t>(b, -1, size - 1);
    }
    const int64_t count = step > 0 ? (b - a + step - 1) / step : (a - b - step - 1) / -step;
    if (count < 1) return false;
    cuts.push_back({axis, a, step, count});
  }
  return true;
}

ValueId of_slice(Site& s, const Node& n, const std::vector<int64_t>& sizes, ValueId v) {
  std::vector<Cut> cuts;
  if (!cuts_of(s, n, sizes, cuts)) return kNone;
  for (const Cut& c : cuts) {
    v = spread(s, v, c.axis, c.from, c.step, sizes[size_t(c.axis)]);
    if (v == kNone) return kNone;
  }
  return v;
}

// The same for other axes than the one that is scattered along.
ValueId along_axis(Site& s, int64_t axis, bool zeros) {
  const ValueId data = s.x(0), indices = s.x(1), updates = s.x(2);
  const std::vector<int64_t> to = s.sizes(data), from = s.sizes(indices);
  if (to.empty() || from.size() != to.size() || to[size_t(axis)] < 0) return kNone;
  int64_t count = to[size_t(axis)];
  for (size_t d = 0; d < to.size(); ++d) {
    if (int64_t(d) != axis && to[d] != from[d]) return kNone;
    count *= std::max<int64_t>(1, from[d]);
  }
  if (count > int64_t(1) << 26) return kNone;
  const ValueId index = wrapped_index(s, indices, to[size_t(axis)]);
  const ValueId hot = one_hot(s, index, to[size_t(axis)], axis + 1, DType::kFloat);
  const ValueId each = s.call(
      "Where", {s.cast(hot, DType::kBool), s.unsqueeze(updates, {axis + 1}), s.scalar(0, updates)});
  const ValueId sum = s.reduce_sum(each, {axis}, false);
  if (adds(s.node())) return zeros ? sum : s.add(data, sum);
  // indices are different from each other, by the standard
  const ValueId hits = s.reduce_sum(hot, {axis}, false);
  const ValueId none = s.call("Less", {hits, s.scalar(0.5, hits)});
  return s.call("Where", {none, data, sum});
}

Values scatter_elements(Site& s) {
  const bool plain = s.node().s("reduction", "none") == "none";
  if (!adds(s.node()) && !plain) return {};
  const ValueId data = s.x(0), indices = s.x(1), updates = s.x(2);
  const int64_t rank = s.rank(data);
  if (rank < 1) return {};
  int64_t axis = s.node().i("axis", 0);
  if (axis < 0) axis += rank;
  const bool zeros = s.is_all(data, 0);
  if (rank == 1 && zeros && !plain) {
    const ValueId from = unflattened(s, indices), dy = unflattened(s, updates);
    ValueId v = kNone;
    if (const Node* made = s.producer(from)) {
      const Node n = *made;
      const std::vector<int64_t> sizes =
          n.is("Slice") || n.is("Gather") ? numbered(s, n.inputs[0]) : std::vector<int64_t>{};
      const bool same = s.rank(from) == s.rank(dy);
      if (n.is("MaxPool") && n.outputs.size() > 1 && n.outputs[1] == from)
        v = s.context().keep_indices ? halving_pool_gradient(s, n, dy)
                                     : max_pool_gradient(s, n, dy);
      else if (n.is("Slice") && !sizes.empty() && same)
        v = of_slice(s, n, sizes, dy);
      else if (n.is("Gather") && !sizes.empty() && same) {
        int64_t at = n.i("axis", 0);
        if (at < 0) at += int64_t(sizes.size());
        if (sizes[size_t(at)] > 0) v = scatter_rows(s, dy, n.inputs[1], at, sizes[size_t(at)]);
      }
    }
    if (v != kNone) return {s.reshape(v, {-1})};
  }
  if (s.context().fast_scatter) return {};
  const ValueId v = along_axis(s, axis, zeros);
  return v == kNone ? Values{} : Values{v};
}

}  // namespace

ValueId wrapped_index(Site& s, ValueId v, int64_t size) {
  const ValueId at = s.cast(v, DType::kInt64), zero = s.constant_int(0);
  return s.call("Where", {s.call("Less", {at, zero}), s.add(at, s.constant_int(size)), at});
}

ValueId spread(Site& s, ValueId v, int64_t axis, int64_t from, int64_t step, int64_t size) {
  std::vector<int64_t> sizes = s.sizes(v);
  if (sizes.empty() || sizes[size_t(axis)] < 0) return kNone;
  const int64_t n = sizes[size_t(axis)];
  if (step < 0) {
    std::vector<int64_t> back(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) back[size_t(k)] = n - 1 - k;
    if (n > 1) v = s.call("Gather", {v, s.ints(back)}, {{"axis", axis}});
    from += (n - 1) * step;
    step = -step;
  }
  int64_t have = n;
  if (step > 1 && n > 1) {
    if (std::count(sizes.begin(), sizes.end(), -1) > 1) return kNone;
    std::vector<int64_t> none(sizes.size() + 1, 0), after = none;
    after[size_t(axis) + 1] = step - 1;
    v = s.pad(s.unsqueeze(v, {axis + 1}), none, after);
    have = n * step;
    sizes[size_t(axis)] = have;
    v = s.reshape(v, sizes);
    if (from + have > size) {
      have = size - from;
      v = s.slice(v, axis, 0, have);
    }
  }
  std::vector<int64_t> before(sizes.size(), 0), after(sizes.size(), 0);
  before[size_t(axis)] = from;
  after[size_t(axis)] = size - from - have;
  return s.pad(v, before, after);
}

ValueId scatter_rows(Site& s, ValueId v, ValueId indices, int64_t axis, int64_t size) {
  const std::vector<int64_t> at = s.sizes(indices), have = s.sizes(v);
  std::vector<int64_t> number;
  if (have.empty() && s.rank(v) < 0) return kNone;
  if (s.rank(indices) == 0) {
    const ValueId row = s.unsqueeze(v, {axis});
    if (s.numbers(indices, number))
      return spread(s, row, axis, number[0] < 0 ? number[0] + size : number[0], 1, size);
    std::vector<int64_t> shape(have.size() + 1, 1);
    shape[size_t(axis)] = size;
    const ValueId hot = one_hot(s, wrapped_index(s, indices, size), size, 0, s.dtype(v));
    return s.mul(row, s.reshape(hot, shape));
  }
  if (at.empty() || have.size() < size_t(axis) + at.size()) return kNone;
  const size_t a = size_t(axis), after = a + at.size();
  const int64_t n = product(have, a, after), post = product(have, after, have.size());
  std::vector<int64_t> whole(have.begin(), have.begin() + axis);
  whole.push_back(size);
  whole.insert(whole.end(), have.begin() + int64_t(after), have.end());
  const bool open_before = product(have, 0, a) < 0;
  if (post < 0 || (open_before && n < 0) || std::count(whole.begin(), whole.end(), -1) > 1)
    return kNone;
  const ValueId flat = s.reshape(wrapped_index(s, indices, size), {-1});
  const ValueId hot = one_hot(s, flat, size, 0, s.dtype(v));  // [size, n]
  const std::vector<int64_t> shape =
      a == 0 ? std::vector<int64_t>{n, post}
             : std::vector<int64_t>{open_before ? -1 : product(have, 0, a), n, post};
  return s.reshape(s.call("MatMul", {hot, s.reshape(v, shape)}), whole);
}

Rules movement_rules() { return {{"ScatterElements", "no_scatter", scatter_elements}}; }

}  // namespace onnxtrain::portable
