// What the operators of ai.onnx.ml share: rows of features, class labels, post transforms.
#pragma once
#include <string>
#include <vector>

#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

inline const std::string kMl{kMlDomain};

// The input as rows of features: [C] is one row, more than two dimensions are refused.
struct Rows {
  int64_t rows = 0, features = 0;
};
Rows rows_of(const Shape& s, const char* op);
void check_number(DType t, const char* op);  // float, double, int64, int32

// Calls f with the C++ type of the input.
template <class F>
decltype(auto) dispatch_number(DType t, const char* op, F&& f) {
  return dispatch<float, double, int64_t, int32_t>(t, op, static_cast<F&&>(f));
}

enum class Post { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
Post post_of(const Node& n);
// Transforms the n scores of one row.
void apply_post(Post p, float* scores, int64_t n);
// How a single score becomes two: -1: it stays one; 0, 1: [1-s, s] (LOGISTIC: as 2); 2, 3: [-s, s],
// then transformed. Returns the number of scores written to `out` (room for max(n, 2)).
int64_t write_scores(Post p, const float* scores, int64_t n, int add_second, float* out);

// ---------------------------------------------------------------- in standard operators
// x as [rows, features].
ValueId feature_rows(GradBuilder& b, int64_t features);
// Floats as a constant of this type, rows of `columns`.
ValueId float_table(GradBuilder& b, const std::vector<float>& v, int64_t columns, DType type);
// The weights that are input `i` of the node (op.hpp, AttributeWeights), or the attribute's.
ValueId weight_table(GradBuilder& b, int i, const std::vector<float>& v, int64_t columns,
                     DType type);
// The element type in which the form computes: that of x, float for integers.
DType form_type(const GradBuilder& b);
ValueId post_form(GradBuilder& b, Post p, ValueId scores);
ValueId to_float(GradBuilder& b, ValueId v);
// The outputs of a classifier: its label, which has no derivative, by the operator itself.
std::vector<ValueId> with_label(GradBuilder& b, ValueId scores);

// Class labels: integers or strings.
struct Labels {
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  bool use_strings() const { return !strings.empty(); }
  DType dtype() const { return use_strings() ? DType::kString : DType::kInt64; }
  int64_t count() const { return int64_t(use_strings() ? strings.size() : ints.size()); }
};
Labels labels_of(const Node& n, const char* ints, const char* strings);
// Label number `index` [rows] in standard operators.
ValueId label_form(GradBuilder& b, const Labels& l, ValueId index);
// Writes label `index` at `row` of the label output.
void write_label(const Labels& l, void* out, int64_t row, int64_t index);

}  // namespace onnxtrain::ops
