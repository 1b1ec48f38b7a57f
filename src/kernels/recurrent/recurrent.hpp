// LSTM, GRU and RNN over whole sequences, and their gradients through time. The GEMMs with the
// inputs run over many steps at once; each step then adds the GEMM with the state and runs the
// cell.
#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include "core/threads.hpp"

namespace onnxtrain::kernels {

enum class Cell : uint8_t { kRnn, kGru, kLstm };
enum class CellFn : uint8_t {
  kSigmoid,
  kTanh,
  kRelu,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus,
  kAffine
};
struct CellActivation {
  CellFn fn = CellFn::kTanh;
  float alpha = 0, beta = 0;
};

struct RecurrentShape {
  Cell cell = Cell::kLstm;
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
  int directions = 1;
  bool reverse = false;      // the first direction runs backwards
  bool batch_first = false;  // layout = 1
  bool linear_before_reset = false, input_forget = false;
  float clip = 0;                                              // 0: none
  std::array<std::array<CellActivation, 3>, 2> activations{};  // by direction: f, g, h

  int64_t gates() const { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }
  int64_t rows() const { return steps * batch; }
  // Elements per row and direction of what a training forward keeps for the backward pass.
  int64_t saved_width() const;
};

template <class T>
struct RecurrentArgs {
  const T *x, *w, *r, *b, *h0, *c0, *p;  // b, h0, c0, p may be null
  const int32_t* lengths;                // null: all steps
  T *y, *yh, *yc, *saved;                // any may be null
};

template <class T>
struct RecurrentGradArgs {
  const T *x, *w, *r, *p, *saved;
  const int32_t* lengths;
  const T *dy, *dyh, *dyc;                // null: zero
  T *dx, *dw, *dr, *db, *dh0, *dc0, *dp;  // null: not wanted
};

template <class T>
class RecurrentPlan {
 public:
  explicit RecurrentPlan(const RecurrentShape& s);
  ~RecurrentPlan();
  // For weights that never change: packs them once. Before workspace().
  void keep_weights(const T* w, const T* r, ThreadPool& pool);
  size_t workspace() const;
  // Lengths are checked by the caller: 0 <= length <= steps.
  void run(const RecurrentArgs<T>& a, void* workspace, ThreadPool& pool);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <class T>
class RecurrentGradPlan {
 public:
  explicit RecurrentGradPlan(const RecurrentShape& s);
  ~RecurrentGradPlan();
  size_t workspace() const;
  void run(const RecurrentGradArgs<T>& a, void* workspace, ThreadPool& pool);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onnxtrain::kernels
