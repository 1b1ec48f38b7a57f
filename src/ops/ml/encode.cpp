// LabelEncoder, CategoryMapper, OneHotEncoder (ai.onnx.ml): look-ups.
#include <cmath>
#include <map>
#include <memory>

#include "ops/ml/features.hpp"

namespace onnxtrain::ops {

namespace {

constexpr const char* kLookup = "a look-up in a table of labels has no gradient";

// NaN is a key like any other.
template <class K>
struct Less {
  bool operator()(const K& a, const K& b) const {
    if constexpr (std::is_floating_point_v<K>) {
      if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
    }
    return a < b;
  }
};

// Keys, values and the default as tensors, whatever attributes they came from.
struct Table {
  Tensor keys, values, other;
};

Tensor list_attr(const Node& n, const std::string& stem) {
  if (n.has(stem + "_tensor")) return *n.tensor(stem + "_tensor");
  if (n.has(stem + "_strings")) return Tensor::vector<std::string>(n.strings(stem + "_strings"));
  if (n.has(stem + "_int64s")) return Tensor::vector<int64_t>(n.ints(stem + "_int64s"));
  if (n.has(stem + "_floats")) return Tensor::vector<float>(n.floats(stem + "_floats"));
  model_error("OT1164", cat("LabelEncoder has no ", stem));
}

Table encoder_table(const Node& n, DType in) {
  Table t;
  if (n.version < 2) {  // classes_strings both ways
    std::vector<std::string> names = n.strings("classes_strings");
    std::vector<int64_t> index;
    for (size_t k = 0; k < names.size(); ++k) index.push_back(int64_t(k));
    bool from_string = in == DType::kString;
    Tensor words = Tensor::vector<std::string>(names), numbers = Tensor::vector<int64_t>(index);
    t.keys = from_string ? words : numbers;
    t.values = from_string ? numbers : words;
  } else {
    t.keys = list_attr(n, "keys");
    t.values = list_attr(n, "values");
  }
  if (t.keys.size() != t.values.size())
    model_error("OT1164",
                cat("LabelEncoder has ", t.keys.size(), " keys and ", t.values.size(), " values"));
  if (t.keys.dtype() != in)
    model_error("OT1164", cat("keys of LabelEncoder are ", dtype_name(t.keys.dtype()),
                              ", its input is ", dtype_name(in)));
  if (const Tensor* d = n.has("default_tensor") ? n.tensor("default_tensor") : nullptr;
      d && d->size() == 1) {
    t.other = *d;
    if (d->dtype() != t.values.dtype())
      model_error("OT1164", "default_tensor has another type than the values");
  } else {
    switch (t.values.dtype()) {
      case DType::kString:
        t.other = Tensor::scalar<std::string>(n.s("default_string", "_Unused"));
        break;
      case DType::kInt64:
        t.other = Tensor::scalar<int64_t>(n.i("default_int64", -1));
        break;
      case DType::kFloat:
        t.other = Tensor::scalar<float>(n.f("default_float", -0.f));
        break;
      case DType::kDouble:
        t.other = Tensor::scalar<double>(-0.0);
        break;
      case DType::kInt32:
        t.other = Tensor::scalar<int32_t>(-1);
        break;
      case DType::kInt16:
        t.other = Tensor::scalar<int16_t>(-1);
        break;
      default:
        unsupported_dtype(t.values.dtype(), "LabelEncoder");
    }
  }
  return t;
}

template <class F>
decltype(auto) dispatch_label(DType t, F&& f) {
  return dispatch<std::string, int64_t, float, int32_t, int16_t, double>(t, "a look-up of labels",
                                                                         static_cast<F&&>(f));
}

// Keys and values are turned into strings or numbers once: one map type per key type.
Kernel make_lookup(const Table& t, int64_t n) {
  return dispatch_label(t.keys.dtype(), [&]<class K>() -> Kernel {
    auto map = std::make_shared<std::map<K, int64_t, Less<K>>>();
    for (int64_t k = 0; k < t.keys.size(); ++k)
      (*map)[t.keys.as<K>()[k]] = k;  // the last of equal keys
    return dispatch_label(t.values.dtype(), [&]<class V>() -> Kernel {
      Tensor values = t.values, other = t.other;
      return [map, values, other, n](const Run& r) {
        for (int64_t i = 0; i < n; ++i) {
          auto it = map->find(r.in<K>(0)[i]);
          r.out<V>(0)[i] = it == map->end() ? *other.as<V>() : values.as<V>()[it->second];
        }
      };
    });
  });
}

void encoder_shape(ShapeCtx& c) {
  Table t = encoder_table(c.node(), c.dtype(0));
  c.set(0, t.values.dtype(), c.shape(0));
}
Kernel make_encoder(Prepare& p) {
  return make_lookup(encoder_table(p.node(), p.in(0).dtype), p.out(0).size());
}

Table mapper_table(const Node& n, DType in) {
  std::vector<std::string> names = n.strings("cats_strings");
  std::vector<int64_t> numbers = n.ints("cats_int64s");
  if (names.size() != numbers.size())
    model_error("OT1164", cat("CategoryMapper has ", names.size(), " strings and ", numbers.size(),
                              " integers"));
  if (in != DType::kString && in != DType::kInt64) unsupported_dtype(in, "CategoryMapper");
  Tensor words = Tensor::vector<std::string>(names), ints = Tensor::vector<int64_t>(numbers);
  if (in == DType::kString) return {words, ints, Tensor::scalar<int64_t>(n.i("default_int64", -1))};
  return {ints, words, Tensor::scalar<std::string>(n.s("default_string", "_Unused"))};
}

void mapper_shape(ShapeCtx& c) {
  Table t = mapper_table(c.node(), c.dtype(0));
  c.set(0, t.values.dtype(), c.shape(0));
}
Kernel make_mapper(Prepare& p) {
  return make_lookup(mapper_table(p.node(), p.in(0).dtype), p.out(0).size());
}

// ---------------------------------------------------------------- OneHotEncoder

void one_hot_shape(ShapeCtx& c) {
  bool words = c.dtype(0) == DType::kString;
  if (!words) check_number(c.dtype(0), "OneHotEncoder");
  size_t n = words ? c.node().strings("cats_strings").size() : c.node().ints("cats_int64s").size();
  if (n == 0) model_error("OT1164", "OneHotEncoder has no categories of the type of its input");
  Shape s = c.shape(0);
  s.push_back(int64_t(n));
  c.set(0, DType::kFloat, s);
}

Kernel make_one_hot(Prepare& p) {
  int64_t n = p.in(0).size(), classes = p.out(0).shape.back();
  bool zeros = p.node().i("zeros", 1) != 0;
  std::map<std::string, int64_t> words;
  std::map<int64_t, int64_t> numbers;
  int64_t at = 0;
  for (const auto& s : p.node().strings("cats_strings")) words[s] = at++;
  at = 0;
  for (int64_t v : p.node().ints("cats_int64s")) numbers[v] = at++;
  return dispatch<std::string, float, double, int64_t, int32_t>(
      p.in(0).dtype, "OneHotEncoder", [&]<class T>() -> Kernel {
        return [=](const Run& r) {
          std::fill_n(r.out<float>(0), n * classes, 0.f);
          for (int64_t i = 0; i < n; ++i) {
            int64_t k = -1;
            const T& x = r.in<T>(0)[i];
            if constexpr (std::is_same_v<T, std::string>) {
              if (auto it = words.find(x); it != words.end()) k = it->second;
            } else if (double(x) > -9.2e18 && double(x) < 9.2e18) {
              if (auto it = numbers.find(int64_t(x)); it != numbers.end()) k = it->second;
            }
            if (k >= 0) {
              r.out<float>(0)[i * classes + k] = 1;
            } else if (!zeros) {
              data_error("OT2101", cat("element ", i, " is none of the ", classes,
                                       " categories of OneHotEncoder"));
            }
          }
        };
      });
}

}  // namespace

void register_encode(OpTable& t) {
  t.add({.name = "LabelEncoder",
         .domain = kMl,
         .shape = encoder_shape,
         .impls = {{"ref", nullptr, make_encoder}},
         .no_grad = kLookup});
  t.add({.name = "CategoryMapper",
         .domain = kMl,
         .shape = mapper_shape,
         .impls = {{"ref", nullptr, make_mapper}},
         .no_grad = kLookup});
  t.add({.name = "OneHotEncoder",
         .domain = kMl,
         .shape = one_hot_shape,
         .impls = {{"ref", nullptr, make_one_hot}},
         .no_grad = kLookup});
}

}  // namespace onnxtrain::ops
