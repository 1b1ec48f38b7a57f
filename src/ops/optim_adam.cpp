// Adam and AdamW by PyTorch's formulas (epsilon beside the corrected root, decay coupled or
// decoupled), with and without AMSGrad; AdamKeras has Keras' form (epsilon beside the plain root).
#include "ops/optim_detail.hpp"

namespace onnxtrain::ops {

namespace {

enum class Form { kAdam, kAdamW, kKeras };

void shape(ShapeCtx& c) { optimizer_shape(c, 2); }

template <Form form, bool ams>
Kernel make(Prepare& p) {
  const Node& node = p.node();
  int64_t n = p.in(2).size();
  double beta1 = setting(node, "beta1", 0.9), beta2 = setting(node, "beta2", 0.999);
  double epsilon = setting(node, "epsilon", 1e-8), decay = setting(node, "decay");
  RateAndStep scalars(p);
  return dispatch<float, double, Half, BFloat16>(p.in(2).dtype, node.op, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      double rate = scalars.rate(r), t = scalars.step(r);
      double fix1 = 1 - std::pow(beta1, t), fix2 = std::sqrt(1 - std::pow(beta2, t));
      C step = C(form == Form::kKeras ? rate * fix2 / fix1 : rate / fix1);
      C root_by = C(form == Form::kKeras ? 1.0 : fix2), eps = C(epsilon);
      C keep = C(form == Form::kAdam ? 1.0 : 1 - rate * decay), add = C(form == Form::kAdam ? decay : 0.0);
      C c1 = C(1 - beta1), b2 = C(beta2), c2 = C(1 - beta2);
      const T *x = r.in<T>(2), *g = r.in<T>(3), *m = r.in<T>(4), *v = r.in<T>(5), *s = ams ? r.in<T>(6) : nullptr;
      T *x1 = r.out<T>(0), *m1 = r.out<T>(1), *v1 = r.out<T>(2), *s1 = ams ? r.out<T>(3) : nullptr;
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          C grad = C(g[i]) + add * C(x[i]);
          C mi = C(m[i]) + (grad - C(m[i])) * c1;
          C vi = C(v[i]) * b2 + grad * grad * c2;
          C top = vi;
          if constexpr (ams) {
            top = C(s[i]) > vi ? C(s[i]) : vi;
            s1[i] = T(top);
          }
          C denominator = std::sqrt(top) / root_by + eps;
          x1[i] = T(C(x[i]) * keep - step * (mi / denominator));
          m1[i] = T(mi);
          v1[i] = T(vi);
        }
      });
    };
  });
}

// The pieces of the function bodies that the variants share.
#define OT_ADAM_HEAD                              \
  "  b1 = Constant <value: tensor = @beta1> ()\n" \
  "  b2 = Constant <value: tensor = @beta2> ()\n" \
  "  e = Constant <value: tensor = @epsilon> ()\n" \
  "  d = Constant <value: tensor = @decay> ()\n"  \
  "  one = Constant <value = double {1.0}> ()\n"  \
  "  t = Cast <to = 11> (T)\n"                    \
  "  r = Cast <to = 11> (R)\n"                    \
  "  p1 = Pow (b1, t)\n"                          \
  "  p2 = Pow (b2, t)\n"                          \
  "  fix1 = Sub (one, p1)\n"                      \
  "  q2 = Sub (one, p2)\n"                        \
  "  fix2 = Sqrt (q2)\n"                          \
  "  n1 = Sub (one, b1)\n"                        \
  "  n2 = Sub (one, b2)\n"                        \
  "  c1 = CastLike (n1, X)\n"                     \
  "  c2 = CastLike (n2, X)\n"                     \
  "  k2 = CastLike (b2, X)\n"                     \
  "  eps = CastLike (e, X)\n"
#define OT_ADAM_COUPLED       \
  "  dx = CastLike (d, X)\n"  \
  "  l2 = Mul (dx, X)\n"      \
  "  g = Add (G, l2)\n"       \
  "  kept = Identity (X)\n"
#define OT_ADAM_DECOUPLED     \
  "  rd = Mul (r, d)\n"       \
  "  keep = Sub (one, rd)\n"  \
  "  k = CastLike (keep, X)\n" \
  "  kept = Mul (X, k)\n"     \
  "  g = Identity (G)\n"
#define OT_ADAM_MOMENTS       \
  "  gm = Sub (g, M)\n"       \
  "  gmc = Mul (gm, c1)\n"    \
  "  M1 = Add (M, gmc)\n"     \
  "  vb = Mul (V, k2)\n"      \
  "  gg = Mul (g, g)\n"       \
  "  ggc = Mul (gg, c2)\n"    \
  "  V1 = Add (vb, ggc)\n"
