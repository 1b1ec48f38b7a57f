// One named array of a dataset: rows of equal shape and type, in memory, in a file or made from
// another column. Columns are immutable and may be read from several threads.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "core/tensor.hpp"

namespace onnxtrain {

class Column {
 public:
  Column(DType dtype, Shape row_shape, int64_t rows);
  virtual ~Column() = default;
  DType dtype() const { return dtype_; }
  const Shape& row_shape() const { return row_shape_; }
  int64_t rows() const { return rows_; }
  int64_t row_elements() const { return row_elements_; }
  size_t row_bytes() const { return size_t(row_elements_) * dtype_size(dtype_); }

  // Copies the rows one after the other to `out` (rows.size() * row_bytes() bytes); of a column of
  // text, `out` points at std::string.
  void read(std::span<const int64_t> rows, void* out) const;
  // The row's memory when it lies in memory as it is, else nullptr.
  virtual const void* row_pointer(int64_t) const { return nullptr; }
  // Row `row` of this column in the file's own counting, for messages.
  virtual int64_t source_row(int64_t row) const { return row; }
  // A row is a file of its own that has to be decoded; then identity() tells rows apart without.
  // It does so for text, too.
  virtual bool is_decoded() const { return false; }
  virtual uint64_t identity(int64_t /*row*/) const { return 0; }
  // The column of the same rows and elements that this one converts to another type; null: none.
  virtual const Column* converted() const { return nullptr; }

 protected:
  virtual void read_rows(std::span<const int64_t> rows, void* out) const = 0;

 private:
  DType dtype_;
  Shape row_shape_;
  int64_t rows_, row_elements_;
};

using ColumnPtr = std::shared_ptr<const Column>;

// A tensor whose first dimension counts the rows.
ColumnPtr memory_column(Tensor t);
// Rows that lie one after the other in a file from `offset`; read on demand. `swap_bytes`: the
// file has the other byte order.
ColumnPtr file_column(std::shared_ptr<const InputFile> file, uint64_t offset, DType dtype,
                      Shape row_shape, int64_t rows, bool swap_bytes);
// The given rows of another column, in that order.
ColumnPtr subset_column(ColumnPtr source, std::shared_ptr<const std::vector<int64_t>> rows);
// Text, one per row: row r is values[codes[r]].
ColumnPtr text_column(std::vector<std::string> values, std::vector<int32_t> codes);
// The same rows in another shape with as many elements.
ColumnPtr reshaped_column(ColumnPtr source, Shape row_shape);
// Column `index` of a matrix [rows, n] as scalars.
ColumnPtr matrix_column(const Tensor& matrix, int64_t index);

// Reverses the bytes of `count` elements of `size` bytes.
void swap_bytes(void* data, size_t size, size_t count);

// Memory for `bytes` read from `offset`, counted against the memory limit before it is taken.
Tensor read_tensor(const InputFile& file, uint64_t offset, DType dtype, Shape shape, bool swap);

// Arrays up to this size are read into memory when a file is opened, larger ones on demand.
size_t eager_limit();
void set_eager_limit(size_t bytes);  // for tests; 0 = the default

}  // namespace onnxtrain
