// Augmentation as nodes of the algorithm.
#include "convert/step/augment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include "convert/step/losses.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "onnx/onnx.hpp"
#include "onnx/raise.hpp"

namespace onnxtrain {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int kQuantiles = 1025;

// What is known of the image before a batch is there: sizes, or -1.
struct ImageInput {
  ValueId value = kNone;  // of the main graph
  bool channels_last = false;
  int64_t height = -1, width = -1;
};

std::optional<ImageInput> as_image(const Graph& g, ValueId v) {
  const TypeInfo& t = g.value(v).type;
  if (!t.is_tensor() || !t.shape || t.shape->size() != 4 || t.elem == DType::kString ||
      t.elem == DType::kBool || !(dtype_is_float(t.elem) || dtype_is_integer(t.elem)))
    return {};
  auto size = [&](size_t k) { return (*t.shape)[k].known() ? (*t.shape)[k].value : int64_t(-1); };
  auto channels = [&](size_t k) { return size(k) == 1 || size(k) == 3 || size(k) == 4; };
  ImageInput in;
  in.value = v;
  in.channels_last = channels(3) && !channels(1);
  in.height = size(in.channels_last ? 1 : 2);
  in.width = size(in.channels_last ? 2 : 3);
  return in;
}

// Open sizes: what the file says that images are resized to.
void size_from_metadata(const Model& m, ImageInput& in) {
  const auto said = m.metadata.find("onnxtrain.image");
  if (said == m.metadata.end()) return;
  const auto j = nlohmann::json::parse(said->second, nullptr, false);
  if (!j.is_object() || !j.contains("height") || !j.contains("width")) return;
  if (!j["height"].is_number_integer() || !j["width"].is_number_integer()) return;
  if (in.height < 0) in.height = j["height"];
  if (in.width < 0) in.width = j["width"];
}

ImageInput image_input(const Model& m, const std::string& augment) {
  std::string all;
  for (ValueId v : m.main.inputs) {
    if (m.main.value(v).constant.defined()) continue;
    if (auto in = as_image(m.main, v)) {
      size_from_metadata(m, *in);
      return *in;
    }
    all += cat(all.empty() ? "" : ", ", "'", m.main.value_name(v), "' ",
               to_string(m.main.value(v).type));
  }
  usage_error("OT2212",
              cat("augment ", augment, ": no input of the model is an image [N,C,H,W]: ", all),
              "remove --augment; an ONNX graph of your own can change other rows:  --augment "
              "my.onnx");
}

class Augmenter {
 public:
  // x: rows of images [N,C,H,W] of a floating-point type.
  Augmenter(StepBuilder& s, ValueId x, DType type) : s_(s), b_(s.nodes()), x_(x), type_(type) {}

  ValueId apply(const Augmentation& a) {
    if (a.kind == "flip") flip(a.amount);
    if (a.kind == "crop") crop(int64_t(a.amount));
    if (a.kind == "rotate") rotate(a.amount);
    if (a.kind == "color") color(a.amount);
    if (a.kind == "cutout") cutout(a.amount);
    return x_;
  }

 private:
  using Attrs = GradBuilder::Attrs;

  ValueId number(double v) { return b_.tensor(scalar_tensor(v, type_)); }

  // One random number per row, [N,1,1,1].
  ValueId draw(const std::string& name, double low, double high) {
    const ValueId one =
        b_.call("Slice", {x_, b_.constant_ints({0, 0, 0}), b_.constant_ints({1, 1, 1}),
                          b_.constant_ints({1, 2, 3})});
    Node n;
    n.op = "RandomUniformLike";
    n.name = "augment/" + name;  // the name is the identity of its random numbers
    n.version = std::min(s_.opset(), 21);
    n.inputs = {one};
    n.attrs = {{"low", float(low)}, {"high", float(high)}, {"dtype", int64_t(type_)}};
    const ValueId v = s_.graph().add_node(std::move(n), 1)[0];
    s_.set_type(v, TypeInfo::tensor(type_));
    return v;
  }

