// Slices and joins of tensors; ownership of values.
#include "ops/common/values.hpp"

#include <algorithm>
#include <cstring>

#include "core/budget.hpp"
#include "core/text_memory.hpp"

namespace onnxtrain::ops {

Tensor keep(const Tensor& t) { return t.owner() ? t : t.clone(); }

Value keep(const Value& v) {
  if (const Tensor* t = std::get_if<Tensor>(&v)) return keep(*t);
  if (const auto* s = std::get_if<std::shared_ptr<Sequence>>(&v); s && *s) {
    bool all = true;
    for (const Value& item : (*s)->items)
      if (const Tensor* t = std::get_if<Tensor>(&item)) all &= bool(t->owner());
    if (all) return v;
    auto copy = std::make_shared<Sequence>(**s);
    for (Value& item : copy->items) item = keep(item);
    return copy;
  }
  return v;
}

const Sequence& sequence_in(const ValueCtx& c, int i) {
  if (!c.has(i)) model_error("OT1107", cat("input ", i, " is missing"));
  if (const auto* s = std::get_if<std::shared_ptr<Sequence>>(c.in(i)); s && *s) return **s;
  model_error("OT1108", cat("input ", i, " is not a sequence"));
}

int64_t int_in(const ValueCtx& c, int i, int64_t def) {
  if (!c.has(i)) return def;
  const Tensor& t = c.tensor(i);
  if (t.size() != 1)
    model_error("OT1109", cat("input ", i, " has ", t.size(), " elements, expected one"));
  return t.to_ints()[0];
}

const Tensor& tensor_of(const Value& v, const char* what) {
  if (const Tensor* t = std::get_if<Tensor>(&v)) return *t;
  model_error("OT1108", cat(what, " is not a tensor"));
}

bool bool_of(const Value& v, const char* what) {
  const Tensor& t = tensor_of(v, what);
  if (t.dtype() != DType::kBool || t.size() != 1)
    model_error("OT1109", cat(what, " is ", dtype_name(t.dtype()), to_string(t.shape()),
                              ", expected one bool"));
  return *t.as<bool>();
}

void copy_elements(void* to, const void* from, int64_t n, DType t) {
  if (n <= 0) return;
  if (t == DType::kString) {
    std::copy_n(static_cast<const std::string*>(from), n, static_cast<std::string*>(to));
  } else {
    std::memcpy(to, from, size_t(n) * dtype_size(t));
  }
}

Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t count) {
  Shape shape = x.shape();
  OT_ASSERT(axis >= 0 && size_t(axis) < shape.size() && begin >= 0 && count >= 0 &&
            begin + count <= shape[size_t(axis)]);
  int64_t dim = shape[size_t(axis)];
  int64_t outer = product(shape, 0, size_t(axis)),
          inner = product(shape, size_t(axis) + 1, shape.size());
  shape[size_t(axis)] = count;
  size_t size = dtype_size(x.dtype());
  const char* from = static_cast<const char*>(x.data()) + size_t(begin * inner) * size;
  if (outer == 1) return Tensor(x.dtype(), shape, const_cast<char*>(from), x.owner());
  Tensor y(x.dtype(), shape);
  char* to = static_cast<char*>(y.data());
  for (int64_t o = 0; o < outer; ++o)
    copy_elements(to + size_t(o * count * inner) * size, from + size_t(o * dim * inner) * size,
                  count * inner, x.dtype());
  return y;
}

Tensor concat(const std::vector<Tensor>& parts, int64_t axis, const char* what) {
  OT_ASSERT(!parts.empty());
  Shape shape = parts[0].shape();
  OT_ASSERT(axis >= 0 && size_t(axis) < shape.size());
  int64_t total = 0;
  for (const Tensor& p : parts) {
    Shape a = p.shape();
    if (p.dtype() != parts[0].dtype() || a.size() != shape.size())
      model_error("OT1132",
                  cat(what, " joins ", dtype_name(parts[0].dtype()), to_string(parts[0].shape()),
                      " and ", dtype_name(p.dtype()), to_string(a)));
    total += a[size_t(axis)];
    a[size_t(axis)] = shape[size_t(axis)];
    if (a != shape)
      model_error("OT1132", cat(what, " joins shapes ", to_string(parts[0].shape()), " and ",
                                to_string(p.shape()), " along axis ", axis));
  }
  shape[size_t(axis)] = total;
  size_t text = 0;
  for (const Tensor& p : parts) text += text_bytes(p);
  check_memory(text);
  Tensor y(parts[0].dtype(), shape);
  int64_t outer = product(shape, 0, size_t(axis)),
          inner = product(shape, size_t(axis) + 1, shape.size());
  size_t size = dtype_size(y.dtype());
  int64_t at = 0;
  for (const Tensor& p : parts) {
    int64_t block = p.shape()[size_t(axis)] * inner;
    for (int64_t o = 0; o < outer; ++o)
      copy_elements(static_cast<char*>(y.data()) + size_t(o * total * inner + at) * size,
                    static_cast<const char*>(p.data()) + size_t(o * block) * size, block,
                    y.dtype());
    at += block;
  }
  return y;
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis, bool backwards, const char* what) {
  std::vector<Tensor> with_axis;
  with_axis.reserve(parts.size());
  for (const Tensor& p : parts) {
    Shape s = p.shape();
    OT_ASSERT(axis >= 0 && size_t(axis) <= s.size());
    s.insert(s.begin() + axis, 1);
    with_axis.push_back(p.reshaped(s));
  }
  if (backwards) std::reverse(with_axis.begin(), with_axis.end());
  return concat(with_axis, axis, what);
}

}  // namespace onnxtrain::ops
