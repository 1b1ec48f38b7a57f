// The table of state variables.
#include "runtime/state.hpp"

#include <cstring>

#include "core/closest.hpp"
#include "core/fill.hpp"
#include "core/memory.hpp"
#include "core/text.hpp"
#include "core/threads.hpp"
#include "runtime/copy.hpp"

namespace onnxtrain {

namespace {

// A place for a copy; what is to be written there joins `fills`.
Tensor place_for(const Tensor& value, std::vector<Fill>& fills) {
  if (!value.defined() || value.dtype() == DType::kString) return value.clone();
  const bool zero = are_zero_pages(value.owner());
  std::shared_ptr<void> p = allocate_lasting(value.bytes(), zero);
  if (!zero && value.bytes() > 0)
    fills.push_back({p.get(), value.bytes(),
                     [from = static_cast<const char*>(value.data())](
                         size_t at, void* out, size_t n) { std::memcpy(out, from + at, n); }});
  return Tensor(value.dtype(), value.shape(), p.get(), p);
}

}  // namespace

std::string State::near_name(const std::string& name) const {
  const std::string near = closest(name, order_);
  if (!near.empty()) return cat("did you mean '", near, "'?");
  return order_.empty() ? std::string() : cat("the first is '", order_[0], "'");
}

const Tensor& State::get(const std::string& name) const {
  auto it = variables_.find(name);
  if (it == variables_.end())
    usage_error("OT1122", cat("there is no state variable named '", name, "'"), near_name(name));
  return it->second;
}

void State::set(const std::string& name, const Tensor& value) {
  ++assignments_;
  auto it = variables_.find(name);
  if (it == variables_.end()) {
    ThreadPool here(1);
    add({{name, &value}}, here);
    return;
  }
  Tensor& t = it->second;
  if (t.dtype() != value.dtype() || t.shape() != value.shape())
    throw Error(ErrorKind::kUsage, "OT1120",
                cat("state variable '", name, "' is ", dtype_name(t.dtype()), to_string(t.shape()),
                    ", the new value is ", dtype_name(value.dtype()), to_string(value.shape())),
                "give an array of that type and shape");
  copy_elements(t.dtype(), t.data(), value.data(), t.size(), t.bytes());
}

void State::add(const std::vector<std::pair<std::string, const Tensor*>>& values,
                ThreadPool& pool) {
  std::vector<Fill> fills;
  for (const auto& [name, value] : values) {
    OT_ASSERT(!has(name));
    variables_.emplace(name, place_for(*value, fills));
    order_.push_back(name);
  }
  fill_all(fills, pool);
}

void State::adopt(const std::string& name, Tensor value) {
  OT_ASSERT(!has(name));
  variables_.emplace(name, std::move(value));
  order_.push_back(name);
}

std::vector<std::string> State::names() const { return order_; }

size_t State::bytes() const {
  size_t n = 0;
  for (const auto& [name, t] : variables_) n += t.bytes();
  return n;
}

}  // namespace onnxtrain
