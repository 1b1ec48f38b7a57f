// Adagrad, Adam and Momentum of ai.onnx.preview.training: one node updates any number of tensors.
// Inputs are R, T, then all X, all G, then the states; outputs all new X, then the new states.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/optim/optim.hpp"
#include "op/op.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/optim/onnx_optimizers_lower.hpp"

namespace onnxtrain::ops {

namespace {

enum class Kind { kAdagrad, kAdam, kMomentum };

Kind kind_of(const Node& n) {
  return n.op == "Adam" ? Kind::kAdam : n.op == "Momentum" ? Kind::kMomentum : Kind::kAdagrad;
}
int states_of(const Node& n) { return n.op == "Adam" ? 2 : 1; }
// 1: the last input is a factor of all gradients (pass scale_updates; never in files)
int64_t scaled(const Node& n) { return n.i("scaled", 0) == 1; }
// tensors that this node updates
int64_t count_of(const Node& n) {
  int64_t inputs = int64_t(n.inputs.size()) - 2 - scaled(n), per = 2 + states_of(n);
  if (inputs < per || inputs % per != 0)
    model_error("OT1135", cat(n.op, " has ", inputs,
                              " tensors after R and T, which is no multiple of ", per));
  return inputs / per;
}

float required(const Node& n, const char* key) {
  if (!n.has(key)) model_error("OT1134", cat(n.op, " has no attribute ", key));
  return n.f(key, 0);
}

void shape(ShapeCtx& c) {
  const Node& n = c.node();
  if (kind_of(n) == Kind::kMomentum) {
    for (const char* key : {"alpha", "beta", "norm_coefficient"}) required(n, key);
    std::string mode = n.s("mode", "");
    if (mode != "standard" && mode != "nesterov")
      model_error("OT1134",
                  cat("mode of Momentum is '", mode, "', it can be standard or nesterov"));
  }
  if (c.in(0).size() != 1 || c.in(1).size() != 1)
    model_error("OT1133", cat("R and T of ", n.op, " must be scalars"));
  if (c.dtype(1) != DType::kInt64)
    model_error("OT1103", cat("T of ", n.op, " is ", dtype_name(c.dtype(1)), ", not int64"));
  const int last = c.inputs() - 1;
  if (scaled(n) && (c.in(last).size() != 1 || c.dtype(last) != DType::kFloat))
    model_error("OT1133", cat("the factor of ", n.op, " is no float scalar"));
  int64_t count = count_of(n), per = 2 + states_of(n);
  for (int64_t k = 0; k < count; ++k) {
    int x = int(2 + k);
    for (int64_t s = 1; s < per; ++s) {
      int other = int(2 + s * count + k);
      if (c.shape(other) != c.shape(x) || c.dtype(other) != c.dtype(x))
        model_error("OT1133", cat(n.op, ": input ", other, " has type ", dtype_name(c.dtype(other)),
                                  to_string(c.shape(other)), ", its tensor ",
                                  dtype_name(c.dtype(x)), to_string(c.shape(x))));
    }
    c.set(int(k), c.dtype(x), c.shape(x));
    for (int64_t s = 0; s < states_of(n); ++s)
      c.set(int((1 + s) * count + k), c.dtype(x), c.shape(x));
  }
}

// The new values take the place of the old ones: every element is read before it is written.
std::vector<std::pair<int, int>> in_place(const Node& n) {
  std::vector<std::pair<int, int>> pairs;
  int count = int(count_of(n));
  for (int k = 0; k < count; ++k) {
    pairs.push_back({2 + k, k});
    for (int s = 0; s < states_of(n); ++s)
      pairs.push_back({2 + (2 + s) * count + k, (1 + s) * count + k});
  }
  return pairs;
}

// Everything about one step that does not depend on the element; calculated in double.
struct Step {
  Kind kind;
  bool nesterov;
  double alpha, beta, epsilon, decay, norm, norm_post;
  explicit Step(const Node& n)
      : kind(kind_of(n)),
        nesterov(n.s("mode", "") == "nesterov"),
        alpha(double(n.f("alpha", 0.9f))),
        beta(double(n.f("beta", 0.999f))),
        epsilon(double(n.f("epsilon", 1e-6f))),
        decay(double(n.f("decay_factor", 0))),
        norm(double(n.f("norm_coefficient", 0))),
        norm_post(double(n.f("norm_coefficient_post", 0))) {}
};

template <class T>
struct Operands {
  const T *x, *g, *s1, *s2;
  T *new_x, *new_s1, *new_s2;
};

template <class T>
void update(const Step& s, double lr, int64_t t, const Operands<T>& o, int64_t begin, int64_t end) {
  T norm = T(s.norm), eps = T(s.epsilon);
  switch (s.kind) {
    case Kind::kAdagrad: {
      T r = T(lr / (1 + double(t) * s.decay));
      for (int64_t i = begin; i < end; ++i) {
        T g = norm * o.x[i] + o.g[i], h = o.s1[i] + g * g, x = o.x[i];
        o.new_s1[i] = h;
        o.new_x[i] = x - r * g / (std::sqrt(h) + eps);
      }
      break;
    }
    case Kind::kAdam: {
      T a = T(s.alpha), a1 = T(1 - s.alpha), b = T(s.beta), b1 = T(1 - s.beta);
      double corrected = t > 0 ? lr * std::sqrt(1 - std::pow(s.beta, double(t))) /
                                     (1 - std::pow(s.alpha, double(t)))
                               : lr;
      T r = T(corrected), keep = T(1 - s.norm_post);
      for (int64_t i = begin; i < end; ++i) {
        T x = o.x[i], g = norm * x + o.g[i], v = a * o.s1[i] + a1 * g,
          h = b * o.s2[i] + b1 * (g * g);
        o.new_s1[i] = v;
        o.new_s2[i] = h;
        o.new_x[i] = keep * (x - r * v / (std::sqrt(h) + eps));
      }
      break;
    }
    case Kind::kMomentum: {
      T a = T(s.alpha), b = T(t > 0 ? s.beta : 1.0), r = T(lr);
      for (int64_t i = begin; i < end; ++i) {
        T x = o.x[i], g = norm * x + o.g[i], v = a * o.s1[i] + b * g;
        o.new_s1[i] = v;
        o.new_x[i] = x - r * (s.nesterov ? g + a * v : v);
      }
      break;
    }
  }
}

Kernel make(Prepare& p) {
  Step step(p.node());
  int64_t count = count_of(p.node()), states = states_of(p.node());
  std::vector<int64_t> size;
  int64_t spare = 0;  // for results that nobody asked for
  for (int64_t k = 0; k < count; ++k) {
    size.push_back(p.in(int(2 + k)).size());
    for (int64_t o = 0; o <= states; ++o)
      if (!p.wants(int(o * count + k))) spare = std::max(spare, size.back());
  }
  std::vector<char> wants;
  for (int64_t o = 0; o < (1 + states) * count; ++o) wants.push_back(p.wants(int(o)));
  bool lr64 = p.in(0).dtype == DType::kDouble;
  std::vector<DType> type;
  for (int64_t k = 0; k < count; ++k) type.push_back(p.in(int(2 + k)).dtype);
  p.workspace = size_t(spare) * 8 * 3;
  return [=](const Run& r) {
    double lr = lr64 ? *r.in<double>(0) : double(*r.in<float>(0));
    int64_t t = *r.in<int64_t>(1);
    for (int64_t k = 0; k < count; ++k) {
      dispatch<float, double>(type[size_t(k)], "an optimizer", [&]<class T>() {
        auto in = [&](int64_t group) { return r.in<T>(int(2 + group * count + k)); };
        auto out = [&](int64_t group) {
          int64_t o = group * count + k;
          return wants[size_t(o)] ? r.out<T>(int(o)) : static_cast<T*>(r.workspace) + group * spare;
        };
        Operands<T> o{in(0),
                      in(1),
                      in(2),
                      states > 1 ? in(3) : nullptr,
                      out(0),
                      out(1),
                      states > 1 ? out(2) : nullptr};
        parallel_for(*r.pool, size[size_t(k)], kGrain,
                     [&](int64_t b, int64_t e) { update<T>(step, lr, t, o, b, e); });
      });
    }
  };
}

// ------------------------------------------------------------- all tensors in one pass, float
std::string refuses_simd(const Prepare& p) {
  int64_t count = count_of(p.node());
  for (int64_t k = 0; k < count; ++k)
    if (p.in(int(2 + k)).dtype != DType::kFloat) return "only for float";
  for (int64_t o = 0; o < (1 + states_of(p.node())) * count; ++o)
    if (!p.wants(int(o))) return "a result is not wanted";
  return "";
}

std::string refuses_plain(const Prepare& p) {
  return scaled(p.node()) ? "it does not multiply gradients" : "";
}

void run_simd(const Step& s, ThreadPool& pool, const simd::OptimList& list, double lr, int64_t t,
              float factor) {
  switch (s.kind) {
    case Kind::kAdagrad:
      return simd::update(pool, list,
                          simd::AdagradStep{.lr = float(lr / (1 + double(t) * s.decay)),
                                            .epsilon = float(s.epsilon),
                                            .decay = float(s.norm),
                                            .grad_scale = factor});
    case Kind::kAdam: {
      simd::AdamStep a =
          simd::onnx_adam_step(lr, t, s.alpha, s.beta, s.epsilon, s.norm, s.norm_post);
      a.grad_scale = factor;
      return simd::update(pool, list, a);
    }
    case Kind::kMomentum:
      return simd::update(pool, list,
                          simd::MomentumStep{.lr = float(lr),
                                             .keep = float(s.alpha),
                                             .take = t > 0 ? float(s.beta) : 1.0f,
                                             .look = s.nesterov ? float(s.alpha) : 0.0f,
                                             .decay = float(s.norm),
                                             .grad_scale = factor});
  }
}

VectorUpdate vector(const Node& n) {
  return [step = Step(n)](ThreadPool& pool, const simd::OptimList& list, double lr, double t,
                          float factor) { run_simd(step, pool, list, lr, int64_t(t), factor); };
}

Kernel make_simd(Prepare& p) {
  const VectorUpdate update = vector(p.node());
  int64_t count = count_of(p.node()), states = states_of(p.node());
  const int factor = scaled(p.node()) ? p.inputs() - 1 : -1;
  std::vector<int64_t> size;
  for (int64_t k = 0; k < count; ++k) size.push_back(p.in(int(2 + k)).size());
  bool lr64 = p.in(0).dtype == DType::kDouble;
  // the list is made once and again only when memory has moved
  return [=, list = simd::OptimList(), made_for = std::vector<void*>()](const Run& r) mutable {
    std::vector<void*>& at = made_for;
    bool same = !at.empty();
    size_t next = 0;
    auto look = [&](void* v) { same = same && at[next++] == v; };
    for (int64_t k = 0; k < count; ++k) look(r.inputs[2 + count + k]);
    for (int64_t o = 0; o < (1 + states) * count; ++o) look(r.outputs[o]);
    if (!same) {
      at.clear();
      for (int64_t k = 0; k < count; ++k) at.push_back(r.inputs[2 + count + k]);
      for (int64_t o = 0; o < (1 + states) * count; ++o) at.push_back(r.outputs[o]);
      std::vector<simd::OptimTensor> tensors;
      for (int64_t k = 0; k < count; ++k) {
        simd::OptimTensor t{
            .x = r.out<float>(int(k)), .g = r.in<float>(int(2 + count + k)), .n = size[size_t(k)]};
        for (int64_t s = 0; s < states; ++s) t.state[s] = r.out<float>(int((1 + s) * count + k));
        tensors.push_back(t);
      }
      list = simd::OptimList(std::move(tensors));
    }
    for (int64_t k = 0; k < count; ++k)
      for (int64_t g = 0; g <= states; ++g) {
        const void* from = r.inputs[2 + (g == 0 ? 0 : 1 + g) * count + k];
        void* to = r.outputs[g * count + k];
        if (from != to && size[size_t(k)]) std::memcpy(to, from, size_t(size[size_t(k)]) * 4);
      }
    double lr = lr64 ? *r.in<double>(0) : double(*r.in<float>(0));
    update(*r.pool, list, lr, double(*r.in<int64_t>(1)), factor < 0 ? 1.0f : *r.in<float>(factor));
  };
}

// Only when a row with gradient 0 stays as it is.
bool leaves_rows(const Node& n) {
  return n.f("norm_coefficient", 0) == 0 && n.f("epsilon", 1e-6f) > 0;
}

// Settings are the operator's attributes by their own names; weight_decay stands for
// norm_coefficient where that is not given.
OptimizerNode node(const OptimizerSettings& s, const char* op, const char* scalars,
                   const std::vector<const char*>& attributes,
                   std::vector<std::pair<std::string, double>> state) {
  OptimizerNode n{.op = op,
                  .domain = kTrainingDomain,
                  .scalars = scalars,
                  .attrs = {{"norm_coefficient", s.single("norm_coefficient")}},
                  .state = std::move(state)};
  if (std::isnan(s["norm_coefficient"])) n.attrs["norm_coefficient"] = s.single("weight_decay");
  for (const char* key : attributes) n.attrs[key] = s.single(key);
  return n;
}

OptimizerNode adam(const OptimizerSettings& s) {
  return node(s, "Adam", "RT", {"alpha", "beta", "epsilon", "norm_coefficient_post"},
              {{"V", 0}, {"H", 0}});
}

OptimizerNode momentum(const OptimizerSettings& s) {
  OptimizerNode n = node(s, "Momentum", "RT", {"alpha", "beta"}, {{"V", 0}});
  n.attrs["mode"] = std::string(s.flag("nesterov") ? "nesterov" : "standard");
  n.shrink =
      std::get<float>(n.attrs["norm_coefficient"]) * (s.flag("nesterov") ? 1 + s["alpha"] : 1);
  return n;
}

OptimizerNode adagrad(const OptimizerSettings& s) {
  return node(s, "Adagrad", "RT", {"decay_factor", "epsilon"},
              {{"H", s["initial_accumulator_value"]}});
}

constexpr OptimizerSetting kNorm{"norm_coefficient", std::numeric_limits<double>::quiet_NaN(),
                                 SettingRange::kAny};

void add_optimizers(OpTable& t) {
  constexpr auto kAny = SettingRange::kAny;
  t.add_optimizer({.kind = "onnx_adam",
                   .class_name = "",
                   .help = "The standard's Adam operator.",
                   .settings = {{"lr", 1e-3}, {"weight_decay", 0}},
                   .node = adam,
                   .attributes = {{"alpha", 0.9, kAny},
                                  {"beta", 0.999, kAny},
                                  {"epsilon", 1e-6, kAny},
                                  kNorm,
                                  {"norm_coefficient_post", 0, kAny}},
                   .first_step = 1});
  t.add_optimizer(
      {.kind = "onnx_momentum",
       .class_name = "",
       .help = "The standard's Momentum operator.",
       .settings = {{"lr", 1e-2}, {"weight_decay", 0}, {"nesterov", 0, SettingRange::kFlag}},
       .node = momentum,
       .attributes = {{"alpha", 0.9, kAny}, {"beta", 1, kAny}, kNorm}});
  t.add_optimizer(
      {.kind = "onnx_adagrad",
       .class_name = "",
       .help = "The standard's Adagrad operator.",
       .settings = {{"lr", 1e-2}, {"weight_decay", 0}, {"initial_accumulator_value", 0}},
       .node = adagrad,
       .attributes = {{"decay_factor", 0, kAny}, {"epsilon", 1e-6, kAny}, kNorm}});
}

}  // namespace

void register_onnx_optimizers(OpTable& t) {
  add_optimizers(t);
  UpdateForm one{.scalars = 2, .states = 1, .vector = vector}, two = one, table = one;
  two.states = 2;
  table.by_rows = "AdagradRows";
  table.leaves_rows = leaves_rows;
  for (const auto& [name, form] : {std::pair{"Adagrad", table}, {"Adam", two}, {"Momentum", one}})
    t.add({.name = name,
           .domain = std::string(kTrainingDomain),
           .shape = shape,
           .impls = {{"simd", refuses_simd, make_simd}, {"ref", refuses_plain, make}},
           .in_place_of = in_place,
           .update = form,
           .lower = lower_optimizer});
}

}  // namespace onnxtrain::ops
