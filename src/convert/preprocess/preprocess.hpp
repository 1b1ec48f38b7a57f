// Preprocessing of table columns as part of the model: one input per column by its name, missing
// values filled, numbers scaled, categories encoded. An exported model then takes raw columns.
#pragma once
#include <string>
#include <vector>

#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

// What happens to one column.
struct ColumnTransform {
  enum class Kind { kNumber, kCategory } kind = Kind::kNumber;
  std::string name;  // of the column, and of the model's input
  // numbers: (v - offset) * scale; a missing value (NaN) becomes `fill` first
  double fill = 0, offset = 0, scale = 1;
  // categories: position i for the text categories[i]; any other text: zeros
  std::vector<std::string> categories;
  std::string missing_as;  // the category that "" becomes; empty: "" is a text like any other
  int64_t embedding = 0;   // width of the vectors; 0: one-hot

  // How many numbers it becomes.
  int64_t width() const;
  // "age 1, city 4 (one-hot)"
  std::string text() const;
};

// Numbers that the columns become together.
int64_t total_width(const std::vector<ColumnTransform>& columns);

// The input `x` of a model ([N, width]) computed from one input per column: float [N,1] for numbers
// and string [N,1] for categories, in this order: numbers, then categories. Throws OT2172 with both
// widths and each column's share when the model wants another width, OT2173 when it has training
// already.
Model with_preprocessing(const Model& m, const std::string& x,
                         const std::vector<ColumnTransform>& columns, uint64_t seed,
                         const OpTable& ops);

// Numbers that a model computes from its input before it does anything else. They are constants of
// the graph, no weights.
struct InputScale {
  std::vector<float> fill;       // in the place of NaN, per element of the last dimension; or empty
  std::vector<float> mean, std;  // (v - mean) / std
  Shape shape;                   // of mean and std, to be broadcast over a batch
  DType read_as = DType::kUndefined;  // the input takes this type and is cast to its former one
};
Model with_scaled_input(const Model& m, const std::string& x, const InputScale& scale,
                        const OpTable& ops);

}  // namespace onnxtrain
