// BatchNormalization, inference and training, and its gradient.
#include <cmath>

#include "ops/common/cost.hpp"
#include "ops/common/wide.hpp"
#include "ops/norm/batch_norm_kernel.hpp"
#include "ops/norm/channel_loops.hpp"
#include "ops/norm/channels_last_norm_kernel.hpp"

namespace onnxtrain::ops {

namespace {

// Opset 1-6: training unless is_test; 7-13: training when statistics are asked for; then an
// attribute.
bool trains(const Node& n) {
  if (n.version >= 14) return n.i("training_mode", 0) != 0;
  if (n.version < 7) return n.i("is_test", 0) == 0;
  for (size_t k = 1; k < n.outputs.size(); ++k)
    if (n.outputs[k] != kNone) return true;
  return false;
}
bool per_element(const Node& n) { return n.version < 9 && n.i("spatial", 1) == 0; }

void shape(ShapeCtx& c) {
  Channels ch = channels_of(c.shape(0), per_element(c.node()));
  for (int i = 1; i <= 4; ++i)
    if (c.in(i).size() != ch.c)
      model_error("OT1133", cat("BatchNormalization of ", to_string(c.shape(0)), ": input ", i,
                                " has shape ", to_string(c.shape(i)), ", not [", ch.c, "]"));
  c.set(0, c.dtype(0), c.shape(0));
  c.set(1, c.dtype(3), c.shape(3));
  c.set(2, c.dtype(4), c.shape(4));
  c.set(3, c.dtype(3), c.shape(3));
  c.set(4, c.dtype(4), c.shape(4));
}

Kernel make(Prepare& p) {
  Channels ch = channels_of(p.in(0).shape, per_element(p.node()));
  bool train = trains(p.node());
  Wants want(p);
  float eps = p.node().f("epsilon", 1e-5f), momentum = p.node().f("momentum", 0.9f);
  std::vector<DType> types;
  for (int i = 0; i <= 4; ++i) types.push_back(p.in(i).dtype);
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "BatchNormalization", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        p.workspace = size_t(ch.c) * 4 * sizeof(C);
        return [=](const Run& r) {
          const T* x = r.in<T>(0);
          C *mean = static_cast<C*>(r.workspace), *var = mean + ch.c, *a = var + ch.c,
            *b = a + ch.c;
          if (train) {
            batch_statistics<T>(*r.pool, ch, x, mean, var, a);
            const C* now[2] = {mean, var};
            for (size_t k = 0; k < 2; ++k) {
              C* old = k == 0 ? a : b;  // scratch
              load_floats(r.inputs[3 + k], types[3 + k], ch.c, old);
              for (int64_t i = 0; i < ch.c; ++i)
                old[i] = old[i] * C(momentum) + now[k][i] * (C(1) - C(momentum));
              if (want(int(1 + k))) store_floats(old, types[3 + k], ch.c, r.outputs[1 + k]);
              if (want(int(3 + k))) store_floats(now[k], types[3 + k], ch.c, r.outputs[3 + k]);
            }
          } else {
            load_floats(r.inputs[3], types[3], ch.c, mean);
            load_floats(r.inputs[4], types[4], ch.c, var);
          }
          load_floats(r.inputs[1], types[1], ch.c, a);
          load_floats(r.inputs[2], types[2], ch.c, b);
          for (int64_t i = 0; i < ch.c; ++i) {
            a[i] /= std::sqrt(var[i] + C(eps));
            b[i] -= mean[i] * a[i];
          }
          T* y = r.out<T>(0);
          for_channels(*r.pool, ch, [&](int64_t at, int64_t c, int64_t n, int64_t dc) {
            for (int64_t i = 0; i < n; ++i)
              y[at + i] = T(C(x[at + i]) * a[c + i * dc] + b[c + i * dc]);
          });
        };
      });
}

// ------------------------------------------------------------- float, channels last
std::string refuses_last(const Prepare& p) {
  bool grad = p.node().domain == kOwnDomain;
  if (grad ? p.node().i("per_element", 0) != 0 : per_element(p.node())) return "per element";
  if (grad && !p.wants(0)) return "dx is not wanted";
  return channel_norm_refuses(p, grad ? 1 : 0);
}

Kernel make_last(Prepare& p) {
  ChannelNorm c;
  c.shape = norm_shape(p.in(0).shape);
  c.epsilon = p.node().f("epsilon", 1e-5f);
  c.momentum = p.node().f("momentum", 0.9f);
  c.train = trains(p.node());
  return channel_norm_kernel(p, c);
}

Kernel make_last_grad(Prepare& p) {
  ChannelNormGrad c;
  c.shape = norm_shape(p.in(1).shape);
  c.epsilon = p.node().f("epsilon", 1e-5f);
  c.train = !p.has(3);
  if (!c.train) c.mean = 3, c.var = 4, c.dmean = 3, c.dvar = 4;
  return channel_norm_grad_kernel(p, c);
}

