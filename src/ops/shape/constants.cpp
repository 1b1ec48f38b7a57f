// Operators that make tensors from attributes and shapes: ConstantOfShape, Constant, EyeLike,
// Range.
#include <cmath>
#include <cstring>

#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

// ---------------------------------------------------------------- ConstantOfShape
void of_shape_shape(ShapeCtx& c) {
  const Tensor* v = c.node().tensor("value");
  if (v && v->size() != 1)
    model_error("OT1130",
                cat("value of ConstantOfShape has ", v->size(), " elements instead of 1"));
  Shape s = c.ints(0);
  num_elements(s);
  c.set(0, v ? v->dtype() : DType::kFloat, s);
}

Kernel make_of_shape(Prepare& p) {
  int64_t n = p.out(0).size();
  const Tensor* v = p.node().tensor("value");
  return dispatch_size(p.out(0).dtype, [&]<class T>() -> Kernel {
    T value = v ? *static_cast<const T*>(v->data()) : T{};
    return [n, value](const Run& r) {
      T* y = r.out<T>(0);
      parallel_for(*r.pool, n, 64 * 1024,
                   [&](int64_t b, int64_t e) { std::fill(y + b, y + e, value); });
    };
  });
}

// ---------------------------------------------------------------- Constant
// A sparse constant is the dense tensor it stands for.
Tensor dense(const SparseTensor& s) {
  Tensor out(s.values.dtype(), s.shape);
  if (s.values.dtype() == DType::kString) model_error("OT1130", "a sparse constant of strings");
  std::memset(out.data(), 0, out.bytes());
  std::vector<int64_t> at = s.indices.to_ints();
  int64_t nnz = s.values.size(), rank = int64_t(s.shape.size());
  bool linear = s.indices.rank() == 1;
  if (int64_t(at.size()) != nnz * (linear ? 1 : rank))
    model_error("OT1130", "a sparse constant whose indices do not fit its values");
  Shape strides = strides_of(s.shape);
  size_t size = dtype_size(out.dtype());
  for (int64_t k = 0; k < nnz; ++k) {
    int64_t where = linear ? at[size_t(k)] : 0;
    for (int64_t d = 0; d < rank && !linear; ++d) {
      int64_t i = at[size_t(k * rank + d)];
      if (i < 0 || i >= s.shape[size_t(d)])
        model_error("OT1130", cat("a sparse constant has the index ", i));
      where += i * strides[size_t(d)];
    }
    if (where < 0 || where >= out.size())
      model_error("OT1130", cat("a sparse constant has the index ", where));
    std::memcpy(static_cast<char*>(out.data()) + size_t(where) * size,
                static_cast<const char*>(s.values.data()) + size_t(k) * size, size);
  }
  return out;
}

Tensor constant_of(const Node& n) {
  if (const Tensor* t = n.tensor("value")) return *t;
  if (n.has("value_float")) return Tensor::scalar<float>(n.f("value_float", 0));
  if (n.has("value_floats")) return Tensor::vector<float>(n.floats("value_floats"));
  if (n.has("value_int")) return Tensor::scalar<int64_t>(n.i("value_int", 0));
  if (n.has("value_ints")) return Tensor::vector<int64_t>(n.ints("value_ints"));
  if (n.has("value_string")) return Tensor::scalar<std::string>(n.s("value_string", ""));
  if (n.has("value_strings")) return Tensor::vector<std::string>(n.strings("value_strings"));
  if (const Attr* a = n.find("sparse_value"))
    if (auto* s = std::get_if<std::shared_ptr<SparseTensor>>(a); s && *s) return dense(**s);
  model_error("OT1130", "Constant has no value");
}

void constant_shape(ShapeCtx& c) {
  Tensor t = constant_of(c.node());
  c.set(0, t.dtype(), t.shape());
}

Kernel make_constant(Prepare& p) {
  Tensor t = constant_of(p.node());
  return [t](const Run& r) {
    if (t.dtype() == DType::kString)
      std::copy_n(t.as<std::string>(), t.size(), r.out<std::string>(0));
    else if (t.bytes())
      std::memcpy(r.outputs[0], t.data(), t.bytes());
  };
}

// ---------------------------------------------------------------- EyeLike
void eye_shape(ShapeCtx& c) {
  if (c.rank(0) != 2)
    model_error("OT1130", cat("EyeLike of a tensor of rank ", c.rank(0), " instead of 2"));
  int64_t t = c.node().i("dtype", int64_t(c.dtype(0)));
  if (t <= 0 || t >= kDTypeCount) model_error("OT1130", cat("EyeLike of the unknown type ", t));
  c.set(0, DType(t), c.shape(0));
}

