// GEMMs for kernels that are written once for float and double, and pieces of a
// workspace.
#pragma once
#include <type_traits>

#include "kernels/gemm/gemm.hpp"

namespace onnxtrain::kernels {

// C = A * op(B) (+ C, + bias), through the planned float GEMM or the plain double one.
template <class T>
class TypedGemm {
 public:
  TypedGemm() = default;
  // `alpha` in full precision; the one in the description is float
  explicit TypedGemm(simd::GemmDesc d, double alpha = 1) : d_(d), alpha_(alpha) {
    d.alpha = float(alpha);
    if constexpr (std::is_same_v<T, float>) plan_ = simd::GemmPlan::make(d);
  }
  size_t workspace() const {
    if constexpr (std::is_same_v<T, float>) return plan_.workspace_bytes();
    return 0;
  }
  size_t packed_bytes() const {
    if constexpr (std::is_same_v<T, float>)
      if (d_.packed_b) return plan_.packed_b_bytes();
    return 0;
  }
  // The form of B to pass to run().
  const T* pack(ThreadPool& pool, const T* b, T* to) const {
    if constexpr (std::is_same_v<T, float>)
      if (d_.packed_b) {
        plan_.pack_b(pool, b, to);
        return to;
      }
    return b;
  }
  void run(ThreadPool& pool, const T* a, const T* b, T* c, void* workspace,
           const T* bias = nullptr) const {
    if constexpr (std::is_same_v<T, float>) {
      simd::GemmArgs g;
      g.a = a, g.b = b, g.c = c, g.bias = bias, g.workspace = workspace;
      plan_.run(pool, g);
    } else {
      T beta = T(d_.beta);
      if (bias != nullptr && d_.bias == simd::BiasAxis::kColumn) {
        for (int64_t i = 0; i < d_.m; ++i)
          for (int64_t j = 0; j < d_.n; ++j) c[i * d_.ldc + j] = bias[j];
        beta = 1;
      }
      simd::gemm_f64(pool, d_.trans_a, d_.trans_b, d_.m, d_.n, d_.k, alpha_, a, d_.lda, b, d_.ldb,
                     beta, c, d_.ldc);
    }
  }

 private:
  simd::GemmDesc d_;
  double alpha_ = 1;
  simd::GemmPlan plan_;
};

// Takes pieces of a workspace one after another.
class Carver {
 public:
  explicit Carver(void* base) : at_(static_cast<char*>(base)) {}
  template <class T>
  T* take(int64_t n) {
    auto* p = reinterpret_cast<T*>(at_);
    at_ += bytes(size_t(n) * sizeof(T));
    return p;
  }
  static size_t bytes(size_t n) { return (n + 63) / 64 * 64; }

 private:
  char* at_;
};

}  // namespace onnxtrain::kernels
