// The recurrent kernels in float against the same in double, over cells, sizes, directions, layouts
// and lengths; the same bits for every number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/common/phases.hpp"
#include "kernels/recurrent/recurrent.hpp"

namespace onnxtrain::kernels {
namespace {

template <class T>
std::vector<T> numbers(int64_t n, int seed, double scale) {
  std::vector<T> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = T(float(std::sin(double(i) * 1.7 + double(seed) * 13) * scale));
  return v;
}

RecurrentShape shape(Cell cell, int64_t steps, int64_t batch, int64_t inputs, int64_t hidden) {
  RecurrentShape s;
  s.cell = cell;
  s.steps = steps, s.batch = batch, s.inputs = inputs, s.hidden = hidden;
  for (auto& a : s.activations)
    a = {CellActivation{cell == Cell::kRnn ? CellFn::kTanh : CellFn::kSigmoid},
         {CellFn::kTanh},
         {CellFn::kTanh}};
  return s;
}

template <class T>
using Results = std::vector<std::vector<T>>;

// Forward and backward with everything wanted.
template <class T>
Results<T> both(const RecurrentShape& s, bool lengths, int threads, bool keep = false) {
  int64_t g = s.gates(), h = s.hidden, d = s.directions, state = d * s.batch * h;
  double small = 1 / std::sqrt(double(h));
  auto x = numbers<T>(s.rows() * s.inputs, 1, 1), w = numbers<T>(d * g * h * s.inputs, 2, 0.5),
       r = numbers<T>(d * g * h * h, 3, small), b = numbers<T>(d * 2 * g * h, 4, 0.3),
       h0 = numbers<T>(state, 5, 1), c0 = numbers<T>(state, 6, 1),
       dy = numbers<T>(d * s.rows() * h, 7, 1), dyh = numbers<T>(state, 8, 1),
       dyc = numbers<T>(state, 9, 1);
  std::vector<int32_t> lens(static_cast<size_t>(s.batch));
  for (size_t i = 0; i < lens.size(); ++i) lens[i] = int32_t(int64_t(i * 5 + 2) % (s.steps + 1));
  Results<T> out;
  auto make = [&](int64_t n) { return std::vector<T>(static_cast<size_t>(n), T(-7)); };
  out = {make(d * s.rows() * h),
         make(state),
         make(state),
         make(d * s.rows() * s.saved_width()),
         make(s.rows() * s.inputs),
         make(d * g * h * s.inputs),
         make(d * g * h * h),
         make(d * 2 * g * h),
         make(state),
         make(state)};
  ThreadPool pool(threads);
  bool lstm = s.cell == Cell::kLstm;
  RecurrentPlan<T> forward(s);
  if (keep) forward.keep_weights(w.data(), r.data(), pool);
  std::vector<double> space(forward.workspace() / 8 + 8);
  auto aligned = [](std::vector<double>& v) {
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(v.data()) + 63) / 64 * 64);
  };
  const int32_t* lengths_at = lengths ? lens.data() : nullptr;
  forward.run(
      {x.data(), w.data(), r.data(), b.data(), h0.data(), lstm ? c0.data() : nullptr, nullptr,
       lengths_at, out[0].data(), out[1].data(), lstm ? out[2].data() : nullptr, out[3].data()},
      aligned(space), pool);
  RecurrentGradPlan<T> backward(s);
  space.assign(backward.workspace() / 8 + 8, 0);
  backward.run(
      {x.data(), w.data(), r.data(), nullptr, out[3].data(), lengths_at, dy.data(), dyh.data(),
       lstm ? dyc.data() : nullptr, out[4].data(), out[5].data(), out[6].data(), out[7].data(),
       out[8].data(), lstm ? out[9].data() : nullptr, nullptr},
      aligned(space), pool);
  return out;
}

void compare(const RecurrentShape& s, bool lengths, const char* name) {
  SCOPED_TRACE(testing::Message() << name << ", " << s.steps << " steps, batch " << s.batch
                                  << ", hidden " << s.hidden << ", " << s.directions
                                  << " directions, batch first " << s.batch_first << ", lengths "
                                  << lengths);
  Results<float> f = both<float>(s, lengths, 1);
  Results<double> want = both<double>(s, lengths, 1);
  for (size_t k = 0; k < f.size(); ++k) {
    double worst = 0, size = 1;
    for (size_t i = 0; i < f[k].size(); ++i) {
      worst = std::max(worst, std::fabs(double(f[k][i]) - want[k][i]));
      size = std::max(size, std::fabs(want[k][i]));
    }
    EXPECT_LT(worst, 2e-5 * size) << "result " << k;
  }
  for (int threads : {2, 4}) EXPECT_EQ(both<float>(s, lengths, threads), f) << threads;
  EXPECT_EQ(both<float>(s, lengths, 2, true), f) << "weights packed beforehand";
}

TEST(RecurrentKernels, FloatAgainstDouble) {
  struct Size {
    int64_t steps, batch, inputs, hidden;
  };
  const Size sizes[] = {{5, 1, 3, 37}, {4, 2, 9, 24}, {3, 3, 2, 50}, {4, 7, 5, 16}, {2, 61, 3, 9}};
  for (const Size& z : sizes) {
    for (Cell cell : {Cell::kLstm, Cell::kGru, Cell::kRnn}) {
      RecurrentShape s = shape(cell, z.steps, z.batch, z.inputs, z.hidden);
      compare(s, false, "forward");
      s.linear_before_reset = true;
      s.batch_first = true;
      s.directions = 2;
      compare(s, true, "both ways");
      s.linear_before_reset = false;
      s.directions = 1;
      s.reverse = true;
      compare(s, true, "reverse");
    }
  }
}

TEST(RecurrentKernels, ManySteps) {
  // several stretches of steps, several blocks of k, several tasks
  for (Cell cell : {Cell::kLstm, Cell::kGru, Cell::kRnn}) {
    RecurrentShape s = shape(cell, 77, 16, 4, 33);
    s.directions = 2;
    compare(s, true, "long");
    compare(shape(cell, 3, 5, 4, 400), false, "wide");
  }
}

TEST(Phases, InOrder) {
  for (int threads : {1, 2, 4})
    for (int64_t chains : {1, 2, 3, 7}) {
      ThreadPool pool(threads);
      constexpr int64_t kTasks = 5, kPhases = 300;
      Phases phases;
      // chain c: [2][tasks]
      std::vector<int64_t> state(size_t(chains * 2 * kTasks), 1);
      auto work = [&](std::vector<int64_t>& s, int64_t p, int64_t c, int64_t t) {
        int64_t* own = s.data() + c * 2 * kTasks;
        int64_t sum = t + c;  // every task reads what all tasks of the phase before wrote
        for (int64_t k = 0; k < kTasks; ++k) sum += own[p % 2 * kTasks + k];
        own[(p + 1) % 2 * kTasks + t] = sum % 1000003;
      };
      for (int round = 0; round < 3; ++round)
        phases.run(pool, kPhases, chains, kTasks,
                   [&](int64_t p, int64_t c, int64_t t) { work(state, p, c, t); });
      std::vector<int64_t> want(state.size(), 1);
      for (int64_t p = 0; p < 3 * kPhases; ++p)
        for (int64_t c = 0; c < chains; ++c)
          for (int64_t t = 0; t < kTasks; ++t) work(want, p, c, t);
      EXPECT_EQ(state, want) << threads << " threads, " << chains << " chains";
    }
}

}  // namespace
}  // namespace onnxtrain::kernels
