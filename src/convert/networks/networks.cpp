// The kinds of networks, and a model around them.
#include "convert/networks/networks.hpp"

#include "convert/networks/layers.hpp"
#include "convert/step/names.hpp"
#include "core/error.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {

namespace {

using Build = void (*)(Layers&, ValueId, const NetworkSpec&);
struct Kind : NetworkKind {
  Build build;
};
constexpr Kind kKinds[] = {
    {{"linear", "one layer: linear or logistic regression"}, build_dense},
    {{"mlp", "two dense layers with ReLU, for tables and any other rows"}, build_dense},
    {{"cnn", "convolutions with BatchNormalization, for images and series"}, build_image},
    {{"resnet", "residual blocks, for images"}, build_image},
    {{"transformer", "two attention blocks, for token ids, vectors over time, series"},
     build_sequence},
    {{"lstm", "an LSTM layer, for the same"}, build_sequence},
    {{"gru", "a GRU layer, for the same"}, build_sequence},
};

void check_spec(const NetworkSpec& spec) {
  const std::vector<int64_t>& hidden = spec.hidden;
  if (spec.kind == "linear" && !hidden.empty())
    usage_error("OT0031", "a linear model has no hidden layers", "leave --hidden out, or take mlp");
  const bool sequence = spec.kind == "transformer" || spec.kind == "lstm" || spec.kind == "gru";
  if (sequence &&
      std::any_of(hidden.begin(), hidden.end(), [&](int64_t n) { return n != hidden[0]; }))
    usage_error(
        "OT0031", cat("the layers of a network of kind '", spec.kind, "' have one width"),
        cat("as many numbers as layers, all the same:  --hidden ", hidden[0], ",", hidden[0]));
  for (const int64_t size : spec.hidden)
    if (size < 1 || size > 65536)
      usage_error("OT0031", cat("a hidden layer of ", size, " units is not possible"),
                  "sizes from 1 to 65536: --hidden 128,64");
  if (!(spec.dropout >= 0 && spec.dropout < 1))
    usage_error("OT0031", cat("dropout ", spec.dropout, " is not a probability below 1"),
                "--dropout 0.1");
  for (const int64_t d : spec.row)
    if (d < 1)
      data_error("OT2170",
                 cat("one row of '", spec.input, "' is ", to_string(spec.row),
                     ": a new network needs sizes of 1 or more"),
                 "save rows that have numbers in them");
  auto check_classes = [](const std::string& target, int64_t outputs, bool classes) {
    if (outputs < 1 || (classes && outputs < 2))
      data_error(
          "OT2171",
          cat("the target", target, " has ", outputs,
              " class: a network cannot learn to tell one class from itself"),
          "add rows, or a folder of images, of another class; another column:  --target NAME");
  };
  if (spec.heads.empty()) check_classes("", spec.outputs, spec.classes);
  for (const NetworkSpec::Head& h : spec.heads)
    check_classes(cat(" '", h.output, "'"), h.outputs, h.classes);
}

}  // namespace

const std::vector<NetworkKind>& network_kinds() {
  static const std::vector<NetworkKind> kinds(std::begin(kKinds), std::end(kKinds));
  return kinds;
}

Model new_network(const NetworkSpec& spec, const OpTable& ops) {
  const Kind* kind = nullptr;
  std::vector<std::string> names;
  for (const Kind& k : kKinds) {
    names.emplace_back(k.name);
    if (spec.kind == k.name) kind = &k;
  }
  if (!kind)
    usage_error("OT0030", cat("there is no network of kind '", spec.kind, "'"),
                suggestion(spec.kind, names));
  check_spec(spec);
  Model m;
  m.opsets[""] = Layers::kOpset;
  m.ir_version = 8;
  m.producer_name = "onnxtrain";
  Graph& g = m.edit_main();
  g.name = spec.kind;
  Layers l(g, spec.seed);
  const DType type = spec.vocabulary > 0 ? DType::kInt64 : DType::kFloat;
  const ValueId x = l.input(spec.input, type, spec.row);
  if (!spec.mask.empty()) l.input(spec.mask, DType::kInt64, spec.row);
  if (spec.beside > 0) l.input(kBeside, DType::kFloat, {spec.beside});
  kind->build(l, x, spec);
  g.renumber();
  // read again: checked, with the types of all values
  return load_model_bytes(serialize_model(m, ops), "", ops);
}

}  // namespace onnxtrain