Kernel make_eye(Prepare& p) {
  int64_t rows = p.out(0).shape[0], cols = p.out(0).shape[1], k = p.node().i("k", 0);
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, int16_t,
                  uint16_t, uint32_t, uint64_t, bool>(
      p.out(0).dtype, "EyeLike", [&]<class T>() -> Kernel {
        return [=](const Run& r) {
          T* y = r.out<T>(0);
          std::fill_n(y, rows * cols, T(compute_t<T>(0)));
          if (k <= -rows || k >= cols) return;
          for (int64_t i = 0; i < rows; ++i)
            if (i + k >= 0 && i + k < cols) y[i * cols + i + k] = T(compute_t<T>(1));
        };
      });
}

// ---------------------------------------------------------------- Range
template <class T>
int64_t range_count(double start, double limit, double delta) {
  double n = std::ceil((limit - start) / delta);
  if (!(n > 0)) return 0;
  if (n > 9e15)
    model_error("OT1135",
                cat("Range from ", start, " to ", limit, " by ", delta, " has too many elements"));
  return int64_t(n);
}

int64_t range_count_int(int64_t start, int64_t limit, int64_t delta) {
  __int128 span = __int128(limit) - start;
  if ((span > 0) != (delta > 0) || span == 0) return 0;
  __int128 d = delta, n = (span + d - (d > 0 ? 1 : -1)) / d;
  if (n > __int128(9e15)) model_error("OT1135", "Range has too many elements");
  return int64_t(n);
}

void range_shape(ShapeCtx& c) {
  require_same_types(c);
  for (int i = 0; i < 3; ++i)
    if (c.in(i).size() != 1)
      model_error("OT1135",
                  cat("input ", i, " of Range has ", c.in(i).size(), " elements instead of 1"));
  int64_t n;
  if (dtype_is_integer(c.dtype(0))) {
    auto at = [&](int i) {
      return dispatch<int64_t, int32_t, int16_t>(
          c.dtype(0), "Range", [&]<class T>() { return int64_t(*c.value(i).as<T>()); });
    };
    if (at(2) == 0) model_error("OT1135", "Range has a delta of 0");
    n = range_count_int(at(0), at(1), at(2));
  } else {
    auto at = [&](int i) { return c.value(i).to_doubles()[0]; };
    if (at(2) == 0 || std::isnan(at(2))) model_error("OT1135", "Range has a delta of 0");
    n = range_count<double>(at(0), at(1), at(2));
  }
  c.set(0, c.dtype(0), {n});
}

Kernel make_range(Prepare& p) {
  int64_t n = p.out(0).size();
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, int16_t>(
      p.out(0).dtype, "Range", [&]<class T>() -> Kernel {
        using C = std::conditional_t<std::is_integral_v<T>, uint64_t, compute_t<T>>;
        return [n](const Run& r) {
          C start = C(compute_t<T>(*r.in<T>(0))), delta = C(compute_t<T>(*r.in<T>(2)));
          for (int64_t i = 0; i < n; ++i) r.out<T>(0)[i] = T(compute_t<T>(start + C(i) * delta));
        };
      });
}

// y_i = start + i * delta
std::vector<ValueId> range_grad(GradBuilder& b) {
  ValueId dy = b.dy(), zero = b.constant_ints({0});
  std::vector<ValueId> g = {kNone, kNone, kNone};
  auto total = [&](ValueId v, int i) {
    return b.reshape_like(b.call("ReduceSum", {v, zero}, {{"keepdims", int64_t(0)}}), b.x(i));
  };
  if (b.wants(0)) g[0] = total(dy, 0);
  if (b.wants(2)) {
    ValueId n = b.call("Size", {dy});
    ValueId i = b.call("Range", {b.constant_int(0), n, b.constant_int(1)});
    g[2] = total(b.mul(dy, b.cast_like(i, b.x(2))), 2);
  }
  return g;
}

// the result depends on the shape of the input only
std::vector<ValueId> no_dependence(GradBuilder& b) {
  return std::vector<ValueId>(size_t(b.inputs()), kNone);
}

}  // namespace

void register_constants(OpTable& t) {
  t.add({.name = "ConstantOfShape",
         .shape = of_shape_shape,
         .shape_values = {0},
         .impls = {{"ref", nullptr, make_of_shape}},
         .no_grad = "its input is a shape"});
  t.add({.name = "Constant",
         .shape = constant_shape,
         .impls = {{"ref", nullptr, make_constant}},
         .no_grad = "it has no inputs"});
  t.add({.name = "EyeLike",
         .shape = eye_shape,
         .impls = {{"ref", nullptr, make_eye}},
         .grad = no_dependence,
         .types_only = true});
  t.add({.name = "Range",
         .shape = range_shape,
         .shape_values = {0, 1, 2},
         .impls = {{"ref", nullptr, make_range}},
         .grad = range_grad,
         .settings_from = 0});
}

}  // namespace onnxtrain::ops