  // The size along an axis, as an int64 scalar.
  ValueId size(int64_t axis) {
    return b_.call("Gather", {b_.call("Shape", {x_}), b_.constant_int(axis)},
                   {{"axis", int64_t(0)}});
  }
  // 0, 1, ... along axis 2 or 3.
  ValueId places(int64_t axis) {
    const ValueId all = b_.call("Range", {b_.constant_int(0), size(axis), b_.constant_int(1)});
    return b_.unsqueeze(all,
                        axis == 2 ? std::vector<int64_t>{0, 1, 3} : std::vector<int64_t>{0, 1, 2});
  }
  ValueId real(ValueId v) { return b_.call("Cast", {v}, {{"to", int64_t(type_)}}); }
  ValueId whole(ValueId v) { return b_.call("Cast", {v}, {{"to", int64_t(DType::kInt64)}}); }
  ValueId mean(ValueId v, const std::vector<int64_t>& axes) {
    return s_.opset() >= 18 ? b_.call("ReduceMean", {v, b_.constant_ints(axes)})
                            : b_.call("ReduceMean", {v}, {{"axes", axes}});
  }

  void flip(double probability) {
    const int64_t before_first = std::numeric_limits<int64_t>::min();
    const ValueId mirrored =
        b_.call("Slice", {x_, b_.constant_ints({-1}), b_.constant_ints({before_first}),
                          b_.constant_ints({3}), b_.constant_ints({-1})});
    const ValueId which = b_.call("Less", {draw("flip", 0, 1), number(probability)});
    x_ = b_.call("Where", {which, mirrored, x_});
  }

  // Moved by up to `by` pixels each way; what comes in from outside is 0.
  void crop(int64_t by) {
    ValueId shift[2];
    const char* names[2] = {"crop_y", "crop_x"};
    for (int k = 0; k < 2; ++k)
      shift[k] = b_.call("Min", {whole(b_.call("Floor", {draw(names[k], 0, double(2 * by + 1))})),
                                 b_.constant_int(2 * by)});
    const ValueId rows = b_.add(places(2), shift[0]), columns = b_.add(places(3), shift[1]);
    const ValueId shape = b_.call("Shape", {x_});
    const ValueId wide = b_.add(shape, b_.constant_ints({0, 0, 0, 2 * by}));
    const ValueId padded =
        b_.call("Pad", {x_, b_.constant_ints({0, 0, by, by, 0, 0, by, by}), number(0)});
    const ValueId lines = b_.call("GatherElements", {padded, b_.call("Expand", {rows, wide})},
                                  {{"axis", int64_t(2)}});
    x_ = b_.call("GatherElements", {lines, b_.call("Expand", {columns, shape})},
                 {{"axis", int64_t(3)}});
  }

  // Distance of pixel centres from the image's centre along an axis.
  ValueId centered(int64_t axis) {
    const ValueId half = b_.mul(real(size(axis)), number(0.5));
    return b_.sub(b_.add(real(places(axis)), number(0.5)), half);
  }

  void rotate(double degrees) {
    const ValueId angle = b_.mul(draw("rotate", -degrees, degrees), number(kPi / 180));
    const ValueId cos = b_.call("Cos", {angle}), sin = b_.call("Sin", {angle});
    const ValueId dy = centered(2), dx = centered(3);
    auto place = [&](ValueId a, ValueId b, int64_t axis) {  // from -1 to 1 over the image's edges
      const ValueId scaled = b_.div(b_.mul(b_.add(a, b), number(2)), real(size(axis)));
      return b_.unsqueeze(b_.squeeze(scaled, {1}), {3});
    };
    const ValueId gx = place(b_.mul(cos, dx), b_.mul(sin, dy), 3);
    const ValueId gy = place(b_.neg(b_.mul(sin, dx)), b_.mul(cos, dy), 2);
    const ValueId grid = b_.call("Concat", {gx, gy}, {{"axis", int64_t(3)}});
    x_ = b_.call("GridSample", {x_, grid},
                 {{"mode", std::string(s_.opset() >= 20 ? "linear" : "bilinear")},
                  {"padding_mode", std::string("zeros")},
                  {"align_corners", int64_t(0)}});
  }

  // Brightness, contrast and saturation, each by a factor of its own.
  void color(double by) {
    x_ = b_.mul(x_, draw("brightness", 1 - by, 1 + by));
    auto away_from = [&](const ValueId middle, const char* name) {
      x_ = b_.add(b_.mul(b_.sub(x_, middle), draw(name, 1 - by, 1 + by)), middle);
    };
    away_from(mean(x_, {1, 2, 3}), "contrast");
    away_from(mean(x_, {1}), "saturation");
  }

