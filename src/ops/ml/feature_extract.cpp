// ArrayFeatureExtractor, FeatureVectorizer (ai.onnx.ml).
#include <algorithm>

#include "op/needs_shape.hpp"
#include "ops/common/values.hpp"
#include "ops/ml/features.hpp"

namespace onnxtrain::ops {

namespace {

void extractor_shape(ShapeCtx& c) {
  if (c.rank(0) < 1) model_error("OT1130", "ArrayFeatureExtractor of a scalar");
  if (c.dtype(1) != DType::kInt64)
    unsupported_dtype(c.dtype(1), "the indices of ArrayFeatureExtractor");
  int64_t n = num_elements(c.shape(1));
  if (n < 1) model_error("OT1130", "ArrayFeatureExtractor without indices");
  Shape s = c.shape(0);
  s.back() = n;
  if (s.size() == 1) s.insert(s.begin(), 1);
  c.set(0, c.dtype(0), s);
}

Kernel make_extractor(Prepare& p) {
  int64_t columns = p.in(0).shape.back(), n = p.in(1).size(), rows = n ? p.out(0).size() / n : 0;
  DType t = p.in(0).dtype;
  size_t size = dtype_size(t);
  return [=](const Run& r) {
    const int64_t* at = r.in<int64_t>(1);
    for (int64_t k = 0; k < n; ++k)
      if (at[k] < 0 || at[k] >= columns)
        data_error("OT2104",
                   cat("index ", at[k], " of ArrayFeatureExtractor is outside 0..", columns - 1));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < n; ++k)
        copy_elements(r.out<char>(0) + size_t(i * n + k) * size,
                      r.in<char>(0) + size_t(i * columns + at[k]) * size, 1, t);
  };
}

// dx = dy times the matrix with a one where column k of y came from
std::vector<ValueId> extractor_grad(GradBuilder& b) {
  ValueId columns = b.call("Gather", {b.shape_of(b.x(0)), b.constant_int(-1)});
  ValueId all = b.call("Range", {b.constant_int(0), columns, b.constant_int(1)});
  ValueId at = b.call("Reshape", {b.x(1), b.constant_ints({-1, 1})});
  ValueId pick = b.call("Cast", {b.call("Equal", {at, all})}, {{"to", int64_t(b.dtype(b.x(0)))}});
  ValueId dx = b.call("MatMul", {b.dy(), pick});
  return {b.reshape_like(dx, b.x(0)), kNone};
}

// Columns that input i takes; `inputdimensions` cuts or pads.
int64_t width_of(const Node& n, int i, const Shape& s) {
  if (s.empty() || s.size() > 2)
    model_error("OT1130", cat("input ", i, " of FeatureVectorizer has shape ", to_string(s),
                              ", expected one or two dimensions"));
  std::vector<int64_t> dims = n.ints("inputdimensions");
  if (size_t(i) < dims.size()) {
    if (dims[size_t(i)] < 0) model_error("OT1106", cat("inputdimensions has ", dims[size_t(i)]));
    return dims[size_t(i)];
  }
  return s.size() == 1 ? 1 : s[1];
}

void vectorizer_shape(ShapeCtx& c) {
  int64_t columns = 0, rows = -1;
  for (int i = 0; i < c.inputs(); ++i) {
    check_number(c.dtype(i), "FeatureVectorizer");
    columns += width_of(c.node(), i, c.shape(i));
    int64_t n = c.shape(i)[0];
    if (rows >= 0 && n != rows)
      model_error("OT1130", cat("inputs of FeatureVectorizer have ", rows, " and ", n, " rows"));
    rows = n;
  }
  if (rows < 0) model_error("OT1107", "FeatureVectorizer has no inputs");
  c.set(0, DType::kFloat, {rows, columns});
}

Kernel make_vectorizer(Prepare& p) {
  struct Part {
    int64_t width, own;
    DType type;
  };
  std::vector<Part> parts;
  for (int i = 0; i < p.inputs(); ++i) {
    const Shape& s = p.in(i).shape;
    parts.push_back({width_of(p.node(), i, s), s.size() == 1 ? 1 : s[1], p.in(i).dtype});
  }
  int64_t rows = p.out(0).shape[0], columns = p.out(0).shape[1];
  return [=](const Run& r) {
    int64_t at = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      dispatch_number(part.type, "FeatureVectorizer", [&]<class T>() {
        const T* x = r.in<T>(int(i));
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t k = 0; k < part.width; ++k)
            r.out<float>(0)[row * columns + at + k] =
                k < part.own ? float(x[row * part.own + k]) : 0.f;
      });
      at += part.width;
    }
  };
}

std::vector<ValueId> vectorizer_grad(GradBuilder& b) {
  std::vector<ValueId> g;
  int64_t at = 0;
  for (int i = 0; i < b.inputs(); ++i) {
    if (!b.shape_known(b.x(i)))
      needs_shape("OT1205", "the gradient of FeatureVectorizer needs the shapes of its inputs");
    Shape s = b.shape(b.x(i));
    int64_t width = width_of(b.node(), i, s), own = s.size() == 1 ? 1 : s[1],
            used = std::min(width, own);
    ValueId d = b.call("Slice", {b.dy(), b.constant_ints({at}), b.constant_ints({at + used}),
                                 b.constant_ints({1})});
    if (used < own) {
      Tensor zeros(DType::kFloat, {s[0], own - used});
      std::fill_n(zeros.as<float>(), zeros.size(), 0.f);
      d = b.call("Concat", {d, b.tensor(zeros)}, {{"axis", int64_t(1)}});
    }
    g.push_back(b.wants(i) ? b.reshape_like(b.cast_like(d, b.x(i)), b.x(i)) : kNone);
    at += width;
  }
  return g;
}

}  // namespace

void register_feature_extract(OpTable& t) {
  t.add({.name = "ArrayFeatureExtractor",
         .domain = kMl,
         .shape = extractor_shape,
         .impls = {{"ref", nullptr, make_extractor}},
         .grad = extractor_grad});
  t.add({.name = "FeatureVectorizer",
         .domain = kMl,
         .shape = vectorizer_shape,
         .impls = {{"ref", nullptr, make_vectorizer}},
         .grad = vectorizer_grad});
}

}  // namespace onnxtrain::ops