#define OT_ADAM_TORCH_STEP    \
  "  f2 = CastLike (fix2, X)\n" \
  "  scaled = Div (root, f2)\n" \
  "  size = Div (r, fix1)\n"
#define OT_ADAM_KERAS_STEP    \
  "  scaled = Identity (root)\n" \
  "  rf = Mul (r, fix2)\n"    \
  "  size = Div (rf, fix1)\n"
#define OT_ADAM_TAIL          \
  "  denominator = Add (scaled, eps)\n" \
  "  step = CastLike (size, X)\n"       \
  "  quotient = Div (M1, denominator)\n" \
  "  move = Mul (step, quotient)\n"     \
  "  X1 = Sub (kept, move)\n}\n"
#define OT_ADAM_BEGIN "<domain: \"ai.onnxtrain\", opset_import: [\"\" : 15]>\n"
#define OT_ADAM_PLAIN " <beta1, beta2, epsilon, decay> (R, T, X, G, M, V) => (X1, M1, V1)\n{\n"
#define OT_ADAM_AMS " <beta1, beta2, epsilon, decay> (R, T, X, G, M, V, S) => (X1, M1, V1, S1)\n{\n"

constexpr const char* kAdam = OT_ADAM_BEGIN "Adam" OT_ADAM_PLAIN OT_ADAM_HEAD OT_ADAM_COUPLED OT_ADAM_MOMENTS
    "  root = Sqrt (V1)\n" OT_ADAM_TORCH_STEP OT_ADAM_TAIL;
constexpr const char* kAdamW = OT_ADAM_BEGIN "AdamW" OT_ADAM_PLAIN OT_ADAM_HEAD OT_ADAM_DECOUPLED OT_ADAM_MOMENTS
    "  root = Sqrt (V1)\n" OT_ADAM_TORCH_STEP OT_ADAM_TAIL;
constexpr const char* kKeras = OT_ADAM_BEGIN "AdamKeras" OT_ADAM_PLAIN OT_ADAM_HEAD OT_ADAM_DECOUPLED OT_ADAM_MOMENTS
    "  root = Sqrt (V1)\n" OT_ADAM_KERAS_STEP OT_ADAM_TAIL;
constexpr const char* kAdamAms = OT_ADAM_BEGIN "AdamAms" OT_ADAM_AMS OT_ADAM_HEAD OT_ADAM_COUPLED OT_ADAM_MOMENTS
    "  S1 = Max (S, V1)\n  root = Sqrt (S1)\n" OT_ADAM_TORCH_STEP OT_ADAM_TAIL;
constexpr const char* kAdamWAms = OT_ADAM_BEGIN "AdamWAms" OT_ADAM_AMS OT_ADAM_HEAD OT_ADAM_DECOUPLED OT_ADAM_MOMENTS
    "  S1 = Max (S, V1)\n  root = Sqrt (S1)\n" OT_ADAM_TORCH_STEP OT_ADAM_TAIL;
constexpr const char* kKerasAms = OT_ADAM_BEGIN "AdamKerasAms" OT_ADAM_AMS OT_ADAM_HEAD OT_ADAM_DECOUPLED OT_ADAM_MOMENTS
    "  S1 = Max (S, V1)\n  root = Sqrt (S1)\n" OT_ADAM_KERAS_STEP OT_ADAM_TAIL;

template <Form form, bool ams>
void add(OpTable& t, const char* name, const char* function) {
  Op op;
  op.name = name;
  op.domain = std::string(kOwnDomain);
  op.shape = shape;
  op.impls = {{"ref", nullptr, make<form, ams>}};
  op.no_grad = "an optimizer's update is not differentiated";
  op.in_place = {{2, 0}, {4, 1}, {5, 2}};
  if (ams) op.in_place.push_back({6, 3});
  op.function = function;
  t.add(std::move(op));
}

}  // namespace

void register_optim_adam(OpTable& t) {
  add<Form::kAdam, false>(t, "Adam", kAdam);
  add<Form::kAdamW, false>(t, "AdamW", kAdamW);
  add<Form::kKeras, false>(t, "AdamKeras", kKeras);
  add<Form::kAdam, true>(t, "AdamAms", kAdamAms);
  add<Form::kAdamW, true>(t, "AdamWAms", kAdamWAms);
  add<Form::kKeras, true>(t, "AdamKerasAms", kKerasAms);
}

}  // namespace onnxtrain::ops
