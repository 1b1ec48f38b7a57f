// Operators whose output size depends on values: NonZero and Compress.
#include <cstring>

#include "op/grad_builder.hpp"
#include "ops/common/movement_lower.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

template <class F>
decltype(auto) any_type(DType t, F&& f) {
  return dispatch<bool, float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, int16_t,
                  uint16_t, uint32_t, uint64_t, std::string>(t, "NonZero", std::forward<F>(f));
}

template <class T>
bool is_set(const T& v) {
  if constexpr (std::is_same_v<T, std::string>)
    return !v.empty();
  else
    return compute_t<T>(v) != compute_t<T>(0);
}

int64_t count_set(const Tensor& t) {
  return any_type(t.dtype(), [&]<class T>() {
    return int64_t(
        std::count_if(t.as<T>(), t.as<T>() + t.size(), [](const T& v) { return is_set(v); }));
  });
}

void nonzero_shape(ShapeCtx& c) {
  // numpy: a scalar has one dimension of indices
  c.set(0, DType::kInt64, {c.rank(0), count_set(c.value(0))});
}

Kernel make_nonzero(Prepare& p) {
  Shape s = p.in(0).shape;
  int64_t n = p.in(0).size(), found = p.out(0).shape[1];
  return any_type(p.in(0).dtype, [&]<class T>() -> Kernel {
    return [s, n, found](const Run& r) {
      int64_t* y = r.out<int64_t>(0);
      int64_t at = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (!is_set(r.in<T>(0)[i])) continue;
        int64_t rest = i;
        for (size_t d = s.size(); d-- > 0;) {
          y[int64_t(d) * found + at] = rest % s[d];
          rest /= s[d];
        }
        ++at;
      }
    };
  });
}

// Without an axis the input is taken as flat.
void compress_shape(ShapeCtx& c) {
  const Tensor& cond = c.value(1);
  bool has_axis = c.node().has("axis");
  int64_t axis =
      has_axis ? normalize_axis(c.node().i("axis", 0), c.rank(0), "axis of Compress") : 0;
  int64_t size = has_axis ? c.shape(0)[size_t(axis)] : c.in(0).size(), kept = 0;
  for (int64_t i = 0; i < std::min(size, cond.size()); ++i) kept += cond.as<bool>()[i];
  if (cond.size() > size)
    for (int64_t i = size; i < cond.size(); ++i)
      if (cond.as<bool>()[i])
        data_error("OT2110",
                   cat("Compress: condition ", i, " is set, the dimension has size ", size));
  Shape out = has_axis ? c.shape(0) : Shape{0};
  out[size_t(axis)] = kept;
  c.set(0, c.dtype(0), out);
}

Kernel make_compress(Prepare& p) {
  const Shape& s = p.in(0).shape;
  bool has_axis = p.node().has("axis");
  size_t axis = has_axis ? size_t(normalize_axis(p.node().i("axis", 0), int64_t(s.size()))) : 0;
  int64_t outer = has_axis ? product(s, 0, axis) : 1, size = has_axis ? s[axis] : p.in(0).size();
  int64_t block = has_axis ? product(s, axis + 1, s.size()) : 1,
          given = std::min(size, p.in(1).size());
  return dispatch_size(p.in(0).dtype, [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      T* to = r.out<T>(0);
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < given; ++i)
          if (r.in<bool>(1)[i]) to = std::copy_n(r.in<T>(0) + (o * size + i) * block, block, to);
    };
  });
}

std::vector<ValueId> compress_grad(GradBuilder& b) {
  ValueId shape = b.shape_of(b.x(0));
  GradBuilder::Attrs a;
  if (b.node().has("axis")) a["axis"] = b.node().i("axis", 0);
  ValueId from = b.call("Compress", {element_numbers(b, shape), b.x(1)}, a);
  return {scatter_add_elements(b, b.dy(), from, shape), kNone};
}

}  // namespace

void register_select(OpTable& t) {
  t.add({.name = "NonZero",
         .shape = nonzero_shape,
         .shape_values = {0},
         .impls = {{"ref", nullptr, make_nonzero}},
         .no_grad = "its result is indices"});
  t.add({.name = "Compress",
         .shape = compress_shape,
         .shape_values = {1},
         .impls = {{"ref", nullptr, make_compress}},
         .grad = compress_grad});
}

}  // namespace onnxtrain::ops