bool can_turn(const Graph& g, const Node& n) {
  bool grad = n.domain == kOwnDomain;
  if (grad ? n.i("per_element", 0) != 0 || n.outputs[0] == kNone : per_element(n)) return false;
  for (ValueId v : n.inputs)
    if (v != kNone && g.value(v).type.elem != DType::kFloat) return false;
  return true;
}

// ------------------------------------------------------------- float, channel by channel
std::string refuses_simd(const Prepare& p) {
  for (int i = 0; i < p.inputs(); ++i)
    if (p.has(i) && p.in(i).dtype != DType::kFloat) return "only for float";
  bool element =
      p.node().domain == kOwnDomain ? p.node().i("per_element", 0) != 0 : per_element(p.node());
  Channels ch = channels_of(p.in(p.node().domain == kOwnDomain ? 1 : 0).shape, element);
  if (p.node().domain == kOwnDomain && !p.wants(0)) return "dx is not wanted";
  return ch.s < 8 ? "channels are not contiguous" : ch.n == 0 || ch.c == 0 ? "empty" : "";
}

Kernel make_simd(Prepare& p) {
  Channels ch = channels_of(p.in(0).shape);
  bool train = trains(p.node());
  Wants want(p);
  float eps = p.node().f("epsilon", 1e-5f), momentum = p.node().f("momentum", 0.9f);
  return [=](const Run& r) {
    const float *x = r.in<float>(0), *scale = r.in<float>(1), *bias = r.in<float>(2),
                *old_mean = r.in<float>(3), *old_var = r.in<float>(4);
    parallel_for(*r.pool, ch.c, std::max<int64_t>(1, 32768 / (ch.n * ch.s)),
                 [&](int64_t b, int64_t e) {
                   for (int64_t c = b; c < e; ++c) {
                     float mean = old_mean[c], var = old_var[c];
                     if (train) {
                       channel_statistics_f32(ch, x, c, &mean, &var);
                       float run_mean = old_mean[c] * momentum + mean * (1 - momentum);
                       float run_var = old_var[c] * momentum + var * (1 - momentum);
                       if (want(1)) r.out<float>(1)[c] = run_mean;
                       if (want(2)) r.out<float>(2)[c] = run_var;
                       if (want(3)) r.out<float>(3)[c] = mean;
                       if (want(4)) r.out<float>(4)[c] = var;
                     }
                     float a = scale[c] / std::sqrt(var + eps);
                     channel_affine_f32(ch, x, c, a, bias[c] - mean * a, r.out<float>(0));
                   }
                 });
  };
}

Kernel make_simd_grad(Prepare& p) {
  Channels ch = channels_of(p.in(1).shape);
  bool train = !p.has(3);
  Wants want(p);
  float eps = p.node().f("epsilon", 1e-5f);
  return [=](const Run& r) {
    const float *dy = r.in<float>(0), *x = r.in<float>(1), *scale = r.in<float>(2);
    parallel_for(
        *r.pool, ch.c, std::max<int64_t>(1, 32768 / (ch.n * ch.s)), [&](int64_t b, int64_t e) {
          for (int64_t c = b; c < e; ++c) {
            float mean, var, sum, dot;
            if (train) {
              channel_statistics_f32(ch, x, c, &mean, &var);
            } else {
              mean = r.in<float>(3)[c];
              var = r.in<float>(4)[c];
            }
            float inv = 1 / std::sqrt(var + eps), a = scale[c] * inv, m = float(ch.n) * float(ch.s);
            channel_gradient_sums_f32(ch, dy, x, c, mean, &sum, &dot);
            dot *= inv;
            if (want(1)) r.out<float>(1)[c] = dot;
            if (want(2)) r.out<float>(2)[c] = sum;
            if (!train && want(3)) r.out<float>(3)[c] = -sum * a;
            if (!train && want(4)) r.out<float>(4)[c] = -0.5f * dot * a * inv;
            float q = train ? -a * dot * inv / m : 0.0f, shift = train ? -a * sum / m : 0.0f;
            channel_gradient_f32(ch, dy, x, c, a, mean, q, shift, r.out<float>(0));
          }
        });
  };
}

