// Columns in memory, in files, and parts of columns.
#include "data/columns/column.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/random.hpp"

namespace onnxtrain {
namespace {

class MemoryColumn final : public Column {
 public:
  explicit MemoryColumn(Tensor t)
      : Column(t.dtype(), Shape(t.shape().begin() + 1, t.shape().end()), t.shape()[0]),
        tensor_(std::move(t)) {}
  const void* row_pointer(int64_t row) const override {
    return static_cast<const char*>(tensor_.data()) + size_t(row) * row_bytes();
  }

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    auto* to = static_cast<char*>(out);
    const size_t bytes = row_bytes();
    if (bytes == 0) return;
    for (int64_t row : rows) {
      std::memcpy(to, row_pointer(row), bytes);
      to += bytes;
    }
  }

 private:
  Tensor tensor_;
};

uint64_t text_identity(const std::string* texts, int64_t n) {
  uint64_t hash = uint64_t(n);
  for (int64_t i = 0; i < n; ++i) hash = hash64(texts[i].data(), texts[i].size(), hash);
  return hash;
}

// A tensor of text.
class TextArrayColumn final : public Column {
 public:
  explicit TextArrayColumn(Tensor t)
      : Column(t.dtype(), Shape(t.shape().begin() + 1, t.shape().end()), t.shape()[0]),
        tensor_(std::move(t)) {}
  uint64_t identity(int64_t row) const override {
    return text_identity(tensor_.as<std::string>() + row * row_elements(), row_elements());
  }

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    auto* to = static_cast<std::string*>(out);
    for (int64_t row : rows)
      to = std::copy_n(tensor_.as<std::string>() + row * row_elements(), row_elements(), to);
  }

 private:
  Tensor tensor_;
};

// Every text is kept once.
class TextColumn final : public Column {
 public:
  TextColumn(std::vector<std::string> values, std::vector<int32_t> codes)
      : Column(DType::kString, {}, int64_t(codes.size())),
        values_(std::move(values)),
        codes_(std::move(codes)) {}
  uint64_t identity(int64_t row) const override {
    return text_identity(&values_[size_t(codes_[size_t(row)])], 1);
  }

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    auto* to = static_cast<std::string*>(out);
    for (int64_t row : rows) *to++ = values_[size_t(codes_[size_t(row)])];
  }

 private:
  std::vector<std::string> values_;
  std::vector<int32_t> codes_;
};

class ReshapedColumn final : public Column {
 public:
  ReshapedColumn(ColumnPtr source, Shape row_shape)
      : Column(source->dtype(), std::move(row_shape), source->rows()), source_(std::move(source)) {
    OT_ASSERT(row_elements() == source_->row_elements());
  }
  const void* row_pointer(int64_t row) const override { return source_->row_pointer(row); }
  int64_t source_row(int64_t row) const override { return source_->source_row(row); }
  bool is_decoded() const override { return source_->is_decoded(); }
  uint64_t identity(int64_t row) const override { return source_->identity(row); }

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    source_->read(rows, out);
  }

 private:
  ColumnPtr source_;
};

class FileColumn final : public Column {
 public:
  FileColumn(std::shared_ptr<const InputFile> file, uint64_t offset, DType dtype, Shape row_shape,
             int64_t rows, bool swap)
      : Column(dtype, std::move(row_shape), rows),
        file_(std::move(file)),
        offset_(offset),
        swap_(swap) {}

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    auto* to = static_cast<char*>(out);
    for (size_t i = 0; i < rows.size();) {
      size_t run = 1;  // neighbours in the file are read together
      while (i + run < rows.size() && rows[i + run] == rows[i] + int64_t(run)) ++run;
      file_->read_at(offset_ + uint64_t(rows[i]) * row_bytes(), to, run * row_bytes());
      to += run * row_bytes();
      i += run;
    }
    if (swap_) swap_bytes(out, dtype_size(dtype()), rows.size() * size_t(row_elements()));
  }

 private:
  std::shared_ptr<const InputFile> file_;
  uint64_t offset_;
  bool swap_;
};

