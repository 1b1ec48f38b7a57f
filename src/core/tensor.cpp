// Counted, aligned memory and the tensor handle.
#include "core/tensor.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>

namespace onnxtrain {
namespace {

std::atomic<size_t> g_in_use{0};
std::atomic<size_t> g_limit{0};  // 0: not asked for yet

size_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t bytes =
      pages > 0 && page > 0 ? size_t(pages) * size_t(page) : std::numeric_limits<size_t>::max();
  std::ifstream cgroup("/sys/fs/cgroup/memory.max");  // a container may have less
  size_t limit = 0;
  if (cgroup >> limit && limit > 0 && limit < bytes) bytes = limit;
  return bytes;
}

// ONNXTRAIN_MEMORY_LIMIT: bytes, or a number with K, M, G or T.
size_t limit_from_environment() {
  const char* text = std::getenv("ONNXTRAIN_MEMORY_LIMIT");
  if (text == nullptr || *text == 0) return 0;
  char* end = nullptr;
  const double v = std::strtod(text, &end);
  double unit = 1;
  switch (*end) {
    case 'T':
    case 't':
      unit *= 1024;
      [[fallthrough]];
    case 'G':
    case 'g':
      unit *= 1024;
      [[fallthrough]];
    case 'M':
    case 'm':
      unit *= 1024;
      [[fallthrough]];
    case 'K':
    case 'k':
      unit *= 1024;
      ++end;
      break;
    default:
      break;
  }
  if (end == text || *end != 0 || !(v * unit >= 1) || !(v * unit < 1e18))
    usage_error("OT0009", cat("ONNXTRAIN_MEMORY_LIMIT='", text, "' is not a number of bytes"),
                "for example ONNXTRAIN_MEMORY_LIMIT=8G");
  return size_t(v * unit);
}

[[noreturn]] void too_much(size_t bytes, size_t in_use) {
  model_error("OT1401",
              cat("not enough memory: ", bytes, " bytes more are needed, ", in_use,
                  " are in use and the limit is ", memory_limit()),
              "use a smaller batch (--batch), or raise the limit: ONNXTRAIN_MEMORY_LIMIT=8G");
}

void reserve(size_t bytes) {
  const size_t limit = memory_limit();
  size_t now = g_in_use.load(std::memory_order_relaxed);
  do {
    if (bytes > limit || now > limit - bytes) too_much(bytes, now);
  } while (!g_in_use.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
}

void release(size_t bytes) { g_in_use.fetch_sub(bytes, std::memory_order_relaxed); }

std::shared_ptr<void> allocate_strings(size_t count) {
  std::shared_ptr<void> memory = allocate(count * sizeof(std::string));
  auto* first = static_cast<std::string*>(memory.get());
  std::uninitialized_default_construct_n(first, count);
  try {
    return std::shared_ptr<void>(
        first, [memory, count](void* p) { std::destroy_n(static_cast<std::string*>(p), count); });
  } catch (const std::bad_alloc&) {
    too_much(count * sizeof(std::string), memory_in_use());
  }
}

template <class To, class F>
std::vector<To> convert(const Tensor& t, F&& one) {
  std::vector<To> out(size_t(t.size()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = one(i);
  return out;
}

}  // namespace

std::shared_ptr<void> allocate(size_t bytes) {
  const size_t wanted = bytes == 0 ? 1 : bytes;
  if (wanted > std::numeric_limits<size_t>::max() - kAlignment) too_much(bytes, memory_in_use());
  const size_t rounded = (wanted + kAlignment - 1) / kAlignment * kAlignment;
  reserve(rounded);
  void* p = std::aligned_alloc(kAlignment, rounded);
  if (p == nullptr) {
    release(rounded);
    too_much(bytes, memory_in_use());
  }
  try {
    return std::shared_ptr<void>(p, [rounded](void* q) {
      std::free(q);
      release(rounded);
    });
  } catch (const std::bad_alloc&) {  // the deleter has run
    too_much(bytes, memory_in_use());
  }
}

void set_memory_limit(size_t bytes) { g_limit.store(bytes == 0 ? 1 : bytes); }

size_t memory_limit() {
  size_t limit = g_limit.load(std::memory_order_relaxed);
  if (limit != 0) return limit;
  size_t fresh = limit_from_environment();
  if (fresh == 0) fresh = physical_memory() / 5 * 4;
  // someone else may have set it meanwhile: theirs stays
  return g_limit.compare_exchange_strong(limit, fresh) ? fresh : limit;
}

size_t memory_in_use() { return g_in_use.load(std::memory_order_relaxed); }

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

Tensor Tensor::clone() const {
  if (!defined()) return {};
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