// BatchNormalizationGrad(dy, x, scale, mean?, var?) -> dx, dscale, dbias, dmean, dvar; mean and var
// (those of inference) are omitted in training.
void grad_shape(ShapeCtx& c) {
  Channels ch = channels_of(c.shape(1), c.node().i("per_element", 0) != 0);
  if (c.shape(0) != c.shape(1) || c.in(2).size() != ch.c ||
      (c.has(3) && (c.in(3).size() != ch.c || c.in(4).size() != ch.c)))
    model_error("OT1133", "BatchNormalizationGrad: shapes do not match");
  c.set(0, c.dtype(1), c.shape(1));
  c.set(1, c.dtype(2), c.shape(2));
  c.set(2, c.dtype(2), c.shape(2));
  if (!c.has(3)) return;
  c.set(3, c.dtype(3), c.shape(3));
  c.set(4, c.dtype(4), c.shape(4));
}

Kernel make_grad(Prepare& p) {
  Channels ch = channels_of(p.in(1).shape, p.node().i("per_element", 0) != 0);
  bool train = !p.has(3);
  Wants want(p);
  float eps = p.node().f("epsilon", 1e-5f);
  DType scale_type = p.in(2).dtype, stat_type = train ? DType::kFloat : p.in(3).dtype;
  return dispatch<float, double, Half, BFloat16>(
      p.in(1).dtype, "BatchNormalizationGrad", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        p.workspace = size_t(ch.c) * 6 * sizeof(C);
        return [=](const Run& r) {
          const T *dy = r.in<T>(0), *x = r.in<T>(1);
          C *mean = static_cast<C*>(r.workspace), *inv = mean + ch.c, *sum = inv + ch.c,
            *dot = sum + ch.c, *a = dot + ch.c, *extra = a + ch.c;
          if (train) {
            batch_statistics<T>(*r.pool, ch, x, mean, inv, sum);
          } else {
            load_floats(r.inputs[3], stat_type, ch.c, mean);
            load_floats(r.inputs[4], stat_type, ch.c, inv);
          }
          for (int64_t c = 0; c < ch.c; ++c) inv[c] = C(1) / std::sqrt(inv[c] + C(eps));
          channel_sums<C>(*r.pool, ch, sum, dot, [&](int64_t i, int64_t c, C& s, C& d) {
            C g = C(dy[i]);
            s = g;
            d = g * (C(x[i]) - mean[c]);
          });
          load_floats(r.inputs[2], scale_type, ch.c, a);
          for (int64_t c = 0; c < ch.c; ++c) {
            dot[c] *= inv[c];
            a[c] *= inv[c];
          }
          if (want(1)) store_floats(dot, scale_type, ch.c, r.outputs[1]);
          if (want(2)) store_floats(sum, scale_type, ch.c, r.outputs[2]);
          if (!train) {
            for (int64_t c = 0; c < ch.c; ++c) extra[c] = -sum[c] * a[c];
            if (want(3)) store_floats(extra, stat_type, ch.c, r.outputs[3]);
            for (int64_t c = 0; c < ch.c; ++c) extra[c] = C(-0.5) * dot[c] * a[c] * inv[c];
            if (want(4)) store_floats(extra, stat_type, ch.c, r.outputs[4]);
          }
          if (!want(0)) return;
          // dx = a (dy - mean(dy) - xhat mean(dy xhat)), in the form dy*a + x*q + s
          C m = C(ch.n) * C(ch.s);
          for (int64_t c = 0; c < ch.c; ++c) {
            C q = train ? -a[c] * dot[c] * inv[c] / m : C(0);
            extra[c] = train ? -a[c] * sum[c] / m - q * mean[c] : C(0);
            dot[c] = q;
          }
          T* dx = r.out<T>(0);
          for_channels(*r.pool, ch, [&](int64_t at, int64_t c, int64_t n, int64_t dc) {
            for (int64_t i = 0; i < n; ++i) {
              int64_t k = c + i * dc;
              dx[at + i] = T(C(dy[at + i]) * a[k] + (C(x[at + i]) * dot[k] + extra[k]));
            }
          });
        };
      });
}

using Grads = std::vector<ValueId>;

