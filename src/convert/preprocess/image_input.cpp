// Resize, CenterCropPad and what belongs to them, in front of a network.
#include "convert/preprocess/image_input.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "convert/preprocess/named_node.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "onnx/onnx.hpp"
#include "onnx/raise.hpp"

namespace onnxtrain {

namespace {

constexpr int kResizeOpset = 18;

class Front {
 public:
  Front(Graph& g, int opset, std::string name) : g_(g), opset_(opset), name_(std::move(name)) {}

  ValueId resized(ValueId v, const ImageRule& r) {
    const std::string policy = r.resize == "crop"  ? "not_smaller"
                               : r.resize == "pad" ? "not_larger"
                                                   : "stretch";
    const ValueId size = ints({r.height, r.width}, "size");
    v = add("Resize", {v, kNone, kNone, size}, "resized",
            {{"mode", std::string("linear")},
             {"antialias", int64_t(1)},
             {"exclude_outside", int64_t(1)},
             {"coordinate_transformation_mode", std::string("half_pixel")},
             {"keep_aspect_ratio_policy", policy},
             {"axes", std::vector<int64_t>{2, 3}}});
    if (r.resize == "stretch") return v;
    return add("CenterCropPad", {v, size}, r.resize == "crop" ? "cropped" : "padded",
               {{"axes", std::vector<int64_t>{2, 3}}});
  }
  ValueId cast(ValueId v, DType to) { return add("Cast", {v}, "numbers", {{"to", int64_t(to)}}); }
  ValueId bytes(ValueId v) {
    v = add("Round", {v}, "rounded", {});
    v = add("Clip", {v, number(0), number(255)}, "in_range", {});
    return add("Cast", {v}, "bytes", {{"to", int64_t(DType::kUint8)}});
  }

 private:
  using Attrs = Attributes;

  ValueId add(const char* op, std::vector<ValueId> in, const std::string& what, Attrs attrs) {
    return add_named(g_, op, opset_, std::move(in), name_ + "_" + what, std::move(attrs));
  }
  // Constant nodes: an initializer would be taken for a weight.
  ValueId constant(Tensor t, const std::string& what) {
    return add("Constant", {}, what, {{"value", std::move(t)}});
  }
  ValueId ints(const std::vector<int64_t>& v, const std::string& what) {
    return constant(Tensor::vector(v), what);
  }
  ValueId number(float v) { return constant(Tensor::scalar<float>(v), "limit"); }

  Graph& g_;
  int opset_;
  std::string name_;
};

// Nodes that only make numbers of the bytes: what they give is replaced.
std::vector<ValueId> casts_of(const Graph& g, ValueId x, size_t nodes) {
  std::vector<ValueId> out;
  for (size_t k = 0; k < nodes; ++k) {
    const Node& n = g.nodes[k];
    if (std::find(n.inputs.begin(), n.inputs.end(), x) == n.inputs.end()) continue;
    if (!n.is("Cast") || n.i("to", 0) != int64_t(DType::kFloat)) return {};
    out.push_back(n.outputs[0]);
  }
  return out;
}

}  // namespace

std::optional<ImageRule> image_rule(const std::map<std::string, std::string>& metadata) {
  const auto it = metadata.find(kImageKey);
  if (it == metadata.end()) return {};
  const auto j = nlohmann::json::parse(it->second, nullptr, false);
  if (!j.is_object()) return {};
  ImageRule r;
  auto size = [&](const char* key) {
    const auto v = j.find(key);
    return v != j.end() && v->is_number_integer() ? v->get<int64_t>() : int64_t(0);
  };
  r.height = size("height");
  r.width = size("width");
  const auto how = j.find("resize");
  if (how != j.end() && how->is_string()) r.resize = *how;
  const auto read = j.find("read");
  r.numbers = read != j.end() && *read == "numbers";
  constexpr int64_t kLargest = 1 << 15;
  const bool known = r.resize == "stretch" || r.resize == "crop" || r.resize == "pad";
  if (!known || r.height < 1 || r.width < 1 || r.height > kLargest || r.width > kLargest) return {};
  return r;
}

Model with_image_input(const Model& m, const std::string& x, const ImageRule& rule,
                       const OpTable& ops) {
  OT_ASSERT(m.training.empty());
  Model out = m;
  const auto has = m.opsets.find("");
  if (has == m.opsets.end() || has->second < kResizeOpset) {
    std::optional<Model> raised = raise_opset(m, kResizeOpset, ops);
    if (!raised)
      model_error("OT2204",
                  cat("resizing images in the model needs opset ", kResizeOpset, ", the model has ",
                      has == m.opsets.end() ? 0 : has->second, " and cannot be brought forward"),
                  "export the model at opset 18; without this images are resized while they are "
                  "read");
    out = std::move(*raised);
    out.metadata = m.metadata;
  }
  Graph& g = out.edit_main();
  const ValueId at = g.find(x);
  OT_ASSERT(at != kNone);
  const DType type = g.value(at).type.elem;
  const size_t before = g.nodes.size();
  const std::vector<ValueId> casts =
      type == DType::kUint8 ? casts_of(g, at, before) : std::vector<ValueId>();
  Front f(g, out.opsets.at(""), x);
  ValueId v = f.resized(type == DType::kUint8 ? f.cast(at, DType::kFloat) : at, rule);
  if (type == DType::kUint8 && casts.empty()) v = f.bytes(v);
  const std::vector<ValueId> replaced = casts.empty() ? std::vector<ValueId>{at} : casts;
  for (size_t k = 0; k < before; ++k)
    for (ValueId old : replaced)
      std::replace(g.nodes[k].inputs.begin(), g.nodes[k].inputs.end(), old, v);
  TypeInfo& t = g.value(at).type;
  OT_ASSERT(t.shape && t.shape->size() == 4);
  (*t.shape)[2] = Dim{-1, "height"};
  (*t.shape)[3] = Dim{-1, "width"};
  g.sort();
  g.remove_dead();
  g.renumber();
  out.metadata[kImageKey] = nlohmann::ordered_json{
      {"height", rule.height},
      {"width", rule.width},
      {"resize", rule.resize},
      {"read", "numbers"}}.dump();
  return load_model_bytes(serialize_model(out, ops), "", ops);
}

}  // namespace onnxtrain
