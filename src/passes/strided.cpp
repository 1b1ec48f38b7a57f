// Strides of a value within one that it is a view of.
#include "passes/strided.hpp"

#include <algorithm>

namespace onnxtrain {

namespace {

struct Dims {
  Shape size, stride;
};

Dims packed(const Shape& s) {
  Dims d{s, Shape(s.size())};
  int64_t step = 1;
  for (size_t k = s.size(); k-- > 0;) {
    d.stride[k] = step;
    step *= s[k];
  }
  return d;
}

// The same elements in the same order under another shape; false when no strides can say it.
bool reshape(Dims& d, const Shape& to) {
  Shape size, stride;  // without dimensions of one
  for (size_t k = 0; k < d.size.size(); ++k)
    if (d.size[k] != 1) {
      size.push_back(d.size[k]);
      stride.push_back(d.stride[k]);
    }
  Dims out{to, Shape(to.size(), 0)};
  size_t from = 0, at = 0;
  while (from < size.size()) {
    // as few dimensions as make the same number of elements on both sides
    size_t from_end = from + 1, at_end = at;
    int64_t n = size[from], m = 1;
    while (m != n || at_end == at) {
      if (m < n || at_end == at) {
        if (at_end == to.size()) return false;
        m *= to[at_end++];
      } else {
        if (from_end == size.size()) return false;
        n *= size[from_end++];
      }
    }
    for (size_t k = from; k + 1 < from_end; ++k)
      if (stride[k] != size[k + 1] * stride[k + 1]) return false;
    int64_t step = stride[from_end - 1];
    for (size_t k = at_end; k-- > at;) {
      out.stride[k] = step;
      step *= to[k];
    }
    from = from_end, at = at_end;
  }
  for (; at < to.size(); ++at)
    if (to[at] != 1) return false;
  d = std::move(out);
  return true;
}

bool is_view(const Node& n) {
  return n.is("Reshape") || n.is("Unsqueeze") || n.is("Squeeze") || n.is("Flatten") ||
         n.is("Identity");
}

}  // namespace

Strided strided_view(const Chains& c, ValueId v, size_t unit) {
  std::vector<ValueId> way{v};  // upwards
  Shape s;
  while (const Node* n = c.producer(way.back())) {
    if (!is_view(*n) && !n->is("Transpose")) break;
    if (!c.known(n->inputs[0], DType::kFloat, s)) break;
    way.push_back(n->inputs[0]);
  }
  for (size_t top = way.size(); top-- > 0;) {
    if (!c.known(way[top], DType::kFloat, s)) continue;
    if (std::any_of(s.begin(), s.end(), [](int64_t n) { return n < 1; })) return {};
    Dims d = packed(s);
    bool fits = true;
    for (size_t k = top; k-- > 0 && fits;) {
      const Node& n = *c.producer(way[k]);
      Shape to;
      fits = c.known(way[k], DType::kFloat, to);
      if (n.is("Transpose")) {
        std::vector<int64_t> perm = n.ints("perm");
        if (perm.empty())
          for (size_t i = d.size.size(); i-- > 0;) perm.push_back(int64_t(i));
        Dims turned = d;
        for (size_t i = 0; i < perm.size(); ++i) {
          turned.size[i] = d.size[size_t(perm[i])];
          turned.stride[i] = d.stride[size_t(perm[i])];
        }
        d = std::move(turned);
      } else {
        fits = fits && reshape(d, to);
      }
    }
    if (fits && unit < d.size.size() && (d.stride[unit] == 1 || d.size[unit] == 1))
      return {way[top], d.stride};
  }
  return {};
}

}  // namespace onnxtrain