// What flows in through the statistics: running = m old + (1-m) batch, saved = batch.
void add_statistics(GradBuilder& b, Grads& g) {
  const Node& n = b.node();
  double m = double(n.f("momentum", 0.9f));
  ValueId dmean = kNone, dvar = kNone;
  auto join = [&](ValueId& to, ValueId v) { to = to == kNone ? v : b.add(to, v); };
  for (int k = 1; k <= 4; ++k) {
    if (!b.has_dy(k)) continue;
    ValueId d = b.dy(k);
    bool is_mean = k == 1 || k == 3, running = k <= 2;
    if (running) g[is_mean ? 3 : 4] = b.mul(d, b.scalar(m, d));
    ValueId v = running ? b.mul(d, b.scalar(1 - m, d)) : d;
    join(is_mean ? dmean : dvar, b.cast_like(v, b.x(0)));
  }
  if ((dmean == kNone && dvar == kNone) || !b.wants(0)) return;
  ValueId x = b.x(0);
  int64_t rank = b.need_rank(x);
  std::vector<int64_t> axes = {0}, lead;
  bool element = per_element(n);
  for (int64_t d = 2; d < rank && !element; ++d) axes.push_back(d);
  for (int64_t d = 1; d + 1 < rank && !element; ++d) lead.push_back(d);
  auto wide = [&](ValueId v) {
    return widened(Expr{b, lead.empty() ? v : b.unsqueeze(v, lead), b.dtype(x)});
  };
  const Expr ex = widened(Expr{b, x});
  const Expr size = count_of(b, x, ex), width = count_of(b, b.x(1), ex);
  Expr each = width / size;
  ValueId more = kNone;
  if (dmean != kNone) more = b.expand_like((wide(dmean) * each).v, x);
  if (dvar != kNone) {
    Expr mean = Expr{b, b.reduce_sum(ex.v, axes), ex.dtype} * each;
    join(more, ((ex - mean) * wide(dvar) * each * 2.0).v);
  }
  more = b.cast_like(more, x);
  g[0] = g[0] == kNone ? more : b.add(g[0], more);
}

Grads rule(GradBuilder& b) {
  const Node& n = b.node();
  bool train = trains(n);
  Grads g(5, kNone);
  if (b.has_dy(0)) {
    std::vector<ValueId> in = {b.dy(), b.x(0), b.x(1)};
    if (!train) in.insert(in.end(), {b.x(3), b.x(4)});
    Grads d =
        b.own_n("BatchNormalizationGrad", in, train ? 3 : 5,
                {{"epsilon", n.f("epsilon", 1e-5f)}, {"per_element", int64_t(per_element(n))}});
    std::copy(d.begin(), d.end(), g.begin());
  }
  if (train) add_statistics(b, g);
  return g;
}

Grads lower(GradBuilder& b) {
  ValueId x = b.x(1);
  int64_t rank = b.need_rank(x);
  bool element = b.node().i("per_element", 0) != 0, train = !b.has(3);
  std::vector<int64_t> axes, lead;
  for (int64_t d = 0; d < rank; ++d)
    if (element ? d == 0 : d != 1) axes.push_back(d);
  for (int64_t d = 1; d + 1 < rank && !element; ++d) lead.push_back(d);
  auto wide = [&](ValueId v) {
    return widened(Expr{b, lead.empty() ? v : b.unsqueeze(v, lead), b.dtype(x)});
  };
  auto sum = [&](Expr v) { return Expr{b, b.reduce_sum(v.v, axes), v.dtype}; };
  auto narrow = [&](Expr v, ValueId like) {
    return b.cast_like(b.reshape_like(v.v, b.x(2)), like);
  };
  const Expr dy = widened(Expr{b, b.x(0)}), ex = widened(Expr{b, x});
  Expr n = count_of(b, x, ex) / count_of(b, b.x(2), ex);
  Expr mean = train ? sum(ex) / n : wide(b.cast_like(b.x(3), x));
  Expr centred = ex - mean;
  Expr var = train ? sum(centred * centred) / n : wide(b.cast_like(b.x(4), x));
  Expr inv = 1.0 / (var + double(b.node().f("epsilon", 1e-5f)))("Sqrt");
  Expr a = wide(b.cast_like(b.x(2), x)) * inv, hat = centred * inv;
  Expr dbias = sum(dy), dscale = sum(dy * hat);
  Expr dx = train ? a * (dy - dbias / n - hat * (dscale / n)) : a * dy;
  Grads g = {b.cast_like(dx.v, x), narrow(dscale, b.x(2)), narrow(dbias, b.x(2))};
  if (!train) {
    g.push_back(narrow(-(dbias * a), b.x(3)));
    g.push_back(narrow(dscale * a * inv * -0.5, b.x(4)));
  }
  return g;
}

}  // namespace

void register_batch_norm(OpTable& t) {
  t.add({.name = "BatchNormalization",
         .shape = shape,
         .impls = {{"last", refuses_last, make_last},
                   {"simd", refuses_simd, make_simd},
                   {"ref", nullptr, make}},
         .grad = rule,
         .in_place = {{0, 0}},
         .cost = cost_per_element<8>,
         .channels_last = ChannelsLast{.in = {0}, .out = {0}, .applies = can_turn},
         .settings_from = 3});
  t.add({.name = "BatchNormalizationGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"last", refuses_last, make_last_grad},
                   {"simd", refuses_simd, make_simd_grad},
                   {"ref", nullptr, make_grad}},
         .in_place = {{0, 0}, {1, 0}},
         .cost = cost_per_element<10>,
         .channels_last = ChannelsLast{.in = {0, 1}, .out = {0}, .applies = can_turn},
         .lower = lower});
}

}  // namespace onnxtrain::ops