  void cutout(double side) {
    ValueId inside[2];
    const char* names[2] = {"cutout_y", "cutout_x"};
    for (int k = 0; k < 2; ++k) {
      const int64_t axis = 2 + k;
      const ValueId centre = b_.call("Floor", {b_.mul(draw(names[k], 0, 1), real(size(axis)))});
      const ValueId from = b_.sub(centre, number(std::floor(side / 2)));
      const ValueId at = real(places(axis));
      inside[k] = b_.call("And", {b_.call("GreaterOrEqual", {at, from}),
                                  b_.call("Less", {at, b_.add(from, number(side))})});
    }
    x_ = b_.call("Where", {b_.call("And", {inside[0], inside[1]}), number(0), x_});
  }

  StepBuilder& s_;
  GradBuilder& b_;
  ValueId x_;
  DType type_;
};

void check_sizes(const std::vector<Augmentation>& all, const ImageInput& in,
                 const std::string& name) {
  if (in.height < 0 || in.width < 0) return;
  const int64_t side = std::min(in.height, in.width);
  for (const Augmentation& a : all) {
    const bool crop = a.kind == "crop", cutout = a.kind == "cutout";
    if (!(crop && a.amount >= double(side)) && !(cutout && a.amount > double(side))) continue;
    usage_error(
        "OT2213",
        cat("augment: ", a.kind, ":", a.amount, " is too large for '", name, "', whose images are ",
            in.height, " x ", in.width, crop ? ": nothing of the image would be left" : ""),
        side > 1 ? cat("--augment ", a.kind, ":", std::max<int64_t>(1, side / 8))
                 : std::string("remove --augment"));
  }
}

// A graph of the user's: one input, and as its first output the changed rows.
ValueId own_graph(StepBuilder& s, const std::string& path, ValueId x) {
  const Model file = load_model(path, s.ops());
  std::vector<ValueId> inputs;
  for (ValueId v : file.main.inputs)
    if (!file.main.value(v).constant.defined()) inputs.push_back(v);
  auto refuse = [&](const std::string& why) {
    model_error("OT2214", cat("augment: the graph '", path, "' ", why),
                "it takes the model's input and gives rows of the same type and shape");
  };
  if (inputs.size() != 1 || file.main.outputs.empty())
    refuse(cat("has ", inputs.size(), " inputs and ", file.main.outputs.size(),
               " outputs; one of each is needed"));
  const TypeInfo have = s.graph().value(x).type;
  for (const ValueId v : {inputs[0], file.main.outputs[0]}) {
    const TypeInfo& t = file.main.value(v).type;
    const bool numbers = t.is_tensor() && t.elem != DType::kString;
    const bool rank = !t.shape || !have.shape || t.shape->size() == have.shape->size();
    bool sizes = rank;
    for (size_t k = 1; sizes && t.shape && have.shape && k < t.shape->size(); ++k)
      sizes = !(*t.shape)[k].known() || !(*have.shape)[k].known() ||
              (*t.shape)[k].value == (*have.shape)[k].value;
    if (!numbers || !sizes)
      refuse(cat("has '", file.main.value_name(v), "' ", to_string(t), ", the model's input is ",
                 to_string(have)));
  }
  const std::optional<Model> at = at_opset(file, s.opset(), s.ops());
  if (!at) refuse(cat("cannot be brought to opset ", s.opset(), " of the model"));
  const Graph& g = at->main;
  ValueId input = kNone;
  for (ValueId v : g.inputs)
    if (!g.value(v).constant.defined()) input = v;
  const DType wanted = g.value(input).type.elem;
  const ValueId fed = wanted == DType::kUndefined ? x : s.cast(x, wanted);
  const auto to = inline_graph(s, g, {{input, fed}}, "augment/");
  ValueId out = to.at(g.outputs[0]);
  if (s.graph().value(out).type.elem != have.elem)
    out = s.nodes().call("Cast", {out}, {{"to", int64_t(have.elem)}});
  return out;
}

// Whole numbers again: rounded, within the range of the type.
ValueId back_to(StepBuilder& s, ValueId x, DType from, DType to) {
  GradBuilder& b = s.nodes();
  if (from == to) return x;
  if (dtype_is_integer(to)) {
    x = b.call("Round", {x});
    const double low = to == DType::kInt8 ? -128 : 0, high = to == DType::kInt8 ? 127 : 255;
    if (to == DType::kUint8 || to == DType::kInt8)
      x = b.call("Clip",
                 {x, b.tensor(scalar_tensor(low, from)), b.tensor(scalar_tensor(high, from))});
  }
  return b.call("Cast", {x}, {{"to", int64_t(to)}});
}

// A number between 0 and 1, drawn once for the batch from Beta(a, a).
ValueId mixing_share(StepBuilder& s, double a) {
  GradBuilder& b = s.nodes();
  Node n;
  n.op = "RandomUniform";
  n.name = "augment/mixup";
  n.version = std::min(s.opset(), 21);
  n.attrs = {{"low", 0.0F}, {"high", 1.0F}, {"shape", std::vector<int64_t>{1}}};
  const ValueId u = s.graph().add_node(std::move(n), 1)[0];
  s.set_type(u, TypeInfo::tensor(DType::kFloat));
  auto number = [&](double v) { return b.tensor(scalar_tensor(v, DType::kFloat)); };
  const std::vector<float> table = beta_quantiles(a, kQuantiles);
  const ValueId values = b.tensor(Tensor::vector(table));
  const ValueId place = b.mul(b.squeeze(u, {0}), number(kQuantiles - 1));
  const ValueId low = b.call("Min", {b.call("Floor", {place}), number(kQuantiles - 2)});
  const ValueId index = b.call("Cast", {low}, {{"to", int64_t(DType::kInt64)}});
  const ValueId at = b.call("Gather", {values, index}, {{"axis", int64_t(0)}});
  const ValueId next =
      b.call("Gather", {values, b.add(index, b.constant_int(1))}, {{"axis", int64_t(0)}});
  const ValueId share = b.add(at, b.mul(b.sub(place, low), b.sub(next, at)));
  s.rename(share, "mixup_share");
  s.set_type(share, TypeInfo::tensor(DType::kFloat, {}));
  return share;
}

ValueId mixed(StepBuilder& s, ValueId x, ValueId share, DType type) {
  GradBuilder& b = s.nodes();
  const ValueId own = s.cast(share, type);
  const ValueId other = b.sub(b.tensor(scalar_tensor(1, type)), own);
  return b.add(b.mul(x, own), b.mul(next_rows(s, x), other));
}

}  // namespace

