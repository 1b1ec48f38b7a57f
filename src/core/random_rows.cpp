// The rows that a thread computes.
#include "core/random_rows.hpp"

namespace onnxtrain {

namespace {
thread_local const RandomRows* t_rows = nullptr;
}

const RandomRows* RandomRows::current() { return t_rows; }

RandomRowsScope::RandomRowsScope(const RandomRows& rows) : rows_(rows), before_(t_rows) {
  t_rows = &rows_;
}
RandomRowsScope::~RandomRowsScope() { t_rows = before_; }

RandomPlaces RandomPlaces::here() const {
  RandomPlaces p = *this;
  const RandomRows* r = t_rows;
  if (axis_ < 0 || r == nullptr || r->rows == 0 || segment_ == 0) return p;
  const int64_t row = segment_ / r->rows;  // elements of a row, within one segment
  p.global_ = row * r->total;
  p.offset_ = row * r->first;
  return p;
}

}  // namespace onnxtrain
