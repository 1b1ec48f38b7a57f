// SyncBatchNormalization: BatchNormalization in training mode with the statistics of the whole
// batch, when a batch is cut into blocks of rows (distributed/split.cpp puts it there; it is never
// written to files). Moments are added over the blocks in double precision, in the forward pass and
// in the gradient.
//
// (x, scale, bias, mean, var, after?) -> y, running mean, running var, mean, var, kept
// kept: mean, 1/sqrt(var + epsilon) and the number of values. It goes to the next such node as
// `after`, so that all blocks come to these nodes in one order, in the gradient as well.
#include <algorithm>
#include <cmath>

#include "core/block_exchange.hpp"
#include "core/random.hpp"
#include "op/grad_builder.hpp"
#include "ops/common/cost.hpp"
#include "ops/norm/channel_loops.hpp"

namespace onnxtrain::ops {

namespace {

constexpr const char* kGradient = "SyncBatchNormalizationGrad";

bool per_element(const Node& n) { return n.i("per_element", 0) != 0; }

// A node that the layout pass turned has its channels last.
Channels turned(const Node& n, const Shape& x) {
  if (n.i("channels_last", 0) == 0) return channels_of(x, per_element(n));
  return {product(x, 0, x.size() - 1), x.back(), 1};
}

void shape(ShapeCtx& c) {
  const Channels ch = turned(c.node(), c.shape(0));
  for (int i = 1; i <= 4; ++i)
    if (c.in(i).size() != ch.c)
      model_error("OT1133", cat("BatchNormalization of ", to_string(c.shape(0)), ": input ", i,
                                " has shape ", to_string(c.shape(i)), ", not [", ch.c, "]"));
  c.set(0, c.dtype(0), c.shape(0));
  for (int k = 1; k <= 4; ++k) c.set(k, c.dtype(k % 2 == 1 ? 3 : 4), c.shape(k % 2 == 1 ? 3 : 4));
  c.set(5, DType::kDouble, {2 * ch.c + 1});
}

uint64_t place_of(const Node& n) { return hash64(n.name.data(), n.name.size(), 11); }

void exchange(double* data, int64_t n, uint64_t place) {
  if (BlockExchange* e = BlockExchange::current()) e->sum(data, size_t(n), place);
}

// Mean and population variance of the whole batch from moments around a number that is near the
// mean; returns how many values there are. sums: 2c+1 of scratch.
template <class T>
double moments(const Run& r, const Channels& ch, const T* x, const double* near, uint64_t place,
               double* sums, double* mean, double* var) {
  channel_sums<double>(*r.pool, ch, sums, sums + ch.c,
                       [&](int64_t i, int64_t c, double& a, double& b) {
                         a = double(compute_t<T>(x[i])) - near[c];
                         b = a * a;
                       });
  sums[2 * ch.c] = double(ch.n) * double(ch.s);
  exchange(sums, 2 * ch.c + 1, place);
  const double n = sums[2 * ch.c];
  for (int64_t c = 0; c < ch.c; ++c) {
    const double left = sums[c] / n;
    var[c] = std::max(0.0, sums[ch.c + c] / n - left * left);
    mean[c] = near[c] + left;
  }
  return n;
}

Kernel make(Prepare& p) {
  const Channels ch = turned(p.node(), p.in(0).shape);
  Wants want(p);
  const double eps = double(p.node().f("epsilon", 1e-5f));
  const float momentum = p.node().f("momentum", 0.9f);
  const uint64_t place = place_of(p.node());
  const bool keeps = p.wants(5);
  std::vector<DType> types;
  for (int i = 0; i <= 4; ++i) types.push_back(p.in(i).dtype);
  p.workspace = size_t(8 * ch.c + 1) * sizeof(double);
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "BatchNormalization", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        return [=](const Run& r) {
          const T* x = r.in<T>(0);
          double *mean = static_cast<double*>(r.workspace), *var = mean + ch.c, *old = var + ch.c,
                 *more = old + ch.c, *sums = more + ch.c;
          load_floats(r.inputs[3], types[3], ch.c, old);
          for (int64_t c = 0; c < ch.c; ++c) more[c] = std::isfinite(old[c]) ? old[c] : 0;
          double n = moments(r, ch, x, more, place, sums, mean, var);
          if constexpr (std::is_same_v<T, double>) {  // once more, around the mean itself
            std::copy(mean, mean + ch.c, more);
            n = moments(r, ch, x, more, place, sums, mean, var);
          }
          const double* now[2] = {mean, var};
          for (size_t k = 0; k < 2; ++k) {
            load_floats(r.inputs[3 + k], types[3 + k], ch.c, old);
            for (int64_t c = 0; c < ch.c; ++c)
              old[c] = double(C(old[c]) * C(momentum) + C(now[k][c]) * (C(1) - C(momentum)));
            if (want(int(1 + k))) store_floats(old, types[3 + k], ch.c, r.outputs[1 + k]);
            if (want(int(3 + k))) store_floats(now[k], types[3 + k], ch.c, r.outputs[3 + k]);
          }
          C *a = reinterpret_cast<C*>(sums), *b = a + ch.c;
          load_floats(r.inputs[1], types[1], ch.c, a);
          load_floats(r.inputs[2], types[2], ch.c, b);
          double* kept = keeps ? r.out<double>(5) : nullptr;
          if (kept) kept[2 * ch.c] = n;
          for (int64_t c = 0; c < ch.c; ++c) {
            const double inverse = 1 / std::sqrt(var[c] + eps);
            if (kept) kept[c] = mean[c], kept[ch.c + c] = inverse;
            b[c] = C(double(b[c]) - mean[c] * double(a[c]) * inverse);
            a[c] = C(double(a[c]) * inverse);
          }
          T* y = r.out<T>(0);
          for_channels(*r.pool, ch, [&](int64_t at, int64_t c, int64_t count, int64_t dc) {
            for (int64_t i = 0; i < count; ++i)
              y[at + i] = T(C(x[at + i]) * a[c + i * dc] + b[c + i * dc]);
          });
        };
      });
}

