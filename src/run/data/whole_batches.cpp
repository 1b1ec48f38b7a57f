// Filling up and cutting by rows.
#include "run/data/whole_batches.hpp"

#include <cstring>

#include "model/batch.hpp"

namespace onnxtrain::run {

int64_t batch_size_for(const Model& m, int64_t asked) {
  const int64_t fixed = fixed_batch(m.main);
  if (fixed == 0) return asked > 0 ? asked : 32;
  if (asked > 0 && asked != fixed)
    data_error("OT2115",
               cat("the model takes ", fixed, fixed == 1 ? " row" : " rows",
                   " at a time, not a batch of ", asked),
               cat("--batch ", fixed,
                   " (larger steps: --accumulate), or export the model with an open batch size"));
  return fixed;
}

Tensor filled_up(const Tensor& t, int64_t rows) {
  const int64_t have = t.shape()[0];
  Shape shape = t.shape();
  shape[0] = rows;
  Tensor out(t.dtype(), shape);
  if (t.dtype() == DType::kString) {
    const int64_t row = t.size() / have;
    for (int64_t k = 0; k < out.size(); ++k)
      out.as<std::string>()[k] = t.as<std::string>()[k < t.size() ? k : t.size() - row + k % row];
    return out;
  }
  const size_t row = t.bytes() / size_t(have);
  std::memcpy(out.data(), t.data(), t.bytes());
  for (int64_t k = have; k < rows; ++k)
    std::memcpy(static_cast<char*>(out.data()) + size_t(k) * row,
                static_cast<const char*>(t.data()) + size_t(have - 1) * row, row);
  return out;
}

Tensor first_rows(const Tensor& t, int64_t rows) {
  if (t.rank() == 0 || t.shape()[0] <= rows) return t;
  Shape shape = t.shape();
  shape[0] = rows;
  return Tensor(t.dtype(), shape, const_cast<void*>(t.data()), t.owner());
}

}  // namespace onnxtrain::run
