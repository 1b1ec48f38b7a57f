// Random feeds.
#include "cli/measure/random_feeds.hpp"

#include <random>

namespace onnxtrain::cli {

Tensor random_value(const ValueDef& d, int64_t batch, uint64_t seed) {
  if (!d.type.is_tensor())
    model_error(
        "OT1126",
        cat("no random value can be made for input '", d.name, "' of type ", to_string(d.type)),
        "give one:  onnxtrain run MODEL --inputs in.npz");
  Shape shape;
  if (d.type.shape)
    for (size_t k = 0; k < d.type.shape->size(); ++k) {
      const Dim& x = (*d.type.shape)[k];
      shape.push_back(x.known() ? x.value : k == 0 ? batch : 4);
    }
  Tensor t(d.type.elem, shape);
  std::mt19937_64 random(seed);
  if (d.type.elem == DType::kString) {  // a letter: most likely a category that nobody knows
    for (int64_t k = 0; k < t.size(); ++k) t.as<std::string>()[k] = char('a' + random() % 26);
    return t;
  }
  std::normal_distribution<double> normal;
  dispatch<float, double, Half, BFloat16, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t,
           uint64_t, int64_t, bool>(t.dtype(), "a random input", [&]<class T>() {
    T* out = t.as<T>();
    for (int64_t k = 0; k < t.size(); ++k) {
      if constexpr (std::is_same_v<T, bool>)
        reinterpret_cast<uint8_t*>(out)[k] = random() & 1;
      else if constexpr (std::is_integral_v<T>)
        out[k] = T(random() & 1);
      else
        out[k] = T(compute_t<T>(normal(random)));
    }
  });
  return t;
}

Feeds random_feeds(const Model& m, int64_t batch, uint64_t seed) {
  Feeds f;
  for (const std::string& name : m.input_names())
    f[name] = random_value(m.main.value(m.main.find(name)), batch, seed++);
  return f;
}

}  // namespace onnxtrain::cli