// (dy, x, scale, kept, after?, dkept?) -> dx, dscale, dbias, dafter: gradients by scale and bias
// are the block's own, to be added over the blocks as all gradients are.
void grad_shape(ShapeCtx& c) {
  const Channels ch = turned(c.node(), c.shape(1));
  if (c.shape(0) != c.shape(1) || c.in(2).size() != ch.c || c.in(3).size() != 2 * ch.c + 1)
    model_error("OT1133", "SyncBatchNormalizationGrad: shapes do not match");
  c.set(0, c.dtype(1), c.shape(1));
  c.set(1, c.dtype(2), c.shape(2));
  c.set(2, c.dtype(2), c.shape(2));
  if (c.has(4)) c.set(3, DType::kDouble, c.shape(4));
}

Kernel make_grad(Prepare& p) {
  const Channels ch = turned(p.node(), p.in(1).shape);
  Wants want(p);
  const uint64_t place = place_of(p.node());
  const DType scale_type = p.in(2).dtype;
  const int64_t after = p.wants(3) ? p.out(3).size() : 0;
  p.workspace = size_t(6 * ch.c) * sizeof(double);
  return dispatch<float, double, Half, BFloat16>(
      p.in(1).dtype, kGradient, [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        return [=](const Run& r) {
          const T *dy = r.in<T>(0), *x = r.in<T>(1);
          const double *mean = r.in<double>(3), *inverse = mean + ch.c, n = inverse[ch.c];
          double *sum = static_cast<double*>(r.workspace), *dot = sum + ch.c, *scale = dot + ch.c;
          channel_sums<double>(*r.pool, ch, sum, dot,
                               [&](int64_t i, int64_t c, double& s, double& d) {
                                 s = double(C(dy[i]));
                                 d = s * (double(C(x[i])) - mean[c]);
                               });
          for (int64_t c = 0; c < ch.c; ++c) dot[c] *= inverse[c];
          if (want(1)) store_floats(dot, scale_type, ch.c, r.outputs[1]);
          if (want(2)) store_floats(sum, scale_type, ch.c, r.outputs[2]);
          if (after > 0) std::fill_n(r.out<double>(3), after, 0.0);
          if (!want(0)) return;
          exchange(sum, 2 * ch.c, place);
          load_floats(r.inputs[2], scale_type, ch.c, scale);
          // dx = a (dy - mean(dy) - xhat mean(dy xhat)), in the form dy*a + x*q + s
          C *a = reinterpret_cast<C*>(scale + ch.c), *q = a + ch.c, *s = q + ch.c;
          for (int64_t c = 0; c < ch.c; ++c) {
            const double wide = scale[c] * inverse[c], slope = -wide * dot[c] * inverse[c] / n;
            a[c] = C(wide);
            q[c] = C(slope);
            s[c] = C(-wide * sum[c] / n - slope * mean[c]);
          }
          T* dx = r.out<T>(0);
          for_channels(*r.pool, ch, [&](int64_t at, int64_t c, int64_t count, int64_t dc) {
            for (int64_t i = 0; i < count; ++i) {
              const int64_t k = c + i * dc;
              dx[at + i] = T(C(dy[at + i]) * a[k] + (C(x[at + i]) * q[k] + s[k]));
            }
          });
        };
      });
}

bool can_turn(const Graph& g, const Node& n) {
  if (per_element(n)) return false;
  const bool gradient = n.is(kGradient, kOwnDomain);
  const ValueId x = n.inputs[gradient ? 1 : 0];
  return g.value(x).type.concrete() && g.value(x).type.concrete_shape().size() > 2 &&
         (!gradient || n.outputs[0] != kNone);
}

std::vector<ValueId> rule(GradBuilder& b) {
  const Node& n = b.node();
  std::vector<ValueId> g(6, kNone);
  // a loss that depends on statistics of the batch is not split
  for (int k = 1; k <= 4; ++k) OT_ASSERT(!b.has_dy(k));
  if (!b.has_dy(0)) return g;
  const bool chained = b.has(5) && b.wants(5);
  std::vector<ValueId> in = {b.dy(), b.x(0), b.x(1), b.y(5), chained ? b.x(5) : kNone};
  if (b.has_dy(5)) in.push_back(b.dy(5));
  const std::vector<ValueId> d =
      b.own_n(kGradient, in, chained ? 4 : 3,
              {{"per_element", n.i("per_element", 0)}, {"over_blocks", int64_t(1)}});
  std::copy_n(d.begin(), 3, g.begin());
  if (chained) g[5] = d[3];
  return g;
}

}  // namespace

void register_sync_batch_norm(OpTable& t) {
  t.add({.name = "SyncBatchNormalization",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = rule,
         .in_place = {{0, 0}},
         .cost = cost_per_element<8>,
         .channels_last = ChannelsLast{.in = {0}, .out = {0}, .applies = can_turn}});
  t.add({.name = kGradient,
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"ref", nullptr, make_grad}},
         .no_grad = "second derivatives need --batch-norm local",
         .in_place = {{0, 0}, {1, 0}},
         .cost = cost_per_element<10>,
         .channels_last = ChannelsLast{.in = {0, 1}, .out = {0}, .applies = can_turn}});
}

}  // namespace onnxtrain::ops
