// float32 GEMM: C = epilogue(alpha * op(A) * op(B) + beta * C), row-major, any leading
// dimension. A plan is made once per problem; running it allocates nothing. Results depend on the
// problem and the instruction set only, never on the number of threads.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/threads.hpp"

namespace onnxtrain::simd {

enum class Activation : uint8_t { kNone, kRelu, kGelu, kGeluTanh, kSigmoid, kTanh, kSilu };
enum class BiasAxis : uint8_t { kNone, kColumn, kRow };  // bias[n] or bias[m]

// The problem. op(A) is [m,k], op(B) is [k,n], C is [m,n]; ld = elements between stored rows
// (0: as narrow as the operand allows).
struct GemmDesc {
  int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  float alpha = 1, beta = 0;

  // Epilogue, in this order: + bias, + residual, store pre-activation, activation,
  // * gradient of `grad` at `saved` (the output for relu, sigmoid, tanh; the input for the others).
  BiasAxis bias = BiasAxis::kNone;
  bool residual = false;
  bool store_pre = false;
  Activation act = Activation::kNone;
  Activation grad = Activation::kNone;
  int64_t ld_residual = 0, ld_pre = 0, ld_saved = 0;  // 0: as ldc

  // Many GEMMs of one shape: item i is at offset i*stride, or offsets[i] when given (elements;
  // the arrays must outlive the plan). pre, residual and saved move with C, bias is shared.
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  const int64_t* offsets_a = nullptr;
  const int64_t* offsets_b = nullptr;
  const int64_t* offsets_c = nullptr;

  bool packed_b = false;  // B is what GemmPlan::pack_b wrote (batch must be 1)
};

struct GemmArgs {
  const float* a = nullptr;
  const float* b = nullptr;  // or the packed form
  float* c = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  float* pre = nullptr;
  const float* saved = nullptr;
  void* workspace = nullptr;  // workspace_bytes(), 64-byte aligned
};

struct GemmKernels;

class GemmPlan {
 public:
  GemmPlan() = default;
  static GemmPlan make(const GemmDesc& desc);

  const GemmDesc& desc() const { return d_; }
  size_t workspace_bytes() const { return workspace_; }
  void run(ThreadPool& pool, const GemmArgs& args) const;

  // For operands used several times: bytes of the packed B, and the packing itself.
  size_t packed_b_bytes() const;
  void pack_b(ThreadPool& pool, const float* b, float* packed) const;

 private:
  enum class Path : uint8_t { kEmpty, kFlat, kDots, kTiles, kSplitK };
  struct Block {  // a piece of the GEMM and where it goes
    int64_t m0, m1, n0, n1, k0, k1;
    float* c;  // of element (0,0)
    int64_t ldc;
    bool finish;  // combine with C by beta and run the epilogue
  };
  void normalise();
  void choose_path();
  void choose_blocks(int64_t tasks);
  void choose_split(int64_t tasks, double overhead);
  void run_item(const GemmArgs& g, const float* packed, int64_t block) const;
  void run_flat(const GemmArgs& g, int64_t n0, int64_t n1) const;
  void run_block(const GemmArgs& g, const float* packed, const Block& b) const;
  void run_split(ThreadPool& pool, const GemmArgs& g) const;
  void prefetch_epilogue(const GemmArgs& g, int64_t m0, int64_t m, int64_t n0) const;
  void finish(const GemmArgs& g, int64_t m0, int64_t m, int64_t n0, int64_t n) const;
  GemmArgs item(const GemmArgs& g, int64_t i) const;

  GemmDesc d_;
  const GemmKernels* kernels_ = nullptr;
  Path path_ = Path::kEmpty;
  bool swapped_ = false;      // a column result computed as a row: A and B exchanged
  bool shared_pack_ = false;  // all of B is packed first, by all threads
  bool direct_b_ = false;     // whole panels of B are read in place
  bool pack_a_ = false;
  bool has_epilogue_ = false;
  bool only_bias_ = false;  // the epilogue is a bias per column: the tile kernels add it
  int64_t blocks_m_ = 1, blocks_n_ = 1, block_k_ = 0;
  int64_t items_per_task_ = 1;
  int64_t splits_ = 1, split_k_ = 0;
  size_t workspace_ = 0;
};

// Double precision, for checks: a plain blocked loop. Same meaning of the flags; no epilogue.
void gemm_f64(ThreadPool& pool, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k,
              double alpha, const double* a, int64_t lda, const double* b, int64_t ldb, double beta,
              double* c, int64_t ldc);

}  // namespace onnxtrain::simd
