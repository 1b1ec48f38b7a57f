// Equal, Less, Greater and their kin.
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/elementwise_program.hpp"

namespace onnxtrain::ops {

namespace {

struct EqualF {
  template <class C>
  bool operator()(const C& a, const C& b) const {
    return a == b;
  }
};
struct LessF {
  template <class C>
  bool operator()(const C& a, const C& b) const {
    return a < b;
  }
};
struct GreaterF {
  template <class C>
  bool operator()(const C& a, const C& b) const {
    return a > b;
  }
};
struct LessOrEqualF {
  template <class C>
  bool operator()(const C& a, const C& b) const {
    return a <= b;
  }
};
struct GreaterOrEqualF {
  template <class C>
  bool operator()(const C& a, const C& b) const {
    return a >= b;
  }
};

template <class F>
Kernel make(Prepare& p) {
  DType t = p.in(0).dtype;
  if constexpr (std::is_same_v<F, EqualF>) {
    if (t == DType::kString)
      return binary_kernel<std::string, bool>(
          p, [](const std::string& a, const std::string& b) { return a == b; });
    if (t == DType::kBool)
      return binary_kernel<bool, bool>(p, [](bool a, bool b) { return a == b; });
  }
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, int16_t,
                  uint16_t, uint32_t, uint64_t>(t, p.node().op, [&]<class T>() {
    return binary_kernel<T, bool>(p, [](compute_t<T> a, compute_t<T> b) { return F{}(a, b); });
  });
}

using simd::MicroOp;

template <class F, MicroOp micro>
void add(OpTable& t, const char* name) {
  t.add({.name = name,
         .shape = shape_broadcast_bool,
         .impls = {micro_impl<micro>(), {"ref", nullptr, make<F>}},
         .no_grad = "its result is true or false",
         .broadcasts = true,
         .micro_op = int(micro),
         .settings_from = 0});
}

}  // namespace

void register_compare(OpTable& t) {
  add<EqualF, MicroOp::kEqual>(t, "Equal");
  add<LessF, MicroOp::kLess>(t, "Less");
  add<GreaterF, MicroOp::kGreater>(t, "Greater");
  add<LessOrEqualF, MicroOp::kLessEqual>(t, "LessOrEqual");
  add<GreaterOrEqualF, MicroOp::kGreaterEqual>(t, "GreaterOrEqual");
}

}  // namespace onnxtrain::ops