ValueId next_rows(StepBuilder& s, ValueId rows) {
  GradBuilder& b = s.nodes();
  auto part = [&](int64_t from, int64_t to) {
    return b.call("Slice",
                  {rows, b.constant_ints({from}), b.constant_ints({to}), b.constant_ints({0})});
  };
  const ValueId out = b.call("Concat", {part(1, std::numeric_limits<int64_t>::max()), part(0, 1)},
                             {{"axis", int64_t(0)}});
  s.set_type(out, s.graph().value(rows).type);
  return out;
}

ValueId add_augmentation(StepBuilder& s, const std::string& augment) {
  const std::vector<Augmentation> all = parse_augment(augment);
  if (all.empty()) return kNone;
  const Model& m = s.model();
  const bool only_graphs = std::all_of(
      all.begin(), all.end(), [](const Augmentation& a) { return a.kind.ends_with(".onnx"); });
  ImageInput in;
  std::vector<ValueId> inputs;
  for (ValueId v : m.main.inputs)
    if (!m.main.value(v).constant.defined()) inputs.push_back(v);
  if (only_graphs && inputs.size() == 1)
    in.value = inputs[0];  // rows of any kind
  else
    in = image_input(m, augment_text(augment));
  check_sizes(all, in, m.main.value_name(in.value));
  const TypeInfo type = m.main.value(in.value).type;
  const DType work = type.elem == DType::kDouble ? DType::kDouble : DType::kFloat;
  GradBuilder& b = s.nodes();
  ValueId x = s.from_main(in.value), share = kNone;
  for (const Augmentation& a : all) {
    if (a.kind.ends_with(".onnx")) {
      // bytes may be fed as numbers between them (run/data/feeds.hpp): the user's graph gets bytes
      if (type.elem == DType::kUint8) x = back_to(s, s.cast(x, work), work, type.elem);
      s.set_type(x, type);
      x = own_graph(s, a.kind, x);
      s.set_type(x, type);
      continue;
    }
    ValueId v = s.cast(x, work);
    if (a.kind == "mixup") {
      share = mixing_share(s, a.amount);
      v = mixed(s, v, share, work);
    } else {
      if (in.channels_last) v = b.transpose(v, {0, 3, 1, 2});
      v = Augmenter(s, v, work).apply(a);
      if (in.channels_last) v = b.transpose(v, {0, 2, 3, 1});
    }
    x = back_to(s, v, work, type.elem);
    s.set_type(x, type);
  }
  s.rename(x, m.main.value_name(in.value) + "_augmented");
  s.set_training_copy(in.value, x);
  return share;
}

}  // namespace onnxtrain
