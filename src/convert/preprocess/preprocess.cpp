// Preprocessing as nodes: Imputer, Scaler, OneHotEncoder and LabelEncoder keep their numbers in
// attributes, so nothing of it can be mistaken for a weight.
#include "convert/preprocess/preprocess.hpp"

#include <algorithm>
#include <limits>

#include "convert/preprocess/named_node.hpp"
#include "convert/step/initial_values.hpp"
#include "core/error.hpp"
#include "core/shell.hpp"
#include "core/text.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {

namespace {

using Kind = ColumnTransform::Kind;

class Builder {
 public:
  Builder(Graph& g, ValueId x, int opset, uint64_t seed)
      : g_(g), x_(x), opset_(opset), seed_(seed) {}

  ValueId input(const ColumnTransform& c) {
    TypeInfo t = TypeInfo::tensor(c.kind == Kind::kNumber ? DType::kFloat : DType::kString);
    t.shape = std::vector<Dim>{Dim{-1, "N"}, Dim{1, ""}};
    free_name(c.name);
    const ValueId v = g_.add_value(c.name, t);
    g_.inputs.push_back(v);
    return v;
  }

  ValueId numbers(const std::vector<const ColumnTransform*>& columns) {
    std::vector<ValueId> in;
    std::vector<float> fill, offset, scale;
    for (const ColumnTransform* c : columns) {
      in.push_back(input(*c));
      fill.push_back(float(c->fill));
      offset.push_back(float(c->offset));
      scale.push_back(float(c->scale));
    }
    const ValueId all =
        in.size() == 1 ? in[0] : node("Concat", in, "columns", {{"axis", int64_t(1)}});
    const ValueId filled = ml("Imputer", all, "filled",
                              {{"imputed_value_floats", fill},
                               {"replaced_value_float", std::numeric_limits<float>::quiet_NaN()}});
    return ml("Scaler", filled, "scaled", {{"offset", offset}, {"scale", scale}});
  }

  ValueId category(const ColumnTransform& c) {
    const ValueId text = input(c);
    const auto count = int64_t(c.categories.size());
    if (c.embedding == 0 && c.missing_as.empty()) {
      const ValueId hot = ml("OneHotEncoder", text, c.name + "_one_hot",
                             {{"cats_strings", c.categories}, {"zeros", int64_t(1)}});
      return flat(hot, count, c.name);
    }
    std::vector<int64_t> ids;
    for (int64_t k = 0; k < count; ++k) ids.push_back(k);
    std::vector<std::string> keys = c.categories;
    std::vector<int64_t> values = ids;
    for (int64_t k = 0; k < count && !c.missing_as.empty(); ++k)
      if (c.categories[size_t(k)] == c.missing_as) keys.emplace_back(), values.push_back(k);
    const ValueId id =
        ml("LabelEncoder", text, c.name + "_id",
           {{"keys_strings", keys}, {"values_int64s", values}, {"default_int64", count}});
    if (c.embedding == 0) {
      const ValueId hot = ml("OneHotEncoder", id, c.name + "_one_hot",
                             {{"cats_int64s", ids}, {"zeros", int64_t(1)}});
      return flat(hot, count, c.name);
    }
    const std::string weight = c.name + ".embedding";
    Tensor start =
        draw(DType::kFloat, {count + 1, c.embedding}, InitialValue::normal(0.1), seed_, weight);
    std::fill_n(start.as<float>() + count * c.embedding, c.embedding, 0.0F);  // what nobody saw
    const ValueId table = g_.add_constant(std::move(start), weight);
    g_.value(table).initializer = true;
    return flat(node("Gather", {table, id}, c.name + "_vector", {{"axis", int64_t(0)}}),
                c.embedding, c.name);
  }

  // The parts beside each other become `x`, which is no input any more.
  void join(const std::vector<ValueId>& parts) {
    Node n;
    n.op = parts.size() == 1 ? "Identity" : "Concat";
    n.name = g_.unique_name("preprocessed");
    n.version = opset_;
    n.inputs = parts;
    n.outputs = {x_};
    if (parts.size() > 1) n.attrs["axis"] = int64_t(1);
    g_.nodes.push_back(std::move(n));
  }

 private:
  using Attrs = Attributes;

  ValueId node(const char* op, std::vector<ValueId> in, const std::string& name, Attrs attrs) {
    return add_named(g_, op, opset_, std::move(in), name, std::move(attrs));
  }
  ValueId ml(const char* op, ValueId in, const std::string& name, Attrs attrs) {
    Node n;
    n.domain = kMlDomain;
    n.op = op;
    n.version = kMlOpset;
    n.inputs = {in};
    n.attrs = std::move(attrs);
    return add_named(g_, std::move(n), name);
  }
  // Inputs have the columns' names. Values inside the model give way; what its users know does not.
  void free_name(const std::string& name) {
    const ValueId taken = g_.find(name);
    if (taken == kNone || taken == x_) return;
    const bool known = g_.value(taken).constant.defined() ||
                       std::count(g_.outputs.begin(), g_.outputs.end(), taken) > 0 ||
                       std::count(g_.inputs.begin(), g_.inputs.end(), taken) > 0;
    if (known)
      data_error(
          "OT2174",
          cat("the column '", name, "' has the name of a weight, input or output of the model"),
          cat("rename the column in the data, or leave it out:  --drop ", shell_word(name)));
    g_.value(taken).name = g_.unique_name(name + "_inner");
  }
  ValueId flat(ValueId v, int64_t width, const std::string& name) {
    const ValueId to = g_.add_constant(Tensor::vector(std::vector<int64_t>{-1, width}));
    return node("Reshape", {v, to}, name + "_flat", {});
  }

