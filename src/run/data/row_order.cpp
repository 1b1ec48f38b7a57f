// Sorted rows.
#include "run/data/row_order.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace onnxtrain::run {

namespace {

std::string one_class_each(const std::vector<int64_t>& labels, int64_t batch) {
  const auto n = int64_t(labels.size());
  int64_t batches = 0, single = 0;
  for (int64_t begin = 0; begin < n; begin += batch, ++batches) {
    const auto from = labels.begin() + begin, to = labels.begin() + std::min(n, begin + batch);
    single += std::all_of(from, to, [&](int64_t k) { return k == *from; });
  }
  const bool classes =
      std::any_of(labels.begin(), labels.end(), [&](int64_t k) { return k != labels.front(); });
  if (!classes || batches < 2 || 2 * single <= batches) return {};
  return cat("the rows are sorted by class and are not shuffled: ", single, " of ", batches,
             " batches hold rows of one class, and each is unlearnt in the next");
}

bool rises(const std::vector<double>& v) {
  return std::is_sorted(v.begin(), v.end()) && v.front() != v.back();
}

}  // namespace

std::string order_problem(const FeedColumns& rows, int64_t batch) {
  constexpr int64_t kFewestBatches = 3;
  for (size_t k = 0; k < rows.names.size(); ++k) {
    const Column& c = *rows.columns[k];
    if (rows.names[k] != rows.label || c.row_elements() != 1 || c.dtype() == DType::kString)
      continue;
    std::vector<int64_t> all(size_t(c.rows()));
    for (size_t r = 0; r < all.size(); ++r) all[r] = int64_t(r);
    Tensor values(c.dtype(), {c.rows(), 1});
    c.read(all, values.data());
    if (dtype_is_integer(c.dtype())) return one_class_each(values.to_ints(), batch);
    std::vector<double> v = values.to_doubles();
    if (c.rows() <= kFewestBatches * batch) return {};
    const bool up = rises(v);
    std::reverse(v.begin(), v.end());
    if (up || rises(v))
      return cat(
          "the rows are sorted by the target and are not shuffled: each batch has other "
          "targets than the one before, and what it teaches is unlearnt in the next");
  }
  return {};
}

}  // namespace onnxtrain::run
