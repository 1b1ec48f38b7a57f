// Where: chooses between two tensors element by element.
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/elementwise_program.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  if (c.dtype(0) != DType::kBool) unsupported_dtype(c.dtype(0), "the condition of Where");
  if (c.dtype(1) != c.dtype(2))
    model_error("OT1110",
                cat("Where of ", dtype_name(c.dtype(1)), " and ", dtype_name(c.dtype(2))));
  c.set(0, c.dtype(1), broadcast(c.shape(0), broadcast(c.shape(1), c.shape(2))));
}

Kernel make(Prepare& p) {
  BroadcastLoop loop({p.in(0).shape, p.in(1).shape, p.in(2).shape}, p.out(0).shape);
  return dispatch_size(p.out(0).dtype, [&]<class T>() -> Kernel {
    return [loop](const Run& r) {
      const bool* c = r.in<bool>(0);
      const T *x = r.in<T>(1), *y = r.in<T>(2);
      T* z = r.out<T>(0);
      int64_t sc = loop.step[0], sx = loop.step[1], sy = loop.step[2], inner = loop.inner;
      parallel_for(*r.pool, loop.rows, loop.grain_rows(), [&](int64_t begin, int64_t end) {
        loop.run(begin, end, [&](int64_t o, const int64_t* at) {
          const bool* pc = c + at[0];
          const T *px = x + at[1], *py = y + at[2];
          T* pz = z + o;
          if (sc == 0) {
            const T* from = *pc ? px : py;
            int64_t step = *pc ? sx : sy;
            for (int64_t i = 0; i < inner; ++i) pz[i] = from[i * step];
          } else if (sx == 1 && sy == 1) {
            for (int64_t i = 0; i < inner; ++i) pz[i] = pc[i] ? px[i] : py[i];
          } else if (sx == 1) {
            T v = *py;
            for (int64_t i = 0; i < inner; ++i) pz[i] = pc[i] ? px[i] : v;
          } else if (sy == 1) {
            T v = *px;
            for (int64_t i = 0; i < inner; ++i) pz[i] = pc[i] ? v : py[i];
          } else {
            for (int64_t i = 0; i < inner; ++i) pz[i] = pc[i] ? *px : *py;
          }
        });
      });
    };
  });
}

std::vector<ValueId> grad(GradBuilder& b) {
  ValueId dy = b.dy(), zero = b.scalar(0, b.x(1));
  return {kNone, b.wants(1) ? b.call("Where", {b.x(0), dy, zero}) : kNone,
          b.wants(2) ? b.call("Where", {b.x(0), zero, dy}) : kNone};
}

}  // namespace

void register_where(OpTable& t) {
  t.add({.name = "Where",
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = grad,
         .broadcasts = true,
         .in_place = {{1, 0}, {2, 0}},
         .micro_op = int(simd::MicroOp::kWhere)});
}

}  // namespace onnxtrain::ops
