// numpy's .npy and .npz files. Object arrays (pickles) are refused, never loaded.
#pragma once
#include "data/columns/dataset.hpp"

namespace onnxtrain {

struct NpyHeader {
  DType dtype = DType::kUndefined;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
  size_t data_offset = 0;  // where the elements begin
  uint64_t data_bytes = 0;
};

// Header of an npy file from its first bytes; `where` names the file in messages.
NpyHeader parse_npy_header(std::string_view bytes, const std::string& where);
inline constexpr size_t kNpyHeaderMost = 65536;  // bytes to hand to parse_npy_header

ColumnPtr open_npy(const std::string& path);
// The arrays of the archive that belong to the wanted part; `.npy` is cut from their names. Single
// numbers are left out.
Dataset open_npz(const std::string& path, DataPart part);

}  // namespace onnxtrain
