// Random tensors: RandomNormal, RandomNormalLike, RandomUniform, RandomUniformLike, Bernoulli,
// Multinomial. Numbers are a function of (seed, node, step), see core/random.hpp; an attribute
// `seed` takes the place of the run's seed.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/random.hpp"
#include "core/random_rows.hpp"
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

namespace {

DType type_of(const Node& n, DType def) {
  int64_t t = n.i("dtype", int64_t(def));
  if (t <= 0 || t >= kDTypeCount)
    model_error("OT1106", cat("dtype ", t, " is not an element type"));
  return DType(t);
}

void check_float(DType t, const char* op) {
  if (!dtype_is_differentiable(t)) unsupported_dtype(t, op);
}

void shape_from_attribute(ShapeCtx& c) {
  DType t = type_of(c.node(), DType::kFloat);
  check_float(t, "a random tensor");
  if (!c.node().has("shape")) model_error("OT1106", "attribute 'shape' is missing");
  c.set(0, t, c.node().ints("shape"));
}

void shape_like(ShapeCtx& c) {
  DType t = type_of(c.node(), c.dtype(0));
  check_float(t, "a random tensor");
  c.set(0, t, c.shape(0));
}

struct Source {
  bool own_seed = false;
  uint64_t seed = 0, stream = 0;
  uint64_t of(const Run& r) const { return own_seed ? seed : r.seed; }
};

Source source_of(const Prepare& p) {
  Source s;
  s.stream = p.stream();
  if (p.node().has("seed")) {
    s.own_seed = true;
    s.seed = std::bit_cast<uint32_t>(p.node().f("seed", 0));
  }
  return s;
}

constexpr int64_t kGrain = 1 << 14;  // a multiple of 4: pieces start at whole counters

// Fills with scale * number + shift, in pieces of fixed size.
using Draw = void (*)(uint64_t, uint64_t, uint64_t, uint64_t, int64_t, float*);
Kernel make_fill(Prepare& p, Draw draw, float scale, float shift) {
  int64_t n = p.out(0).size();
  Source s = source_of(p);
  const RandomPlaces all(p.out(0).shape, p.node().i("row_axis", -1), p.node().i("row_outer", 1));
  return dispatch<float, double, Half, BFloat16>(
      p.out(0).dtype, "a random tensor", [&]<class T>() -> Kernel {
        return [=](const Run& r) {
          T* y = r.out<T>(0);
          const RandomPlaces places = all.here();
          parallel_for(*r.pool, n, kGrain, [&](int64_t begin, int64_t end) {
            float buffer[256];
            for (int64_t at = begin, count = 0; at < end; at += count) {
              count = std::min({int64_t(256), end - at, places.run(at)});
              draw(s.of(r), s.stream, r.step, places.at(at), count, buffer);
              for (int64_t i = 0; i < count; ++i)
                y[at + i] = T(compute_t<T>(buffer[i] * scale + shift));
            }
          });
        };
      });
}

Kernel make_normal(Prepare& p) {
  return make_fill(p, philox_normal, p.node().f("scale", 1), p.node().f("mean", 0));
}

Kernel make_uniform(Prepare& p) {
  float low = p.node().f("low", 0), high = p.node().f("high", 1);
  return make_fill(p, philox_uniform, high - low, low);
}

// ---------------------------------------------------------------- Bernoulli

void bernoulli_shape(ShapeCtx& c) {
  check_float(c.dtype(0), "Bernoulli");
  c.set(0, type_of(c.node(), c.dtype(0)), c.shape(0));
}

Kernel make_bernoulli(Prepare& p) {
  int64_t n = p.out(0).size();
  Source s = source_of(p);
  const RandomPlaces all(p.out(0).shape, p.node().i("row_axis", -1), p.node().i("row_outer", 1));
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "Bernoulli", [&]<class X>() -> Kernel {
        return dispatch<float, double, Half, BFloat16, bool, uint8_t, int8_t, uint16_t, int16_t,
                        uint32_t, int32_t, uint64_t, int64_t>(
            p.out(0).dtype, "Bernoulli", [&]<class T>() -> Kernel {
              return [=](const Run& r) {
                const X* x = r.in<X>(0);
                T* y = r.out<T>(0);
                const RandomPlaces places = all.here();
                parallel_for(*r.pool, n, kGrain, [&](int64_t begin, int64_t end) {
                  float buffer[256];
                  for (int64_t at = begin, count = 0; at < end; at += count) {
                    count = std::min({int64_t(256), end - at, places.run(at)});
                    philox_uniform(s.of(r), s.stream, r.step, places.at(at), count, buffer);
                    for (int64_t i = 0; i < count; ++i)
                      y[at + i] = T(compute_t<T>(
                          double(buffer[i]) < double(compute_t<X>(x[at + i])) ? 1 : 0));
                  }
                });
              };
            });
      });
}

