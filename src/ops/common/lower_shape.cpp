// Shapes with an open batch.
#include "ops/common/lower_shape.hpp"

#include "op/needs_shape.hpp"

namespace onnxtrain::ops {

Shape lowering_shape(GradBuilder& b, ValueId shape, ValueId typed, const char* what) {
  if (shape != kNone)
    if (const Tensor* t = b.constant(shape)) return t->to_ints();
  const TypeInfo& type = b.type(typed);
  bool known = type.is_tensor() && type.shape && !type.shape->empty();
  Shape s;
  for (size_t d = 0; known && d < type.shape->size(); ++d) {
    s.push_back((*type.shape)[d].value);
    known = d == 0 || s.back() >= 0;
  }
  if (!known)
    needs_shape("OT1206", cat(b.node().label(), " in standard operators needs the shape of ", what,
                              ", but it is ", to_string(type)));
  return s;
}

Shape lowering_shape_of_one(GradBuilder& b, ValueId shape, ValueId typed, const char* what) {
  Shape s = lowering_shape(b, shape, typed, what);
  if (!s.empty() && s[0] < 0) s[0] = 1;
  return s;
}

}  // namespace onnxtrain::ops
