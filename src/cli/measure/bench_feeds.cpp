// Inputs for `bench` from declared types and from who reads them.
#include "cli/measure/bench_feeds.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/random.hpp"
#include "data/columns/dataset.hpp"

namespace onnxtrain::cli {

Dims parse_dims(const std::vector<std::string>& dims) {
  Dims numbers;
  for (const std::string& d : dims) {
    size_t eq = d.find('=');
    std::vector<int64_t> list;
    for (size_t at = eq == std::string::npos ? d.size() : eq + 1; at < d.size();) {
      char* end = nullptr;
      list.push_back(std::strtoll(d.c_str() + at, &end, 10));
      at = size_t(end - d.c_str());
      if (list.back() < 0 || (at < d.size() && d[at] != ',')) list.clear(), at = d.size();
      ++at;
    }
    if (list.empty())
      usage_error("OT0006", cat("--dim '", d, "' is not NAME=NUMBER or INPUT=NUMBER,NUMBER,..."),
                  cat("for example --dim ", d.substr(0, eq), "=8"));
    numbers[d.substr(0, eq)] = list;
  }
  return numbers;
}

namespace {

struct Given {
  Dims numbers;
};

Shape shape_of(const ValueDef& d, const Given& given, int64_t batch) {
  auto whole = given.numbers.find(d.name);
  if (whole != given.numbers.end()) return Shape(whole->second.begin(), whole->second.end());
  if (!d.type.shape)
    usage_error("OT0006", cat("input '", d.name, "' has no declared rank"),
                cat("say it:  --dim ", d.name, "=8,128   or give real inputs:  --inputs in.npz"));
  Shape s;
  for (size_t k = 0; k < d.type.shape->size(); ++k) {
    const Dim& dim = (*d.type.shape)[k];
    auto named = given.numbers.find(dim.symbol);
    if (dim.known())
      s.push_back(dim.value);
    else if (!dim.symbol.empty() && named != given.numbers.end())
      s.push_back(named->second[0]);
    else
      s.push_back(k == 0 ? batch : 1);
  }
  return s;
}

// The exclusive upper bound of an integer input, from the nodes that read it in this graph.
void bound_in(const Graph& g, const std::string& name, int64_t& bound) {
  auto dim = [&](ValueId v, int64_t axis) -> int64_t {
    const ValueDef& d = g.value(v);
    if (d.constant.defined()) {
      int64_t rank = d.constant.rank();
      if (axis < 0) axis += rank;
      return axis >= 0 && axis < rank ? d.constant.shape()[size_t(axis)] : -1;
    }
    if (!d.type.shape) return -1;
    if (axis < 0) axis += int64_t(d.type.shape->size());
    bool inside = axis >= 0 && axis < int64_t(d.type.shape->size());
    return inside ? (*d.type.shape)[size_t(axis)].value : -1;
  };
  for (const Node& n : g.nodes) {
    if (n.inputs.size() < 2 || n.inputs[1] == kNone || g.value_name(n.inputs[1]) != name) continue;
    int64_t b = -1;
    if (n.op == "Gather") b = dim(n.inputs[0], n.i("axis", 0));
    if (n.op == "SoftmaxCrossEntropyLoss" || n.op == "NegativeLogLikelihoodLoss")
      b = dim(n.inputs[0], 1);
    if (b > 0) bound = bound < 0 ? b : std::min(bound, b);
  }
}

int64_t bound_of(const Model& m, const std::string& name) {
  int64_t bound = -1;
  bound_in(m.main, name, bound);
  for (const auto& t : m.training) bound_in(t.algorithm, name, bound);
  return bound > 0 ? bound : 2;  // 0 and 1 are in range nearly everywhere
}

Tensor random_input(const Model& m, const ValueDef& d, const Shape& shape) {
  Tensor t(d.type.elem, shape);
  uint64_t state = hash64(d.name.data(), d.name.size(), 1);
  auto next = [&] { return state = hash64(&state, sizeof state, 2); };
  switch (d.type.elem) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kFloat16:
    case DType::kBFloat16:
      dispatch<float, double, Half, BFloat16>(t.dtype(), "an input", [&]<class T>() {
        for (int64_t k = 0; k < t.size(); ++k)
          t.as<T>()[k] = T(compute_t<T>(double(next() >> 40) / double(1 << 24) * 2 - 1));
      });
      return t;
    case DType::kInt64:
    case DType::kInt32: {
      uint64_t bound = uint64_t(bound_of(m, d.name));
      dispatch<int64_t, int32_t>(t.dtype(), "an input", [&]<class T>() {
        for (int64_t k = 0; k < t.size(); ++k) t.as<T>()[k] = T(next() % bound);
      });
      return t;
    }
    case DType::kString:
      usage_error("OT0006", cat("input '", d.name, "' holds strings"),
                  "give real inputs:  --inputs in.npz");
    default:
      // one byte or more per element: zeros and ones
      for (size_t k = 0; k < t.bytes(); ++k) static_cast<uint8_t*>(t.data())[k] = 0;
      if (d.type.elem == DType::kBool)
        for (size_t k = 0; k < t.bytes(); ++k) static_cast<uint8_t*>(t.data())[k] = next() & 1;
      return t;
  }
}

// --dim of a name that no input has would change nothing.
void refuse_unknown_dims(const Dims& given, const std::vector<ValueDef>& inputs) {
  std::vector<std::string> known;
  for (const ValueDef& d : inputs) {
    known.push_back(d.name);
    for (size_t k = 0; d.type.shape && k < d.type.shape->size(); ++k)
      if (const std::string& symbol = (*d.type.shape)[k].symbol; !symbol.empty())
        known.push_back(symbol);
  }
  for (const auto& [name, numbers] : given)
    if (std::find(known.begin(), known.end(), name) == known.end())
      usage_error("OT0006", cat("--dim ", name, ": no input and no open dimension has this name"),
                  known.empty() ? "leave --dim out" : cat("known are ", listed(known, 20)));
}

}  // namespace

Feeds bench_feeds(const Model& m, const std::vector<ValueDef>& inputs, const FeedSizes& sizes) {
  Given given{parse_dims(sizes.dims)};
  refuse_unknown_dims(given.numbers, inputs);
  Feeds feeds;
  for (const ValueDef& d : inputs) {
    if (d.constant.defined() || d.type.kind == TypeInfo::Kind::kOptional) continue;
    if (!d.type.is_tensor())
      usage_error("OT0006",
                  cat("input '", d.name, "' is no tensor: random values cannot be made for it"),
                  "give the values:  --inputs in.npz");
    feeds[d.name] = random_input(m, d, shape_of(d, given, sizes.batch));
  }
  return feeds;
}

}  // namespace onnxtrain::cli
