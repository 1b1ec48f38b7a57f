// Updates of a table of which a step reads few rows (an embedding): the gradient is kept as one row
// per index, and rows that no index names are not touched. The bits are those of the update by the
// whole gradient. Made by the pass row_updates; never written to files.
//
//   RowSums <size> (dY, indices) => (S, rows)      S[i]: all of dY that belongs to the row of index
//                                                  i, if i is its first; rows[i]: that row, or -1
//   SgdRows (R, X, S, rows) => (X1)
//   AdagradRows (R, T, X, S, H, rows) => (X1, H1)  attributes of the standard's Adagrad
#include <cstring>

#include "kernels/optim/optim.hpp"
#include "ops/common/indices.hpp"
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

constexpr int64_t kStrip = 64;  // columns a task owns

void sums_shape(ShapeCtx& c) {
  require_index_type(c.dtype(1), "RowSums");
  c.set(0, c.dtype(0), c.shape(0));
  c.set(1, DType::kInt64, {num_elements(c.shape(1))});
}

// rows[i] and, in `first`, the index at which the row of index i comes for the first time.
void find_rows(const IndexReader& ix, int64_t n, int64_t size, int32_t* table, int32_t* first,
               int64_t* rows) {
  check_indices(ix, n, size, "Gather");
  std::fill(table, table + size, -1);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = ix.at(i, size);
    if (table[row] < 0) table[row] = int32_t(i);
    first[i] = table[row];
    rows[i] = first[i] == i ? row : -1;
  }
}

Kernel make_sums(Prepare& p) {
  const int64_t n = p.in(1).size(), size = p.node().i("size", 0);
  const int64_t block = n ? p.in(0).size() / n : 0;
  const DType index_type = p.in(1).dtype;
  p.workspace = size_t(size + n) * sizeof(int32_t);
  return [=](const Run& r) {
    auto* table = static_cast<int32_t*>(r.workspace);
    int32_t* first = table + size;
    find_rows(IndexReader(r.inputs[1], index_type), n, size, table, first, r.out<int64_t>(1));
    const auto* dy = r.in<float>(0);
    auto* sums = r.out<float>(0);
    parallel_for(*r.pool, (block + kStrip - 1) / kStrip, 1, [&](int64_t b, int64_t e) {
      const int64_t c0 = b * kStrip, c1 = std::min(block, e * kStrip);
      for (int64_t i = 0; i < n; ++i) {
        const float* from = dy + i * block;
        float *own = sums + i * block, *to = sums + first[i] * block;
        if (first[i] == i) {
          for (int64_t c = c0; c < c1; ++c) own[c] = 0.0f + from[c];  // as zeros and a sum have it
        } else {
          for (int64_t c = c0; c < c1; ++c) to[c] += from[c];
          std::fill(own + c0, own + c1, 0.0f);
        }
      }
    });
  };
}

// step(tensor) for every row that is named; `tensor` has the row's weights, gradient and state.
template <class F>
void each_row(const Run& r, int64_t n, int64_t block, const int64_t* rows, simd::OptimTensor all,
              F&& step) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, block));
  parallel_for(*r.pool, n, grain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      if (rows[i] < 0) continue;
      simd::OptimTensor t = all;
      t.x += rows[i] * block;
      t.g += i * block;
      if (t.state[0]) t.state[0] += rows[i] * block;
      t.n = block;
      step(t);
    }
  });
}

// A result that could not take its operand's memory begins as a copy of it.
void begin_as(const Run& r, int input, int output, int64_t size) {
  if (r.inputs[input] != r.outputs[output] && size > 0)
    std::memcpy(r.outputs[output], r.inputs[input], size_t(size) * sizeof(float));
}

void sgd_shape(ShapeCtx& c) { c.set(0, c.dtype(1), c.shape(1)); }

Kernel make_sgd(Prepare& p) {
  const int64_t size = p.in(1).size(), n = p.in(3).size(), block = n ? p.in(2).size() / n : 0;
  const DType lr_type = p.in(0).dtype;
  return [=](const Run& r) {
    begin_as(r, 1, 0, size);
    const simd::SgdStep step{.lr = float(read_scalar(r.inputs[0], lr_type))};
    each_row(r, n, block, r.in<int64_t>(3), {.x = r.out<float>(0), .g = r.in<float>(2)},
             [&](const simd::OptimTensor& t) { simd::update(t, step); });
  };
}

void adagrad_shape(ShapeCtx& c) {
  c.set(0, c.dtype(2), c.shape(2));
  c.set(1, c.dtype(4), c.shape(4));
}

Kernel make_adagrad(Prepare& p) {
  const int64_t size = p.in(2).size(), n = p.in(5).size(), block = n ? p.in(3).size() / n : 0;
  const LearningRateAndStep scalars(p);
  const double decay_factor = double(p.node().f("decay_factor", 0));
  const float epsilon = p.node().f("epsilon", 1e-6f);
  return [=](const Run& r) {
    begin_as(r, 2, 0, size);
    begin_as(r, 4, 1, size);
    const simd::AdagradStep step{.lr = float(scalars.lr(r) / (1 + scalars.step(r) * decay_factor)),
                                 .epsilon = epsilon};
    each_row(r, n, block, r.in<int64_t>(5),
             {.x = r.out<float>(0), .g = r.in<float>(3), .state = {r.out<float>(1)}},
             [&](const simd::OptimTensor& t) { simd::update(t, step); });
  };
}

std::string only_float(const Prepare& p) {
  return p.out(0).dtype == DType::kFloat ? "" : "only for float";
}

}  // namespace

void register_row_updates(OpTable& t) {
  constexpr const char* kWhy = "an optimizer's update is not differentiated";
  t.add({.name = "RowSums",
         .domain = std::string(kOwnDomain),
         .shape = sums_shape,
         .impls = {{"ref", only_float, make_sums}},
         .no_grad = kWhy});
  t.add({.name = "SgdRows",
         .domain = std::string(kOwnDomain),
         .shape = sgd_shape,
         .impls = {{"simd", only_float, make_sgd}},
         .no_grad = kWhy,
         .in_place = {{1, 0}}});
  t.add({.name = "AdagradRows",
         .domain = std::string(kOwnDomain),
         .shape = adagrad_shape,
         .impls = {{"simd", only_float, make_adagrad}},
         .no_grad = kWhy,
         .in_place = {{2, 0}, {4, 1}}});
}

}  // namespace onnxtrain::ops
