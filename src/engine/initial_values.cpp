// Zero, a file, or kept.
#include "engine/initial_values.hpp"

#include <cstring>

#include "core/random.hpp"

namespace onnxtrain {

void InitialValues::remember(const std::string& name, const Tensor& value) {
  Entry e;
  e.zero = are_zero_pages(value.owner());
  if (!e.zero) e.file = origin_of(value.owner());
  if (e.file && e.file->bytes != value.bytes()) e.file = nullptr;
  if (e.file) e.hash = hash64(value.data(), value.bytes());  // it may differ from the file already
  e.kept = e.zero || e.file ? Tensor(value.dtype(), value.shape(), nullptr, nullptr) : value;
  entries_[name] = std::move(e);
}

std::optional<Tensor> InitialValues::find(const std::string& name) const {
  const Entry& e = entries_.at(name);
  if (!e.zero && !e.file) return e.kept;
  Tensor t(e.kept.dtype(), e.kept.shape());
  if (e.zero) {
    std::memset(t.data(), 0, t.bytes());
  } else if (!e.file->read(t.data()) || hash64(t.data(), t.bytes()) != e.hash) {
    return std::nullopt;
  }
  return t;
}

Tensor InitialValues::get(const std::string& name) const {
  if (std::optional<Tensor> t = find(name)) return *t;
  throw Error(ErrorKind::kFailed, "OT1137",
              cat("the first value of state variable '", name, "' stood in '",
                  entries_.at(name).file->path, "', which has changed or is gone"),
              "make a new trainer from the model");
}

}  // namespace onnxtrain