class SubsetColumn final : public Column {
 public:
  SubsetColumn(ColumnPtr source, std::shared_ptr<const std::vector<int64_t>> rows)
      : Column(source->dtype(), source->row_shape(), int64_t(rows->size())),
        source_(std::move(source)),
        rows_(std::move(rows)) {
    for (int64_t row : *rows_) OT_ASSERT(row >= 0 && row < source_->rows());
  }
  const void* row_pointer(int64_t row) const override {
    return source_->row_pointer((*rows_)[size_t(row)]);
  }
  int64_t source_row(int64_t row) const override {
    return source_->source_row((*rows_)[size_t(row)]);
  }
  bool is_decoded() const override { return source_->is_decoded(); }
  uint64_t identity(int64_t row) const override { return source_->identity((*rows_)[size_t(row)]); }

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    constexpr size_t kPiece = 256;
    int64_t mapped[kPiece];
    auto* to = static_cast<char*>(out);
    for (size_t i = 0; i < rows.size(); i += kPiece) {
      const size_t n = std::min(kPiece, rows.size() - i);
      for (size_t j = 0; j < n; ++j) mapped[j] = (*rows_)[size_t(rows[i + j])];
      source_->read({mapped, n}, to + i * row_bytes());
    }
  }

 private:
  ColumnPtr source_;
  std::shared_ptr<const std::vector<int64_t>> rows_;
};

class MatrixColumn final : public Column {
 public:
  MatrixColumn(const Tensor& matrix, int64_t index)
      : Column(matrix.dtype(), {}, matrix.shape()[0]),
        matrix_(matrix),
        index_(index),
        stride_(matrix.shape()[1]) {}
  const void* row_pointer(int64_t row) const override {
    return static_cast<const char*>(matrix_.data()) +
           size_t(row * stride_ + index_) * dtype_size(dtype());
  }

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    auto* to = static_cast<char*>(out);
    for (int64_t row : rows) {
      std::memcpy(to, row_pointer(row), row_bytes());
      to += row_bytes();
    }
  }

 private:
  Tensor matrix_;
  int64_t index_, stride_;
};

std::atomic<size_t> g_eager_limit{0};

}  // namespace

Column::Column(DType dtype, Shape row_shape, int64_t rows)
    : dtype_(dtype),
      row_shape_(std::move(row_shape)),
      rows_(rows),
      row_elements_(num_elements(row_shape_)) {
  OT_ASSERT(rows >= 0 && dtype != DType::kUndefined);
}

void Column::read(std::span<const int64_t> rows, void* out) const {
  for (int64_t row : rows) OT_ASSERT(row >= 0 && row < rows_);
  read_rows(rows, out);
}

ColumnPtr memory_column(Tensor t) {
  if (t.rank() == 0)
    data_error("OT2107", "a single number is not data: an array needs a first dimension of rows",
               "save an array of rows: np.save(path, values.reshape(rows, -1))");
  if (t.dtype() == DType::kString) return std::make_shared<TextArrayColumn>(std::move(t));
  return std::make_shared<MemoryColumn>(std::move(t));
}

ColumnPtr file_column(std::shared_ptr<const InputFile> file, uint64_t offset, DType dtype,
                      Shape row_shape, int64_t rows, bool swap) {
  return std::make_shared<FileColumn>(std::move(file), offset, dtype, std::move(row_shape), rows,
                                      swap);
}

ColumnPtr subset_column(ColumnPtr source, std::shared_ptr<const std::vector<int64_t>> rows) {
  return std::make_shared<SubsetColumn>(std::move(source), std::move(rows));
}

ColumnPtr text_column(std::vector<std::string> values, std::vector<int32_t> codes) {
  return std::make_shared<TextColumn>(std::move(values), std::move(codes));
}

ColumnPtr reshaped_column(ColumnPtr source, Shape row_shape) {
  return std::make_shared<ReshapedColumn>(std::move(source), std::move(row_shape));
}

ColumnPtr matrix_column(const Tensor& matrix, int64_t index) {
  OT_ASSERT(matrix.rank() == 2 && index >= 0 && index < matrix.shape()[1]);
  return std::make_shared<MatrixColumn>(matrix, index);
}

void swap_bytes(void* data, size_t size, size_t count) {
  auto* p = static_cast<char*>(data);
  if (size < 2) return;
  for (size_t i = 0; i < count; ++i, p += size) std::reverse(p, p + size);
}

Tensor read_tensor(const InputFile& file, uint64_t offset, DType dtype, Shape shape, bool swap) {
  Tensor t(dtype, std::move(shape));
  file.read_at(offset, t.data(), t.bytes());
  if (swap) swap_bytes(t.data(), dtype_size(dtype), size_t(t.size()));
  return t;
}

size_t eager_limit() {
  const size_t set = g_eager_limit.load();
  return set != 0 ? set : std::min(size_t(1) << 30, memory_limit() / 4);
}

void set_eager_limit(size_t bytes) { g_eager_limit.store(bytes); }

}  // namespace onnxtrain
