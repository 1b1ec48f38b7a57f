// Moving elements between two strided views of memory: the one loop behind Transpose, Slice,
// Concat, Split, Expand, Tile and their gradients. Elements are moved by size, not by type.
#pragma once
#include <string>

#include "core/dtype.hpp"
#include "core/shape.hpp"
#include "core/threads.hpp"

namespace onnxtrain::ops {

struct Bytes16 {
  uint64_t a, b;
};

// Calls f.template operator()<T>() with a type of the element's size (std::string for strings).
template <class F>
decltype(auto) dispatch_size(DType t, F&& f) {
  if (t == DType::kString) return f.template operator()<std::string>();
  switch (dtype_size(t)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    case 16:
      return f.template operator()<Bytes16>();
    default:
      unsupported_dtype(t, "data movement");
  }
}

class StridedCopy {
 public:
  // dims in the order of the destination (outermost first); strides and offsets in elements.
  // Source strides may be 0 or negative. Offsets are those of element (0, 0, ...).
  StridedCopy(DType dtype, const Shape& dims, const Shape& src, const Shape& dst,
              int64_t src_offset = 0, int64_t dst_offset = 0);
  void run(ThreadPool& pool, const void* src, void* dst) const;

 private:
  enum class Kind { kRows, kFill, kTile, kStrided };
  template <class T>
  void run_rows(ThreadPool& pool, const T* src, T* dst) const;
  template <class T>
  void run_tiles(ThreadPool& pool, const T* src, T* dst) const;
  void choose_tile(size_t with);

  DType dtype_;
  Kind kind_ = Kind::kRows;
  Shape dims_, src_, dst_;  // outer dimensions, merged
  int64_t inner_ = 1, inner_src_ = 1, inner_dst_ = 1;
  // kTile: the dimension along which the source is contiguous
  int64_t wide_ = 1, wide_dst_ = 1;
  int64_t outer_ = 1, src_offset_, dst_offset_;
};

}  // namespace onnxtrain::ops