// ---------------------------------------------------------------- Multinomial

void multinomial_shape(ShapeCtx& c) {
  check_float(c.dtype(0), "Multinomial");
  if (c.rank(0) != 2)
    model_error("OT1130",
                cat("Multinomial of shape ", to_string(c.shape(0)), ", expected [batch, classes]"));
  if (c.shape(0)[1] < 1) model_error("OT1130", "Multinomial over no classes");
  int64_t n = c.node().i("sample_size", 1);
  if (n < 1) model_error("OT1106", cat("sample_size is ", n));
  DType t = type_of(c.node(), DType::kInt32);
  if (t != DType::kInt32 && t != DType::kInt64) unsupported_dtype(t, "Multinomial");
  c.set(0, t, {c.shape(0)[0], n});
}

// Inputs are unnormalised log-probabilities: inverts the cumulative sum of exp(x - max).
Kernel make_multinomial(Prepare& p) {
  int64_t batch = p.in(0).shape[0], classes = p.in(0).shape[1], samples = p.out(0).shape[1];
  Source s = source_of(p);
  p.workspace = size_t(classes) * sizeof(double) + size_t(samples) * sizeof(float);
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "Multinomial", [&]<class X>() -> Kernel {
        return dispatch<int32_t, int64_t>(p.out(0).dtype, "Multinomial", [&]<class T>() -> Kernel {
          return [=](const Run& r) {
            double* sums = static_cast<double*>(r.workspace);
            float* u = reinterpret_cast<float*>(sums + classes);
            for (int64_t row = 0; row < batch; ++row) {
              const X* x = r.in<X>(0) + row * classes;
              double top = double(compute_t<X>(x[0])), sum = 0;
              for (int64_t k = 1; k < classes; ++k) top = std::max(top, double(compute_t<X>(x[k])));
              for (int64_t k = 0; k < classes; ++k)
                sums[k] = sum += std::exp(double(compute_t<X>(x[k])) - top);
              philox_uniform(s.of(r), s.stream, r.step,
                             uint64_t(row) * uint64_t((samples + 3) / 4 * 4), samples, u);
              for (int64_t i = 0; i < samples; ++i) {
                int64_t k = 0;
                while (k + 1 < classes && !(double(u[i]) * sum < sums[k])) ++k;
                r.out<T>(0)[row * samples + i] = T(k);
              }
            }
          };
        });
      });
}

std::vector<ValueId> nothing(GradBuilder& b) {
  return std::vector<ValueId>(size_t(b.inputs()), kNone);
}

}  // namespace

void register_random_fill(OpTable& t) {
  t.add({.name = "RandomNormal",
         .shape = shape_from_attribute,
         .impls = {{"ref", nullptr, make_normal}},
         .grad = nothing,
         .random = true});
  t.add({.name = "RandomUniform",
         .shape = shape_from_attribute,
         .impls = {{"ref", nullptr, make_uniform}},
         .grad = nothing,
         .random = true});
  // only the shape of the input matters: nothing flows back
  t.add({.name = "RandomNormalLike",
         .shape = shape_like,
         .impls = {{"ref", nullptr, make_normal}},
         .grad = nothing,
         .random = true});
  t.add({.name = "RandomUniformLike",
         .shape = shape_like,
         .impls = {{"ref", nullptr, make_uniform}},
         .grad = nothing,
         .random = true});
  t.add({.name = "Bernoulli",
         .since = 15,
         .shape = bernoulli_shape,
         .impls = {{"ref", nullptr, make_bernoulli}},
         .no_grad = "its result is drawn at random; a sample has no gradient",
         .random = true});
  t.add({.name = "Multinomial",
         .since = 7,
         .shape = multinomial_shape,
         .impls = {{"ref", nullptr, make_multinomial}},
         .no_grad = "its result is drawn at random; a sample has no gradient",
         .random = true});
}

}  // namespace onnxtrain::ops
