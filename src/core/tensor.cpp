// The tensor handle.
#include "core/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/budget.hpp"
#include "core/memory.hpp"
#include "core/text_memory.hpp"

namespace onnxtrain {
namespace {

std::shared_ptr<void> allocate_strings(size_t count) {
  std::shared_ptr<void> memory = allocate(count * sizeof(std::string));
  auto* first = static_cast<std::string*>(memory.get());
  std::uninitialized_default_construct_n(first, count);
  try {
    return std::shared_ptr<void>(
        first, [memory, count](void* p) { std::destroy_n(static_cast<std::string*>(p), count); });
  } catch (const std::bad_alloc&) {
    out_of_memory(count * sizeof(std::string));
  }
}

template <class To, class F>
std::vector<To> convert(const Tensor& t, F&& one) {
  std::vector<To> out(size_t(t.size()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = one(i);
  return out;
}

}  // namespace

Tensor::Tensor(const Tensor& other) = default;
Tensor::Tensor(Tensor&& other) noexcept = default;
Tensor& Tensor::operator=(const Tensor& other) = default;
Tensor& Tensor::operator=(Tensor&& other) noexcept = default;
Tensor::~Tensor() = default;

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  OT_ASSERT(dtype != DType::kUndefined);
  size_ = num_elements(shape_);
  size_t bytes = 0;
  if (__builtin_mul_overflow(size_t(size_), dtype_size(dtype), &bytes))
    model_error("OT1103", cat("a ", dtype_name(dtype), " tensor of shape ", to_string(shape_),
                              " does not fit into memory"));
  owner_ = dtype == DType::kString ? allocate_strings(size_t(size_)) : allocate(bytes);
  data_ = owner_.get();
}

Tensor::Tensor(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner)
    : dtype_(dtype), shape_(std::move(shape)), data_(data), owner_(std::move(owner)) {
  OT_ASSERT(dtype != DType::kUndefined);
  size_ = num_elements(shape_);
}

void* Tensor::check(DType want) {
  if (dtype_ != want)
    model_error("OT1111", cat("expected a ", dtype_name(want), " tensor, found ",
                              dtype_name(dtype_), " of shape ", to_string(shape_)));
  return data_;
}

size_t text_bytes(const Tensor& t) {
  if (t.dtype() != DType::kString) return 0;
  const auto* p = t.as<std::string>();
  size_t bytes = 0;
  for (int64_t i = 0; i < t.size(); ++i) bytes += heap_bytes(p[i].capacity());
  return bytes;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  if (dtype_ == DType::kString) check_memory(text_bytes(*this));
  Tensor out(dtype_, shape_);
  if (dtype_ == DType::kString) {
    std::copy_n(as<std::string>(), size_, out.as<std::string>());
  } else if (size_ > 0) {
    std::memcpy(out.data_, data_, bytes());
  }
  return out;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (num_elements(shape) != size_)
    model_error("OT1106", cat("cannot reshape ", to_string(shape_), " (", size_, " elements) to ",
                              to_string(shape)));
  Tensor out = *this;
  out.shape_ = std::move(shape);
  return out;
}

std::vector<int64_t> Tensor::to_ints() const {
  return dispatch<int64_t, int32_t>(dtype_, "integer tensor", [&]<class T>() {
    const T* p = as<T>();
    return convert<int64_t>(*this, [p](size_t i) { return int64_t(p[i]); });
  });
}

std::vector<double> Tensor::to_doubles() const {
  return dispatch<float, double, int64_t, int32_t, uint8_t, int8_t, uint16_t, int16_t, uint32_t,
                  uint64_t, bool, Half, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2,
                  Float8E5M2FNUZ, Float8E8M0, Float4E2M1, Int4, UInt4, Int2, UInt2>(
      dtype_, "numeric tensor", [&]<class T>() {
        const T* p = as<T>();
        return convert<double>(*this, [p](size_t i) { return double(compute_t<T>(p[i])); });
      });
}

}  // namespace onnxtrain
