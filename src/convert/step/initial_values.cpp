// Initial values of parameters.
#include "convert/step/initial_values.hpp"

#include <vector>

#include "convert/step/step_builder.hpp"
#include "core/random.hpp"

namespace onnxtrain {

Tensor draw(DType type, const Shape& shape, const InitialValue& start, uint64_t seed,
            const std::string& name) {
  if (start.is_constant()) return filled(type, shape, start.value);
  Tensor t(type, shape);
  std::vector<float> u(size_t(t.size()));
  const uint64_t stream = hash64(name.data(), name.size(), 1);
  const bool normal = start.kind == InitialValue::Kind::kNormal;
  (normal ? philox_normal : philox_uniform)(seed, stream, 0, 0, t.size(), u.data());
  dispatch<float, double, Half, BFloat16>(type, "an initial value", [&]<class T>() {
    for (size_t k = 0; k < u.size(); ++k)
      t.as<T>()[k] = T(
          compute_t<T>(normal ? double(u[k]) * start.value : (2 * double(u[k]) - 1) * start.value));
  });
  return t;
}

}  // namespace onnxtrain
