// NonMaxSuppression: the best boxes of each class that do not overlap much.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "op/op.hpp"

namespace onnxtrain::ops {

namespace {

struct Box {
  float y0, x0, y1, x1;
  float area() const { return (y1 - y0) * (x1 - x0); }
};

Box box_of(const float* b, bool center) {
  if (center) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

float overlap(const Box& a, const Box& b) {
  float h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0),
        w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(h > 0 && w > 0) || a.area() <= 0 || b.area() <= 0) return 0;
  float both = h * w;
  return both / (a.area() + b.area() - both);
}

void shape(ShapeCtx& c) {
  const Shape &boxes = c.shape(0), &scores = c.shape(1);
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2])
    model_error("OT1174",
                cat("boxes ", to_string(boxes), " and scores ", to_string(scores), " do not fit"));
  for (int i : {2, 3, 4})
    if (c.has(i) && num_elements(c.shape(i)) != 1)
      model_error("OT1174", "a threshold of NonMaxSuppression is not one number");
  if (c.dtype(0) != DType::kFloat || c.dtype(1) != DType::kFloat)
    model_error("OT1174", "NonMaxSuppression needs float32");
  int64_t center = c.node().i("center_point_box", 0);
  if (center != 0 && center != 1) model_error("OT1174", cat("center_point_box is ", center));
  c.set_dynamic(0, DType::kInt64);
}

Kernel make(Prepare& p) {
  int64_t batches = p.in(1).shape[0], classes = p.in(1).shape[1], n = p.in(1).shape[2];
  bool center = p.node().i("center_point_box", 0) == 1, has_most = p.has(2), has_iou = p.has(3),
       has_score = p.has(4);
  return [=](const Run& r) {
    int64_t most = has_most ? *r.in<int64_t>(2) : 0;
    float iou = has_iou ? *r.in<float>(3) : 0;
    std::vector<int64_t> found, order(static_cast<size_t>(n));
    std::vector<Box> kept;
    for (int64_t b = 0; b < batches && most > 0; ++b)
      for (int64_t c = 0; c < classes; ++c) {
        const float* s = r.in<float>(1) + (b * classes + c) * n;
        order.clear();
        for (int64_t k = 0; k < n; ++k)
          if (!std::isnan(s[k]) && (!has_score || s[k] > *r.in<float>(4))) order.push_back(k);
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t i, int64_t j) { return s[i] > s[j]; });
        kept.clear();
        for (int64_t k : order) {
          if (int64_t(kept.size()) >= most) break;
          Box box = box_of(r.in<float>(0) + (b * n + k) * 4, center);
          if (std::any_of(kept.begin(), kept.end(),
                          [&](const Box& o) { return overlap(box, o) > iou; }))
            continue;
          kept.push_back(box);
          found.insert(found.end(), {b, c, k});
        }
      }
    int64_t* out = r.allocate<int64_t>(0, {int64_t(found.size()) / 3, 3});
    std::copy(found.begin(), found.end(), out);
  };
}

}  // namespace

void register_non_max_suppression(OpTable& t) {
  t.add({.name = "NonMaxSuppression",
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .no_grad = "its result is indices",
         .settings_from = 2});
}

}  // namespace onnxtrain::ops
