// Tensors and the other runtime values of ONNX (sequences, optionals, maps, sparse).
#pragma once
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace onnxtrain {

inline constexpr size_t kAlignment = 64;
// Aligned memory with a limit check (docs/safety.md 5); zero bytes give a valid pointer.
std::shared_ptr<void> allocate(size_t bytes);
// Bytes that may be alive at once through allocate(); settable, default 80 % of RAM.
void set_memory_limit(size_t bytes);
size_t memory_limit();
size_t memory_in_use();

// A dense row-major tensor: a handle, copying it shares the memory.
class Tensor {
 public:
  Tensor() = default;
  // Compiled once, in tensor.cpp: nearly every file has them.
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(const Tensor& other);
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();
  Tensor(DType dtype, Shape shape);  // allocated, not initialised (strings: empty)
  // borrowed or shared memory: `owner` keeps it alive (mapped file, protobuf, numpy array)
  Tensor(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t rank() const { return int64_t(shape_.size()); }
  int64_t size() const { return size_; }
  size_t bytes() const { return size_t(size_) * dtype_size(dtype_); }
  void* data() { return data_; }
  const void* data() const { return data_; }
  template <class T>
  T* as() {
    return static_cast<T*>(check(DTypeOf<T>::value));
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(const_cast<Tensor*>(this)->check(DTypeOf<T>::value));
  }
  bool defined() const { return dtype_ != DType::kUndefined; }
  const std::shared_ptr<void>& owner() const { return owner_; }

  Tensor clone() const;                // deep copy
  Tensor reshaped(Shape shape) const;  // same memory
  // Small integer tensors (shapes, axes): int32 or int64 -> int64.
  std::vector<int64_t> to_ints() const;
  std::vector<double> to_doubles() const;  // any numeric type
  template <class T>
  static Tensor scalar(T v) {
    Tensor t(DTypeOf<T>::value, {});
    *t.as<T>() = v;
    return t;
  }
  template <class T>
  static Tensor vector(const std::vector<T>& v) {
    Tensor t(DTypeOf<T>::value, {int64_t(v.size())});
    for (size_t i = 0; i < v.size(); ++i) t.as<T>()[i] = v[i];
    return t;
  }

 private:
  void* check(DType want);
  DType dtype_ = DType::kUndefined;
  Shape shape_;
  int64_t size_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

struct Sequence;
struct MapValue;
struct SparseTensor {
  Tensor values, indices;  // indices: [nnz] linear or [nnz, rank]
  Shape shape;
};

// What flows along an edge at run time. monostate = an empty optional.
using Value = std::variant<std::monostate, Tensor, std::shared_ptr<Sequence>,
                           std::shared_ptr<MapValue>, std::shared_ptr<SparseTensor>>;
struct Sequence {
  DType elem = DType::kUndefined;  // element type of the tensors inside, when known
  std::vector<Value> items;
};
struct MapValue {
  std::variant<std::map<int64_t, Value>, std::map<std::string, Value>> items;
};

}  // namespace onnxtrain
