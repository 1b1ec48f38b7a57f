// Normalisation of rows (LayerNormalization, RMSNormalization, GroupNormalization,
// InstanceNormalization): the data is [rows][n]; scale and bias are found by two offsets, one of
// the row and one of the segment inside the row.
#pragma once
#include "core/counted.hpp"
#include "op/grad_builder.hpp"
#include "ops/common/rows_shape.hpp"
#include "ops/norm/channel_loops.hpp"

namespace onnxtrain::ops {

// Where element k of row r finds its parameter: row(r) + segment[k / length] + (step ? k % length :
// 0).
struct ParameterMap {
  int64_t mod = 1, mul = 0;      // row(r) = r % mod * mul
  CountedVector<int64_t> table;  // instead of that when not empty
  CountedVector<int64_t> segment{0};
  int64_t length = 1, step = 0;
  int64_t row(int64_t r) const { return table.empty() ? r % mod * mul : table[size_t(r)]; }
  // one parameter per element, the same for all rows
  bool columns() const { return step == 1 && segment.size() == 1 && table.empty() && mul == 0; }
};

struct RowNorm {
  int64_t rows = 1, n = 1;
  bool centred = true;  // false: root mean square
  float epsilon = 1e-5f;
  ParameterMap scale, bias;
  int64_t scale_size = 1, bias_size = 1;
};

// The operator's geometry from its node and the shapes of data, scale and bias (bias may be null);
// checks everything. `kind` is the ONNX operator.
RowNorm row_norm(std::string_view kind, const Node& n, int version, const Shape& x,
                 const Shape& scale, const Shape* bias);
// Shape of the statistics: x with the normalised dimensions as 1.
Shape row_statistics_shape(const Node& n, const Shape& x);

// Kernel of y (and Mean, InvStdDev if wanted) from x, scale, bias?
Kernel make_row_norm(Prepare& p, RowNorm norm);
// Kernel of dx, dscale, dbias from dy, x, scale, d mean?, d invstd?
Kernel make_row_norm_grad(Prepare& p, RowNorm norm);

}  // namespace onnxtrain::ops