  Graph& g_;
  ValueId x_;
  int opset_;
  uint64_t seed_;

 public:
  static constexpr int kMlOpset = 3;
};

void check_width(const Graph& g, ValueId x, const std::vector<ColumnTransform>& columns) {
  const TypeInfo& t = g.value(x).type;
  const int64_t wants = t.shape && t.shape->size() == 2 ? (*t.shape)[1].value : -1;
  const int64_t has = total_width(columns);
  if (t.shape && t.shape->size() == 2 && (wants < 0 || wants == has)) return;
  std::string shares;
  for (const ColumnTransform& c : columns) shares += cat(shares.empty() ? "" : ", ", c.text());
  data_error("OT2172",
             cat("the prepared columns are ", has, " numbers per row, and the model's input '",
                 g.value_name(x), "' is ", to_string(t), ": ", shares),
             "onnxtrain new makes a model that fits the data");
}

}  // namespace

int64_t ColumnTransform::width() const {
  if (kind == Kind::kNumber) return 1;
  return embedding > 0 ? embedding : int64_t(categories.size());
}

std::string ColumnTransform::text() const {
  if (kind == Kind::kNumber) return cat(name, " 1");
  return cat(name, " ", width(), embedding > 0 ? " (embedding)" : " (one-hot)");
}

int64_t total_width(const std::vector<ColumnTransform>& columns) {
  int64_t sum = 0;
  for (const ColumnTransform& c : columns) sum += c.width();
  return sum;
}

Model with_preprocessing(const Model& m, const std::string& x,
                         const std::vector<ColumnTransform>& columns, uint64_t seed,
                         const OpTable& ops) {
  if (!m.training.empty())
    data_error("OT2173", "the model carries its training already: preprocessing comes before it",
               "onnxtrain export MODEL -o plain.onnx leaves the training out");
  const ValueId at = m.main.find(x);
  OT_ASSERT(at != kNone);
  check_width(m.main, at, columns);
  Model out = m;
  Graph& g = out.edit_main();
  std::erase(g.inputs, at);
  Builder b(g, at, out.opsets.count("") ? out.opsets.at("") : 17, seed);
  std::vector<const ColumnTransform*> numbers;
  for (const ColumnTransform& c : columns)
    if (c.kind == Kind::kNumber) numbers.push_back(&c);
  std::vector<ValueId> parts;
  if (!numbers.empty()) parts.push_back(b.numbers(numbers));
  for (const ColumnTransform& c : columns)
    if (c.kind == Kind::kCategory) parts.push_back(b.category(c));
  b.join(parts);
  g.value(at).name = g.unique_name(x + "_prepared");
  g.sort();
  g.renumber();
  int& ml = out.opsets[std::string(kMlDomain)];
  ml = std::max(ml, Builder::kMlOpset);
  return load_model_bytes(serialize_model(out, ops), "", ops);
}

Model with_scaled_input(const Model& m, const std::string& x, const InputScale& scale,
                        const OpTable& ops) {
  OT_ASSERT(m.training.empty());
  Model out = m;
  Graph& g = out.edit_main();
  const ValueId at = g.find(x);
  OT_ASSERT(at != kNone);
  const int opset = out.opsets.count("") ? out.opsets.at("") : 17;
  const DType type = g.value(at).type.elem;
  const size_t before = g.nodes.size();
  auto add = [&](const char* op, std::vector<ValueId> in, const std::string& name, Node n = {}) {
    n.op = op;
    if (n.version == 0) n.version = opset;
    n.name = g.unique_name(name);
    n.inputs = std::move(in);
    return g.add_node(std::move(n), 1, name)[0];
  };
  auto constant = [&](const std::vector<float>& v) {
    Tensor t(type, scale.shape);
    OT_ASSERT(size_t(t.size()) == v.size());
    dispatch<float, double>(type, "scale", [&]<class T>() {
      for (size_t k = 0; k < v.size(); ++k) t.as<T>()[k] = T(v[k]);
    });
    Node n;  // an initializer would be taken for a weight
    n.attrs["value"] = std::move(t);
    return add("Constant", {}, x + "_scale", std::move(n));
  };
  ValueId v = at;
  if (scale.read_as != DType::kUndefined && scale.read_as != type) {
    Node cast;
    cast.attrs["to"] = int64_t(type);
    v = add("Cast", {v}, x + "_numbers", std::move(cast));
  }
  if (!scale.fill.empty()) {
    Node n;
    n.domain = kMlDomain;
    n.version = Builder::kMlOpset;
    n.attrs = {{"imputed_value_floats", scale.fill},
               {"replaced_value_float", std::numeric_limits<float>::quiet_NaN()}};
    v = add("Imputer", {v}, x + "_filled", std::move(n));
    int& ml = out.opsets[std::string(kMlDomain)];
    ml = std::max(ml, Builder::kMlOpset);
  }
  v = add("Sub", {v, constant(scale.mean)}, x + "_centered");
  v = add("Div", {v, constant(scale.std)}, x + "_scaled");
  for (size_t k = 0; k < before; ++k)
    std::replace(g.nodes[k].inputs.begin(), g.nodes[k].inputs.end(), at, v);
  if (scale.read_as != DType::kUndefined) g.value(at).type.elem = scale.read_as;
  g.sort();
  g.renumber();
  return load_model_bytes(serialize_model(out, ops), "", ops);
}

}  // namespace onnxtrain
