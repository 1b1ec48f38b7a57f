// The table of state variables.
#include "runtime/state.hpp"

#include <cstring>

#include "core/memory.hpp"
#include "runtime/copy.hpp"

namespace onnxtrain {

namespace {

Tensor lasting_copy(const Tensor& value) {
  if (!value.defined() || value.dtype() == DType::kString) return value.clone();
  const bool zero = are_zero_pages(value.owner());
  std::shared_ptr<void> p = allocate_lasting(value.bytes(), zero);
  if (!zero && value.bytes() > 0) {
    populate(p.get(), value.bytes());
    std::memcpy(p.get(), value.data(), value.bytes());
  }
  return Tensor(value.dtype(), value.shape(), p.get(), p);
}

}  // namespace

const Tensor& State::get(const std::string& name) const {
  auto it = variables_.find(name);
  if (it == variables_.end())
    throw Error(ErrorKind::kUsage, "OT1122", cat("there is no state variable named '", name, "'"));
  return it->second;
}

void State::set(const std::string& name, const Tensor& value) {
  auto it = variables_.find(name);
  if (it == variables_.end()) {
    variables_.emplace(name, lasting_copy(value));
    order_.push_back(name);
    return;
  }
  Tensor& t = it->second;
  if (t.dtype() != value.dtype() || t.shape() != value.shape())
    throw Error(ErrorKind::kUsage, "OT1120",
                cat("state variable '", name, "' is ", dtype_name(t.dtype()), to_string(t.shape()),
                    ", the new value is ", dtype_name(value.dtype()), to_string(value.shape())));
  copy_elements(t.dtype(), t.data(), value.data(), t.size(), t.bytes());
}

void* State::address(const std::string& name) { return const_cast<void*>(get(name).data()); }

std::vector<std::string> State::names() const { return order_; }

size_t State::bytes() const {
  size_t n = 0;
  for (const auto& [name, t] : variables_) n += t.bytes();
  return n;
}

}  // namespace onnxtrain
