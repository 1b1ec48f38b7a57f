// Layers as nodes of standard ONNX.
#include "convert/networks/layers.hpp"

#include <cmath>

#include "convert/step/step_builder.hpp"
#include "core/error.hpp"

namespace onnxtrain {

namespace {
TypeInfo batch_of(DType type, const Shape& row) {
  TypeInfo t = TypeInfo::tensor(type);
  t.shape = std::vector<Dim>{Dim{-1, "N"}};
  for (int64_t d : row) t.shape->push_back(Dim{d, ""});
  return t;
}
}  // namespace

ValueId Layers::input(const std::string& name, DType type, const Shape& row) {
  const ValueId v = g_.add_value(name, batch_of(type, row));
  g_.inputs.push_back(v);
  return v;
}

ValueId Layers::weight(const std::string& name, const Shape& shape, const InitialValue& start) {
  const ValueId v = g_.add_constant(draw(DType::kFloat, shape, start, seed_, name), name);
  g_.value(v).initializer = true;
  return v;
}

std::vector<ValueId> Layers::node_n(const char* op, std::vector<ValueId> in,
                                    const std::string& name, int outputs, Attrs attrs) {
  Node n;
  n.op = op;
  n.name = name;
  n.version = kOpset;
  n.inputs = std::move(in);
  n.attrs = std::move(attrs);
  return g_.add_node(std::move(n), outputs, name);
}

ValueId Layers::node(const char* op, std::vector<ValueId> in, const std::string& name,
                     Attrs attrs) {
  return node_n(op, std::move(in), name, 1, std::move(attrs))[0];
}

ValueId Layers::ints(const std::vector<int64_t>& v) { return g_.add_constant(Tensor::vector(v)); }
ValueId Layers::number(double v) { return g_.add_constant(Tensor::scalar(float(v))); }
ValueId Layers::numbers(const std::vector<double>& v) {
  if (v.size() == 1) return number(v[0]);
  // an initializer would be taken for a weight
  return node("Constant", {}, "numbers",
              {{"value", Tensor::vector(std::vector<float>(v.begin(), v.end()))}});
}

ValueId Layers::dense(ValueId x, const std::string& name, int64_t in, int64_t out, double gain) {
  const ValueId w =
      weight(name + ".weight", {out, in}, InitialValue::normal(std::sqrt(gain / double(in))));
  const ValueId b = weight(name + ".bias", {out}, InitialValue::constant(0));
  return node("Gemm", {x, w, b}, name, {{"transB", int64_t(1)}});
}

ValueId Layers::linear(ValueId x, const std::string& name, int64_t in, int64_t out) {
  const ValueId w =
      weight(name + ".weight", {in, out}, InitialValue::uniform(std::sqrt(6.0 / double(in + out))));
  const ValueId b = weight(name + ".bias", {out}, InitialValue::constant(0));
  return node("Add", {node("MatMul", {x, w}, name + ".matmul"), b}, name);
}

ValueId Layers::conv(ValueId x, const std::string& name, int64_t in, int64_t out, int64_t kernel,
                     int64_t stride, int64_t dims) {
  Shape shape{out, in};
  double fan = double(in);
  for (int64_t d = 0; d < dims; ++d) shape.push_back(kernel), fan *= double(kernel);
  const ValueId w = weight(name + ".weight", shape, InitialValue::normal(std::sqrt(2 / fan)));
  const auto n = size_t(dims);
  return node("Conv", {x, w}, name,
              {{"kernel_shape", std::vector<int64_t>(n, kernel)},
               {"strides", std::vector<int64_t>(n, stride)},
               {"pads", std::vector<int64_t>(2 * n, kernel / 2)}});
}

ValueId Layers::batch_norm(ValueId x, const std::string& name, int64_t channels) {
  std::vector<ValueId> in{x};
  const std::pair<const char*, double> parts[] = {
      {".scale", 1}, {".bias", 0}, {".running_mean", 0}, {".running_var", 1}};
  for (const auto& [part, value] : parts)
    in.push_back(weight(name + part, {channels}, InitialValue::constant(value)));
  return node("BatchNormalization", in, name, {{"epsilon", 1e-5f}, {"momentum", 0.9f}});
}

ValueId Layers::layer_norm(ValueId x, const std::string& name, int64_t width) {
  const ValueId scale = weight(name + ".scale", {width}, InitialValue::constant(1));
  const ValueId bias = weight(name + ".bias", {width}, InitialValue::constant(0));
  return node("LayerNormalization", {x, scale, bias}, name,
              {{"axis", int64_t(-1)}, {"epsilon", 1e-5f}});
}

ValueId Layers::gelu(ValueId x, const std::string& name) {
  const ValueId scaled = node("Mul", {x, number(std::sqrt(0.5))}, name + ".scaled");
  const ValueId shifted =
      node("Add", {node("Erf", {scaled}, name + ".erf"), number(1)}, name + ".shifted");
  const ValueId half = node("Mul", {x, number(0.5)}, name + ".half");
  return node("Mul", {half, shifted}, name);
}

ValueId Layers::dropout(ValueId x, const std::string& name, double ratio) {
  return ratio > 0 ? node("Dropout", {x, number(ratio)}, name) : x;
}

ValueId Layers::embedding(ValueId ids, const std::string& name, int64_t vocabulary, int64_t width) {
  const ValueId table = weight(name + ".weight", {vocabulary, width}, InitialValue::normal(0.02));
  return node("Gather", {table, ids}, name, {{"axis", int64_t(0)}});
}

void Layers::head(ValueId x, int64_t in, const NetworkSpec& spec) {
  const std::string one =
      !spec.output.empty() ? spec.output : (spec.classes ? "logits" : "prediction");
  if (spec.heads.empty())
    one_head(x, in, "head",
             {one, spec.outputs, spec.classes, spec.target_mean, spec.target_deviation});
  for (size_t k = 0; k < spec.heads.size(); ++k)
    one_head(x, in, "head" + std::to_string(k + 1), spec.heads[k]);
}

void Layers::one_head(ValueId x, int64_t in, const std::string& name, const NetworkSpec::Head& h) {
  ValueId y = dense(x, name, in, h.outputs, 1);
  if (!h.classes && !h.mean.empty()) {
    y = node("Mul", {y, numbers(h.deviation)}, name + ".scaled");
    y = node("Add", {y, numbers(h.mean)}, name + ".shifted");
  }
  ValueDef& d = g_.value(y);
  d.name = h.output;
  d.type = batch_of(DType::kFloat, {h.outputs});
  g_.outputs.push_back(y);
}

void unsuitable(const NetworkSpec& spec, const std::string& wants, const std::string& instead) {
  data_error("OT2170",
             cat("a network of kind '", spec.kind, "' needs ", wants, ", and one row of '",
                 spec.input, "' is ", to_string(spec.row)),
             instead);
}

}  // namespace onnxtrain
