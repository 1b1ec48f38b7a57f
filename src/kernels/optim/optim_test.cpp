#include "kernels/optim/optim.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace onnxtrain::simd {
namespace {

using Floats = std::vector<float>;
constexpr int64_t kUpdateSizes[] = {1, 3, 8, 17, 0, 40000, 8192, 8193, 5};

struct Tensors {
  std::vector<Floats> x, g, s0, s1, s2;
  OptimList list;

  Tensors() {
    std::mt19937 gen(3);
    std::uniform_real_distribution<float> dist(-1, 1);
    std::vector<OptimTensor> refs;
    for (int64_t n : kUpdateSizes) {
      for (auto* v : {&x, &g}) {
        Floats f(static_cast<size_t>(n));
        for (auto& e : f) e = dist(gen);
        v->push_back(f);
      }
      for (auto* v : {&s0, &s1, &s2}) v->push_back(Floats(size_t(n), 0.0f));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      OptimTensor t;
      t.x = x[i].data(), t.g = g[i].data(), t.n = int64_t(x[i].size());
      t.state[0] = s0[i].data(), t.state[1] = s1[i].data(), t.state[2] = s2[i].data();
      refs.push_back(t);
    }
    list = OptimList(refs);
  }
};

// Three steps with 1, 2 and 4 threads: same bits; and close to `ref`, which updates one element
// (x, g, state of 3, step number from 1) in double precision.
template <class MakeStep>
void check(const char* name, MakeStep make,
           const std::function<void(double& x, double g, double* s, int t)>& ref) {
  std::vector<Floats> first;
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    Tensors t;
    for (int step = 1; step <= 3; ++step) update(pool, t.list, make(step));
    if (threads == 1) {
      first = t.x;
      Tensors fresh;
      for (size_t k = 0; k < t.x.size(); ++k) {
        for (size_t i = 0; i < t.x[k].size(); ++i) {
          double x = fresh.x[k][i], s[3] = {0, 0, 0};
          for (int step = 1; step <= 3; ++step) ref(x, fresh.g[k][i], s, step);
          ASSERT_NEAR(t.x[k][i], x, 2e-6) << name << " tensor " << k << " element " << i;
          ASSERT_NEAR(t.s0[k][i], s[0], 2e-6) << name;
          ASSERT_NEAR(t.s1[k][i], s[1], 2e-6) << name;
          ASSERT_NEAR(t.s2[k][i], s[2], 2e-6) << name;
        }
      }
    }
    for (size_t k = 0; k < t.x.size(); ++k) {
      if (first[k].empty()) continue;
      ASSERT_EQ(std::memcmp(first[k].data(), t.x[k].data(), first[k].size() * 4), 0) << name;
    }
  }
}

TEST(Optim, Sgd) {
  check(
      "sgd",
      [](int) {
        return SgdStep{0.1f, 0.01f, 0.5f};
      },
      [](double& x, double g, double*, int) { x -= 0.1 * (0.5 * g + 0.01 * x); });
}

TEST(Optim, PytorchMomentum) {
  for (bool nesterov : {false, true}) {
    check(
        "momentum",
        [=](int t) {
          MomentumStep s;
          s.lr = 0.1f, s.decay = 0.02f;
          s.keep = t == 1 ? 0.0f : 0.9f, s.take = t == 1 ? 1.0f : 0.75f;
          s.look = nesterov ? 0.9f : 0.0f;
          return s;
        },
        [=](double& x, double g, double* s, int t) {
          g += 0.02 * x;
          s[0] = t == 1 ? g : 0.9 * s[0] + 0.75 * g;
          x -= 0.1 * (nesterov ? g + 0.9 * s[0] : s[0]);
        });
  }
}

TEST(Optim, Adam) {
  for (bool decoupled : {false, true}) {
    for (bool amsgrad : {false, true}) {
      check(
          "adam",
          [=](int t) {
            AdamStep s = adam_step(0.01, 0.9, 0.99, 1e-6, 0.1, decoupled, t);
            s.amsgrad = amsgrad;
            return s;
          },
          [=](double& x, double g, double* s, int t) {
            if (decoupled)
              x *= 1 - 0.01 * 0.1;
            else
              g += 0.1 * x;
            s[0] = 0.9 * s[0] + 0.1 * g;
            s[1] = 0.99 * s[1] + 0.01 * g * g;
            double v = s[1];
            if (amsgrad) v = s[2] = std::max(s[2], s[1]);
            const double c1 = 1 - std::pow(0.9, t), c2 = 1 - std::pow(0.99, t);
            x -= 0.01 / c1 * s[0] / (std::sqrt(v) / std::sqrt(c2) + 1e-6);
          });
    }
  }
}

TEST(Optim, OnnxAdam) {
  check(
      "onnx adam", [](int t) { return onnx_adam_step(0.01, t - 1, 0.9, 0.99, 1e-4, 0.05, 0.02); },
      [](double& x, double g, double* s, int step) {
        const int t = step - 1;
        g += 0.05 * x;
        s[0] = 0.9 * s[0] + 0.1 * g;
        s[1] = 0.99 * s[1] + 0.01 * g * g;
        const double r =
            t > 0 ? 0.01 * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.9, t)) : 0.01;
        x = (1 - 0.02) * (x - r * s[0] / (std::sqrt(s[1]) + 1e-4));
      });
}

TEST(Optim, Adagrad) {
  check(
      "adagrad",
      [](int) {
        return AdagradStep{0.1f, 1e-5f, 0.01f, 1.0f};
      },
      [](double& x, double g, double* s, int) {
        g += 0.01 * x;
        s[0] += g * g;
        x -= 0.1 * g / (std::sqrt(s[0]) + 1e-5);
      });
}

TEST(Optim, Lion) {
  check(
      "lion",
      [](int) {
        return LionStep{0.01, 0.9, 0.99, 0.1, 1.0f};
      },
      [](double& x, double g, double* s, int) {
        const double u = 0.9 * s[0] + 0.1 * g;
        x = x * (1 - 0.01 * 0.1) - 0.01 * ((u > 0) - (u < 0));
        s[0] = 0.99 * s[0] + 0.01 * g;
      });
}

}  // namespace
}  // namespace onnxtrain::simd
