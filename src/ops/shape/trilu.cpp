// Trilu: the upper or lower triangle of the last two dimensions, zeros elsewhere.
#include "op/grad_builder.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  if (c.rank(0) < 2) model_error("OT1130", cat("Trilu of a tensor of rank ", c.rank(0)));
  if (c.has(1) && (c.dtype(1) != DType::kInt64 || c.in(1).size() != 1))
    model_error("OT1130", "k of Trilu is not one int64");
  c.set(0, c.dtype(0), c.shape(0));
}

Kernel make(Prepare& p) {
  const Shape& s = p.out(0).shape;
  int64_t cols = s.back(), rows = s[s.size() - 2], batch = product(s, 0, s.size() - 2);
  bool upper = p.node().i("upper", 1) != 0, has_k = p.has(1);
  return dispatch_size(p.out(0).dtype, [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      int64_t k = has_k ? std::clamp<int64_t>(*r.in<int64_t>(1), -rows - 1, cols + 1) : 0;
      const T* x = r.in<T>(0);
      T* y = r.out<T>(0);
      parallel_for(
          *r.pool, batch * rows, std::max<int64_t>(1, 16 * 1024 / std::max<int64_t>(1, cols)),
          [&](int64_t b, int64_t e) {
            for (int64_t row = b; row < e; ++row) {
              // columns [0, edge) are below the diagonal's right end
              int64_t edge = std::clamp<int64_t>(row % rows + k + (upper ? 0 : 1), 0, cols);
              const T* from = x + row * cols;
              T* to = y + row * cols;
              if (upper) {
                std::fill_n(to, edge, T{});
                if (to != from) std::copy(from + edge, from + cols, to + edge);
              } else {
                if (to != from) std::copy_n(from, edge, to);
                std::fill(to + edge, to + cols, T{});
              }
            }
          });
    };
  });
}

std::vector<ValueId> grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone), in = {b.dy()};
  if (b.has(1)) in.push_back(b.x(1));
  g[0] = b.call("Trilu", in, {{"upper", b.node().i("upper", 1)}});
  return g;
}

}  // namespace

void register_trilu(OpTable& t) {
  t.add({.name = "Trilu",
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = grad,
         .in_place = {{0, 0}},
         .settings_from = 1});
}

}  // namespace onnxtrain::ops
