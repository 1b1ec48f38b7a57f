// The strided copy: dimensions are merged, then rows are copied, filled, transposed by tiles that
// fit a cache line in both directions, or moved one by one.
#include "ops/common/strided_copy_kernel.hpp"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>

namespace onnxtrain::ops {

namespace {

constexpr size_t kMaxRank = 64;
constexpr int64_t kTask = 32 * 1024;  // elements per task
constexpr int64_t kTileSide = 16;

// Walks over the outer dimensions and keeps both offsets.
struct Walk {
  Walk(const Shape& dims, const Shape& src, const Shape& dst, int64_t at)
      : dims(dims), src(src), dst(dst) {
    for (size_t d = dims.size(); d-- > 0;) {
      index[d] = at % dims[d];
      at /= dims[d];
      s += index[d] * src[d];
      t += index[d] * dst[d];
    }
  }
  void next() {
    for (size_t d = dims.size(); d-- > 0;) {
      s += src[d];
      t += dst[d];
      if (++index[d] < dims[d]) return;
      s -= src[d] * dims[d];
      t -= dst[d] * dims[d];
      index[d] = 0;
    }
  }
  const Shape &dims, &src, &dst;
  std::array<int64_t, kMaxRank> index;
  int64_t s = 0, t = 0;
};

// dst[m * ld + n] = src[n * ls + m] for m < rows, n < cols
template <class T>
void transpose_block(const T* src, int64_t ls, T* dst, int64_t ld, int64_t rows, int64_t cols) {
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < cols; ++n) dst[m * ld + n] = src[n * ls + m];
}

#if defined(__SSE__)
void transpose_block(const uint32_t* src, int64_t ls, uint32_t* dst, int64_t ld, int64_t rows,
                     int64_t cols) {
  const float* s = reinterpret_cast<const float*>(src);
  float* d = reinterpret_cast<float*>(dst);
  int64_t n = 0;
  for (; n + 4 <= cols; n += 4) {
    int64_t m = 0;
    for (; m + 4 <= rows; m += 4) {
      const float* p = s + n * ls + m;
      __m128 a = _mm_loadu_ps(p), b = _mm_loadu_ps(p + ls), c = _mm_loadu_ps(p + 2 * ls),
             e = _mm_loadu_ps(p + 3 * ls);
      _MM_TRANSPOSE4_PS(a, b, c, e);
      float* q = d + m * ld + n;
      _mm_storeu_ps(q, a);
      _mm_storeu_ps(q + ld, b);
      _mm_storeu_ps(q + 2 * ld, c);
      _mm_storeu_ps(q + 3 * ld, e);
    }
    for (; m < rows; ++m)
      for (int64_t k = n; k < n + 4; ++k) dst[m * ld + k] = src[k * ls + m];
  }
  for (; n < cols; ++n)
    for (int64_t m = 0; m < rows; ++m) dst[m * ld + n] = src[n * ls + m];
}
#endif

}  // namespace

StridedCopy::StridedCopy(DType dtype, const Shape& dims, const Shape& src, const Shape& dst,
                         int64_t src_offset, int64_t dst_offset)
    : dtype_(dtype), src_offset_(src_offset), dst_offset_(dst_offset) {
  if (num_elements(dims) == 0) {
    outer_ = 0;
    return;
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    if (!dims_.empty() && src_.back() == src[d] * dims[d] && dst_.back() == dst[d] * dims[d]) {
      dims_.back() *= dims[d];
      src_.back() = src[d];
      dst_.back() = dst[d];
    } else {
      dims_.push_back(dims[d]);
      src_.push_back(src[d]);
      dst_.push_back(dst[d]);
    }
  }
  if (dims_.size() > kMaxRank)
    model_error("OT1112", cat("a tensor of rank ", dims_.size(), " is more than ", kMaxRank));
  if (!dims_.empty()) {
    inner_ = dims_.back();
    inner_src_ = src_.back();
    inner_dst_ = dst_.back();
    dims_.pop_back();
    src_.pop_back();
    dst_.pop_back();
  }
  if (inner_dst_ == 1 && inner_src_ == 1) {
    kind_ = Kind::kRows;
  } else if (inner_dst_ == 1 && inner_src_ == 0) {
    kind_ = Kind::kFill;
  } else {
    kind_ = Kind::kStrided;
    for (size_t d = dims_.size(); d-- > 0;)
      if (inner_dst_ == 1 && src_[d] == 1 && dims_[d] > 1) {
        choose_tile(d);
        break;
      }
  }
  for (int64_t d : dims_) outer_ *= d;
}

void StridedCopy::choose_tile(size_t with) {
  kind_ = Kind::kTile;
  wide_ = dims_[with];
  wide_dst_ = dst_[with];
  auto drop = [&](Shape& s) { s.erase(s.begin() + int64_t(with)); };
  drop(dims_);
  drop(src_);
  drop(dst_);
}

template <class T>
void StridedCopy::run_rows(ThreadPool& pool, const T* src, T* dst) const {
  // tasks are ranges of elements, so one long row is shared too
  parallel_for(pool, outer_ * inner_, kTask, [&](int64_t begin, int64_t end) {
    Walk w(dims_, src_, dst_, begin / inner_);
    int64_t col = begin % inner_;
    for (int64_t at = begin; at < end;) {
      int64_t n = std::min(inner_ - col, end - at);
      const T* s = src + w.s + col * inner_src_;
      T* d = dst + w.t + col * inner_dst_;
      if (kind_ == Kind::kRows) {
        if constexpr (std::is_trivially_copyable_v<T>)
          std::memcpy(d, s, size_t(n) * sizeof(T));
        else
          std::copy_n(s, n, d);
      } else if (kind_ == Kind::kFill) {
        std::fill_n(d, n, *s);
      } else {
        for (int64_t i = 0; i < n; ++i) d[i * inner_dst_] = s[i * inner_src_];
      }
      at += n;
      col = 0;
      w.next();
    }
  });
}

template <class T>
void StridedCopy::run_tiles(ThreadPool& pool, const T* src, T* dst) const {
  // one item: kTileSide rows of the destination, over the whole inner dimension
  int64_t strips = (wide_ + kTileSide - 1) / kTileSide;
  int64_t grain = std::max<int64_t>(1, kTask / (kTileSide * inner_));
  parallel_for(pool, outer_ * strips, grain, [&](int64_t begin, int64_t end) {
    Walk w(dims_, src_, dst_, begin / strips);
    int64_t strip = begin % strips;
    for (int64_t at = begin; at < end; ++at) {
      int64_t m = strip * kTileSide, rows = std::min(kTileSide, wide_ - m);
      const T* s = src + w.s + m;
      T* d = dst + w.t + m * wide_dst_;
      for (int64_t n = 0; n < inner_; n += kTileSide)
        transpose_block(s + n * inner_src_, inner_src_, d + n, wide_dst_, rows,
                        std::min(kTileSide, inner_ - n));
      if (++strip == strips) {
        strip = 0;
        w.next();
      }
    }
  });
}

void StridedCopy::run(ThreadPool& pool, const void* src, void* dst) const {
  if (outer_ == 0) return;
  dispatch_size(dtype_, [&]<class T>() {
    const T* s = static_cast<const T*>(src) + src_offset_;
    T* d = static_cast<T*>(dst) + dst_offset_;
    if (kind_ == Kind::kTile)
      run_tiles<T>(pool, s, d);
    else
      run_rows<T>(pool, s, d);
  });
}

}  // namespace onnxtrain::ops
