// Conversion of one row between element types, with checks.
#pragma once
#include <optional>

#include "core/dtype.hpp"

namespace onnxtrain {

struct RowConversion {
  DType from = DType::kUndefined, to = DType::kUndefined;
  bool scaled = false;
  float divide = 1, mean = 0, std = 1;  // (v / divide - mean) / std
  bool missing = false;                 // NaN stays: the model fills it in
  int64_t offset = 0;                   // added to integers
  std::optional<int64_t> keep;          // but not to this value
  float bytes_to_float[256] = {};       // filled by prepare() for uint8 -> float
  void prepare();
};

bool convertible(DType t);
// Converts n elements. Returns -1, or the first element that is not finite or does not fit the
// type.
int64_t convert_row(const RowConversion& c, const void* from, void* to, int64_t n);

}  // namespace onnxtrain
