// StringConcat, StringSplit.
#include <algorithm>

#include "core/counted.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

namespace {

constexpr const char* kStrings = "strings have no gradient";

void need_string(const ShapeCtx& c, int i) {
  if (c.dtype(i) != DType::kString) unsupported_dtype(c.dtype(i), c.node().op);
}

void concat_shape(ShapeCtx& c) {
  need_string(c, 0);
  need_string(c, 1);
  c.set(0, DType::kString, broadcast(c.shape(0), c.shape(1)));
}

Kernel make_concat(Prepare& p) {
  Shape shape = p.out(0).shape;
  Shape a = broadcast_strides(p.in(0).shape, shape), b = broadcast_strides(p.in(1).shape, shape);
  int64_t n = num_elements(shape);
  return [=](const Run& r) {
    const std::string *x = r.in<std::string>(0), *y = r.in<std::string>(1);
    std::string* z = r.out<std::string>(0);
    Shape index(shape.size(), 0);
    int64_t i = 0, j = 0;
    for (int64_t k = 0; k < n; ++k) {
      z[k] = x[i] + y[j];
      for (size_t d = shape.size(); d-- > 0;) {
        i += a[d];
        j += b[d];
        if (++index[d] < shape[d]) break;
        i -= a[d] * shape[d];
        j -= b[d] * shape[d];
        index[d] = 0;
      }
    }
  };
}

void split_shape(ShapeCtx& c) {
  need_string(c, 0);
  c.set_dynamic(0, DType::kString);
  c.set(1, DType::kInt64, c.shape(0));
}

// Pieces between runs of white space, as Python's str.split().
void split_at_space(const std::string& s, int64_t limit, CountedVector<std::string>& out) {
  auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  size_t at = 0;
  while (true) {
    while (at < s.size() && space(s[at])) ++at;
    if (at == s.size()) return;
    if (limit >= 0 && int64_t(out.size()) == limit) {
      size_t end = s.size();
      while (end > at && space(s[end - 1])) --end;  // the rest loses its trailing white space
      out.push_back(s.substr(at, end - at));
      return;
    }
    size_t end = at;
    while (end < s.size() && !space(s[end])) ++end;
    out.push_back(s.substr(at, end - at));
    at = end;
  }
}

void split_at(const std::string& s, const std::string& delimiter, int64_t limit,
              CountedVector<std::string>& out) {
  size_t at = 0;
  while (limit < 0 || int64_t(out.size()) < limit) {
    size_t end = s.find(delimiter, at);
    if (end == std::string::npos) break;
    out.push_back(s.substr(at, end - at));
    at = end + delimiter.size();
  }
  out.push_back(s.substr(at));
}

Kernel make_split(Prepare& p) {
  std::string delimiter = p.node().s("delimiter", "");
  int64_t limit = p.node().i("maxsplit", -1);
  Shape shape = p.in(0).shape;
  return [=](const Run& r) {
    const std::string* x = r.in<std::string>(0);
    int64_t n = num_elements(shape);
    std::vector<CountedVector<std::string>> all(static_cast<size_t>(n));
    size_t widest = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (delimiter.empty()) {
        split_at_space(x[i], limit, all[i]);
      } else {
        split_at(x[i], delimiter, limit, all[i]);
      }
      widest = std::max(widest, all[i].size());
    }
    Shape out = shape;
    out.push_back(int64_t(widest));
    std::string* y = r.allocate<std::string>(0, out);
    int64_t* counts = r.out<int64_t>(1);
    for (size_t i = 0; i < all.size(); ++i) {
      if (counts) counts[i] = int64_t(all[i].size());
      std::move(all[i].begin(), all[i].end(), y + i * widest);
    }
  };
}

}  // namespace

void register_strings(OpTable& t) {
  t.add({.name = "StringConcat",
         .since = 20,
         .shape = concat_shape,
         .impls = {{"ref", nullptr, make_concat}},
         .no_grad = kStrings});
  t.add({.name = "StringSplit",
         .since = 20,
         .shape = split_shape,
         .impls = {{"ref", nullptr, make_split}},
         .no_grad = kStrings});
}

}  // namespace onnxtrain::ops
