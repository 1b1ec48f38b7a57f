// Comparison of attributes, tensors and constants.
#include "graph/same.hpp"

#include <cstring>
#include <type_traits>

#include "core/error.hpp"

namespace onnxtrain {

bool same_tensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) {
    const auto *p = a.as<std::string>(), *q = b.as<std::string>();
    for (int64_t i = 0; i < a.size(); ++i)
      if (p[i] != q[i]) return false;
    return true;
  }
  return a.bytes() == 0 || a.data() == b.data() || std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

bool same_attr(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<class T>(const T& x) {
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, Tensor>) {
          return same_tensor(x, y);
        } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
          if (x.size() != y.size()) return false;
          for (size_t k = 0; k < x.size(); ++k)
            if (!same_tensor(x[k], y[k])) return false;
          return true;
        } else if constexpr (std::is_same_v<T, GraphPtr>) {
          return false;
        } else if constexpr (std::is_same_v<T, TypeInfo>) {
          return to_string(x) == to_string(y);
        } else {
          return x == y;
        }
      },
      a);
}

std::string value_key(const ValueDef& d, ValueId v, size_t bytes) {
  if (d.is_constant() && d.constant.dtype() != DType::kString && d.constant.bytes() <= bytes) {
    std::string k = cat("c", int(d.constant.dtype()), to_string(d.constant.shape()), ":");
    k.append(static_cast<const char*>(d.constant.data()), d.constant.bytes());
    return k;
  }
  return cat("v", v);
}

}  // namespace onnxtrain
