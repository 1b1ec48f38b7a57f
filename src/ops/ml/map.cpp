// Maps (ai.onnx.ml): CastMap, DictVectorizer, ZipMap.
#include <charconv>

#include "ops/common/values.hpp"
#include "ops/ml/features.hpp"

namespace onnxtrain::ops {

namespace {

constexpr const char* kMaps = "maps have no gradient";

const MapValue& map_in(const ValueCtx& c) {
  if (!c.has(0)) model_error("OT1107", "input 0 is missing");
  if (const auto* m = std::get_if<std::shared_ptr<MapValue>>(c.in(0)); m && *m) return **m;
  model_error("OT1108", "input 0 is not a map");
}

const Tensor& scalar_of(const Value& v) {
  const Tensor& t = tensor_of(v, "a value of the map");
  if (t.size() != 1) model_error("OT1165", cat("a value of the map has ", t.size(), " elements"));
  return t;
}

double number_of(const Tensor& t) {
  if (t.dtype() != DType::kString) return t.to_doubles()[0];
  const std::string& s = *t.as<std::string>();
  double v = 0;
  auto [end, err] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (err != std::errc() || end != s.data() + s.size())
    data_error("OT2102", cat("'", s, "' is not a number"));
  return v;
}

std::string text_of(const Tensor& t) {
  if (t.dtype() == DType::kString) return *t.as<std::string>();
  return cat(t.to_doubles()[0]);
}

void run_cast(ValueCtx& c) {
  const auto* items = std::get_if<std::map<int64_t, Value>>(&map_in(c).items);
  if (!items) model_error("OT1165", "CastMap needs a map with integer keys");
  std::string to = c.node().s("cast_to", "TO_FLOAT"), form = c.node().s("map_form", "DENSE");
  std::vector<std::pair<int64_t, Tensor>> cells;
  int64_t width = 0;
  bool sparse = form == "SPARSE";
  if (!sparse && form != "DENSE")
    model_error("OT1106", cat("map_form '", form, "' is not DENSE or SPARSE"));
  int64_t limit = c.node().i("max_map", 1);
  if (sparse && (limit < 1 || limit > (int64_t(1) << 32)))
    model_error("OT1106", cat("max_map is ", limit));
  for (const auto& [key, v] : *items) {
    if (sparse && (key < 0 || key >= limit))
      data_error("OT2103", cat("key ", key, " of the map is outside 0..", limit - 1));
    cells.push_back({sparse ? key : width, scalar_of(v)});
    ++width;
  }
  if (sparse) width = limit;
  auto fill = [&]<class T>(auto convert) {
    Tensor y(DTypeOf<T>::value, {1, width});
    std::fill_n(y.template as<T>(), width, T());
    for (const auto& [at, t] : cells) y.template as<T>()[at] = convert(t);
    c.out(0, y);
  };
  if (to == "TO_FLOAT")
    fill.template operator()<float>([](const Tensor& t) { return float(number_of(t)); });
  else if (to == "TO_INT64")
    fill.template operator()<int64_t>([](const Tensor& t) { return int64_t(number_of(t)); });
  else if (to == "TO_STRING")
    fill.template operator()<std::string>(text_of);
  else
    model_error("OT1106", cat("cast_to '", to, "' is unknown"));
}

// One row of the vocabulary; what the map lacks is zero or empty.
template <class K>
Tensor vectorize(const std::map<K, Value>& items, const std::vector<K>& vocabulary, DType type) {
  return dispatch<float, double, int64_t, std::string>(type, "DictVectorizer", [&]<class T>() {
    Tensor y(type, {int64_t(vocabulary.size())});
    for (size_t k = 0; k < vocabulary.size(); ++k) {
      auto it = items.find(vocabulary[k]);
      y.as<T>()[k] = it == items.end() ? T() : *scalar_of(it->second).template as<T>();
    }
    return y;
  });
}

DType value_type(const auto& items) {
  return items.empty() ? DType::kFloat : scalar_of(items.begin()->second).dtype();
}

void run_dict(ValueCtx& c) {
  const MapValue& m = map_in(c);
  if (const auto* ints = std::get_if<std::map<int64_t, Value>>(&m.items)) {
    c.out(0, vectorize(*ints, c.node().ints("int64_vocabulary"), value_type(*ints)));
  } else {
    const auto& words = std::get<std::map<std::string, Value>>(m.items);
    c.out(0, vectorize(words, c.node().strings("string_vocabulary"), value_type(words)));
  }
}

void run_zip(ValueCtx& c) {
  const Tensor& x = c.tensor(0);
  if (x.dtype() != DType::kFloat) unsupported_dtype(x.dtype(), "ZipMap");
  Rows rows = rows_of(x.shape(), "ZipMap");
  Labels labels = labels_of(c.node(), "classlabels_int64s", "classlabels_strings");
  if (labels.count() != rows.features)
    model_error("OT1165",
                cat("ZipMap has ", labels.count(), " labels for ", rows.features, " columns"));
  auto out = std::make_shared<Sequence>();
  for (int64_t i = 0; i < rows.rows; ++i) {
    auto m = std::make_shared<MapValue>();
    if (labels.use_strings()) m->items = std::map<std::string, Value>();
    for (int64_t k = 0; k < rows.features; ++k) {
      Value v = Tensor::scalar<float>(x.as<float>()[i * rows.features + k]);
      if (labels.use_strings()) {
        std::get<std::map<std::string, Value>>(m->items)[labels.strings[size_t(k)]] = v;
      } else {
        std::get<std::map<int64_t, Value>>(m->items)[labels.ints[size_t(k)]] = v;
      }
    }
    out->items.push_back(m);
  }
  c.out(0, out);
}

}  // namespace

void register_map(OpTable& t) {
  t.add({.name = "CastMap", .domain = kMl, .run_values = run_cast, .no_grad = kMaps});
  t.add({.name = "DictVectorizer", .domain = kMl, .run_values = run_dict, .no_grad = kMaps});
  t.add({.name = "ZipMap", .domain = kMl, .run_values = run_zip, .no_grad = kMaps});
}

}  // namespace onnxtrain::ops
