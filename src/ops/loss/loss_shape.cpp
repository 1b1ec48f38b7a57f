// Attributes and shapes of the losses, and their lowered form.
#include "ops/loss/loss_shape.hpp"

#include "op/needs_shape.hpp"
#include "ops/common/wide.hpp"

namespace onnxtrain::ops {

LossInfo::LossInfo(const Node& n) {
  std::string r = n.s("reduction", "mean");
  if (r == "none")
    reduction = Reduction::kNone;
  else if (r == "sum")
    reduction = Reduction::kSum;
  else if (r != "mean")
    model_error("OT1134", cat("reduction of ", n.op, " is '", r, "', it can be none, sum or mean"));
  has_ignore = n.has("ignore_index");
  ignore = n.i("ignore_index", 0);
}

Shape labels_shape(const Shape& scores) {
  Shape s = scores;
  s.erase(s.begin() + 1);
  return s;
}

void check_loss_inputs(ShapeCtx& c, int at) {
  LossInfo info(c.node());
  const Shape& s = c.shape(at);
  if (s.size() < 2)
    model_error("OT1133", cat("scores of shape ", to_string(s), " have no dimension of classes"));
  if (s[1] == 0 && num_elements(labels_shape(s)) != 0)
    model_error("OT1133", cat("scores of shape ", to_string(s), " have no classes"));
  if (c.shape(at + 1) != labels_shape(s))
    model_error("OT1133", cat("scores of shape ", to_string(s), " need labels of shape ",
                              to_string(labels_shape(s)), ", not ", to_string(c.shape(at + 1))));
  if (c.dtype(at + 1) != DType::kInt64 && c.dtype(at + 1) != DType::kInt32)
    model_error("OT1103",
                cat("labels are ", dtype_name(c.dtype(at + 1)), ", they must be int32 or int64"));
  if (c.has(at + 2)) {
    if (c.shape(at + 2) != Shape{s[1]})
      model_error("OT1133",
                  cat("weights of shape ", to_string(c.shape(at + 2)), " for ", s[1], " classes"));
    if (c.dtype(at + 2) != c.dtype(at))
      model_error("OT1103", "weights and scores have different types");
  }
}

void check_labels(const LossInfo& l, const int64_t* labels) {
  for (int64_t i = 0; i < l.rows.count(); ++i) {
    int64_t v = labels[i];
    if ((v >= 0 && v < l.rows.n) || (l.has_ignore && v == l.ignore)) continue;
    data_error("OT2104",
               cat("label ", v, " of sample ", i, " is out of range: the model has ", l.rows.n,
                   " classes, labels go from 0 to ", l.rows.n - 1),
               cat("labels count from 0: subtract 1 where they begin at 1",
                   l.has_ignore ? "" : "; set ignore_index to leave samples out"));
  }
}

namespace {

// Labels [N,d...] -> [N,C,d...] by comparison with 0..C-1 when the number of classes is known.
ValueId one_hot(GradBuilder& b, ValueId labels, ValueId x) {
  DType t = b.dtype(x);
  if (b.shape_known(x) && b.dtype(labels) != DType::kUndefined) {
    Shape s = b.shape(x), wide(s.size() - 1, 1);
    wide[0] = s[1];
    Tensor classes = dispatch<int64_t, int32_t>(b.dtype(labels), "a label", [&]<class T>() {
      std::vector<T> v;
      for (int64_t k = 0; k < s[1]; ++k) v.push_back(T(k));
      return Tensor::vector<T>(v).reshaped(wide);
    });
    return b.call("Cast", {b.call("Equal", {b.unsqueeze(labels, {1}), b.tensor(classes)})},
                  {{"to", int64_t(t)}});
  }
  ValueId depth = b.call("Gather", {b.shape_of(x), b.constant_ints({1})}, {{"axis", int64_t(0)}});
  // in float, which every runtime has
  ValueId hot = b.call("OneHot", {labels, depth, b.tensor(Tensor::vector<float>({0, 1}))},
                       {{"axis", int64_t(1)}});
  return t == DType::kFloat ? hot : b.call("Cast", {hot}, {{"to", int64_t(t)}});
}

// Labels with 0 in place of the ignored one, and 0 or 1 per sample (kNone: all count).
std::pair<ValueId, ValueId> counted(GradBuilder& b, ValueId labels, ValueId x) {
  LossInfo info(b.node());
  if (!info.has_ignore) return {labels, kNone};
  ValueId ignored = b.call("Equal", {labels, b.scalar(double(info.ignore), labels)});
  return {b.call("Where", {ignored, b.scalar(0, labels), labels}),
          b.call("Where", {ignored, b.scalar(0, x), b.scalar(1, x)})};
}

}  // namespace

ValueId weights_grad(GradBuilder& b, ValueId dloss, ValueId loss, ValueId log_p, ValueId labels,
                     ValueId weights) {
  LossInfo info(b.node());
  if (b.dtype(log_p) == DType::kUndefined)
    needs_shape("OT1205", cat("the gradient of ", b.node().label(), " needs an element type"));
  auto [safe, used] = counted(b, labels, log_p);
  ValueId hot = one_hot(b, safe, log_p);
  // Where, not a product: log(0) is -infinity
  ValueId is_label = b.call("Cast", {hot}, {{"to", int64_t(DType::kBool)}});
  ValueId each = b.neg(b.reduce_sum(b.call("Where", {is_label, log_p, b.scalar(0, log_p)}), {1}));
  ValueId scale = info.reduction == Reduction::kNone ? b.unsqueeze(dloss, {1}) : dloss;
  if (info.reduction == Reduction::kMean) {
    ValueId w = b.call("Gather", {weights, safe}, {{"axis", int64_t(0)}});
    if (used != kNone) w = b.mul(w, used);
    const Expr each_weight = widened(Expr{b, w, b.dtype(log_p)});
    Expr sum{b, b.call("ReduceSum", {each_weight.v}, {{"keepdims", int64_t(0)}}),
             each_weight.dtype};
    const Expr by = where(equal(sum, sum.num(0)), 1.0, sum);
    scale = b.cast_like((widened(Expr{b, scale, b.dtype(log_p)}) / by).v, log_p);
    each = b.sub(each, loss);
  }
  each = b.mul(each, scale);
  if (used != kNone) each = b.mul(each, b.unsqueeze(used, {1}));
  std::vector<int64_t> axes{0};
  for (int64_t d = 2; d < b.need_rank(log_p); ++d) axes.push_back(d);
  return b.reduce_sum(b.mul(hot, each), axes, false);
}

LoweredLabels lower_labels(GradBuilder& b, Expr dloss, Expr x, ValueId labels, ValueId weights) {
  LossInfo info(b.node());
  auto [safe, used] = counted(b, labels, x.v);
  Expr hot{b, one_hot(b, safe, x.v), x.dtype};
  ValueId each = kNone;
  if (weights != kNone) each = b.call("Gather", {weights, safe}, {{"axis", int64_t(0)}});
  if (used != kNone) each = each == kNone ? used : b.mul(each, used);
  if (each == kNone) each = b.cast_like(b.ones_like(labels), x.v);
  Expr factor = widened(Expr{b, each, x.dtype});
  if (info.reduction == Reduction::kMean) {
    GradBuilder::Attrs all{{"keepdims", int64_t(0)}};
    Expr sum{b, b.call("ReduceSum", {factor.v}, all), factor.dtype};
    // everything ignored: 0 / 1
    factor = factor / where(equal(sum, sum.num(0)), 1.0, sum);
  }
  const ValueId scaled = b.cast_like((factor * widened(dloss)).v, x.v);
  return {Expr{b, b.unsqueeze(scaled, {1}), x.dtype}, hot};
}

}  // namespace onnxtrain::ops
