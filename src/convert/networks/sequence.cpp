// transformer, lstm, gru: token ids [time], vectors [time, features], or series of numbers [time].
#include <cmath>

#include "convert/networks/layers.hpp"

namespace onnxtrain {

namespace {

struct Sizes {
  int64_t width, layers;
};

// hidden: the width of every layer; all the same for a transformer.
Sizes sizes_of(const NetworkSpec& spec, int64_t layers) {
  if (spec.hidden.empty()) return {64, layers};
  return {spec.hidden[0], int64_t(spec.hidden.size())};
}

// Rows as [N, time, features]; features: their number.
ValueId as_vectors(Layers& l, ValueId x, const NetworkSpec& spec, int64_t width,
                   int64_t& features) {
  if (spec.vocabulary > 0) {
    features = width;
    return l.embedding(x, "embedding", spec.vocabulary, width);
  }
  if (spec.row.size() == 1) {
    features = 1;
    return l.node("Unsqueeze", {x, l.ints({2})}, "series");
  }
  features = spec.row[1];
  return x;
}

ValueId heads_of(Layers& l, ValueId x, const std::string& name, int64_t width, int64_t heads,
                 bool key) {
  const ValueId parts =
      l.node("Reshape", {x, l.ints({0, -1, heads, width / heads})}, name + ".heads");
  const std::vector<int64_t> order =
      key ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3};
  return l.node("Transpose", {parts}, name + ".order", {{"perm", order}});
}

// Tokens that are there, as numbers [N, time]; kNone without a mask.
ValueId kept(Layers& l, const NetworkSpec& spec) {
  if (spec.mask.empty()) return kNone;
  return l.node("Cast", {l.graph().find(spec.mask)}, "kept", {{"to", int64_t(DType::kFloat)}});
}

// unseen: added to the scores of padding; may be kNone.
ValueId attention(Layers& l, ValueId x, const std::string& name, int64_t width, double dropout,
                  ValueId unseen) {
  const int64_t heads = width % 4 == 0 ? 4 : 1;
  const ValueId q =
      heads_of(l, l.linear(x, name + ".query", width, width), name + ".query", width, heads, false);
  const ValueId k =
      heads_of(l, l.linear(x, name + ".key", width, width), name + ".key", width, heads, true);
  const ValueId v =
      heads_of(l, l.linear(x, name + ".value", width, width), name + ".value", width, heads, false);
  ValueId scores = l.node("MatMul", {q, k}, name + ".scores");
  const int64_t part = width / heads;
  scores = l.node("Mul", {scores, l.number(1 / std::sqrt(double(part)))}, name + ".scaled");
  if (unseen != kNone) scores = l.node("Add", {scores, unseen}, name + ".masked");
  ValueId p = l.node("Softmax", {scores}, name + ".weights", {{"axis", int64_t(-1)}});
  p = l.dropout(p, name + ".dropout", dropout);
  const ValueId mixed = l.node("Transpose", {l.node("MatMul", {p, v}, name + ".mixed")},
                               name + ".back", {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  const ValueId joined = l.node("Reshape", {mixed, l.ints({0, -1, width})}, name + ".joined");
  return l.linear(joined, name + ".output", width, width);
}

// Pre-normalised blocks: attention and a feed-forward layer, each with a shortcut.
ValueId transformer(Layers& l, ValueId x, const NetworkSpec& spec, const Sizes& sizes) {
  const int64_t d = sizes.width;
  int64_t features = 0;
  x = as_vectors(l, x, spec, d, features);
  if (spec.vocabulary == 0) x = l.linear(x, "embedding", features, d);
  x = l.node("Add", {x, l.weight("positions", {spec.row[0], d}, InitialValue::normal(0.02))},
             "positioned");
  const ValueId there = kept(l, spec);
  ValueId unseen = kNone;
  if (there != kNone) {
    unseen = l.node("Mul", {l.node("Sub", {l.number(1), there}, "padding"), l.number(-1e9)},
                    "padding_scores");
    unseen = l.node("Unsqueeze", {unseen, l.ints({1, 2})}, "unseen");
  }
  for (int64_t k = 1; k <= sizes.layers; ++k) {
    const std::string name = "block" + std::to_string(k);
    ValueId y = attention(l, l.layer_norm(x, name + ".norm1", d), name + ".attention", d,
                          spec.dropout, unseen);
    x = l.node("Add", {x, l.dropout(y, name + ".dropout1", spec.dropout)}, name + ".add1");
    y = l.linear(l.layer_norm(x, name + ".norm2", d), name + ".feed1", d, 4 * d);
    y = l.linear(l.gelu(y, name + ".gelu"), name + ".feed2", 4 * d, d);
    x = l.node("Add", {x, l.dropout(y, name + ".dropout2", spec.dropout)}, name + ".add2");
  }
  x = l.layer_norm(x, "norm", d);
  if (there != kNone) {  // the mean of the tokens that are there
    const ValueId seen =
        l.node("Mul", {x, l.node("Unsqueeze", {there, l.ints({2})}, "kept_rows")}, "seen");
    const ValueId sum = l.node("ReduceSum", {seen, l.ints({1})}, "sum", {{"keepdims", int64_t(0)}});
    const ValueId count = l.node("ReduceSum", {there, l.ints({1})}, "count");
    return l.node("Div", {sum, count}, "pool");
  }
  return l.node("ReduceMean", {x}, "pool",
                {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t(0)}});
}

// Weights in ONNX's layout: [directions, gates * hidden, input]; both biases in one tensor.
ValueId recurrent_layer(Layers& l, ValueId x, const std::string& name, const char* op, int64_t in,
                        int64_t hidden, bool last, ValueId lengths) {
  const int64_t gates = std::string(op) == "LSTM" ? 4 : 3;
  const InitialValue start = InitialValue::uniform(1 / std::sqrt(double(hidden)));
  const ValueId w = l.weight(name + ".weight", {1, gates * hidden, in}, start);
  const ValueId r = l.weight(name + ".recurrent", {1, gates * hidden, hidden}, start);
  const ValueId b = l.weight(name + ".bias", {1, 2 * gates * hidden}, InitialValue::constant(0));
  if (gates == 4)  // i, o, f, c: the forget gate starts open
    for (int64_t k = 0; k < hidden; ++k)
      l.graph().value(b).constant.as<float>()[2 * hidden + k] = 1;
  Layers::Attrs attrs{{"hidden_size", hidden}};
  if (gates == 3) attrs["linear_before_reset"] = int64_t(1);
  std::vector<ValueId> inputs = {x, w, r, b};
  if (lengths != kNone) inputs.push_back(lengths);
  const std::vector<ValueId> y = l.node_n(op, inputs, name, 2, attrs);
  // Y [time, 1, N, hidden] for the next layer, Y_h [1, N, hidden] for the head
  return last ? l.node("Squeeze", {y[1], l.ints({0})}, name + ".last")
              : l.node("Squeeze", {y[0], l.ints({1})}, name + ".all");
}

ValueId recurrent(Layers& l, ValueId x, const NetworkSpec& spec, const Sizes& sizes) {
  int64_t features = 0;
  x = as_vectors(l, x, spec, sizes.width, features);
  x = l.node("Transpose", {x}, "time_first", {{"perm", std::vector<int64_t>{1, 0, 2}}});
  const char* op = spec.kind == "lstm" ? "LSTM" : "GRU";
  ValueId lengths = kNone;
  if (!spec.mask.empty()) {
    lengths = l.node("ReduceSum", {l.graph().find(spec.mask), l.ints({1})}, "tokens",
                     {{"keepdims", int64_t(0)}});
    lengths = l.node("Cast", {lengths}, "lengths", {{"to", int64_t(DType::kInt32)}});
  }
  for (int64_t k = 1; k <= sizes.layers; ++k) {
    x = recurrent_layer(l, x, spec.kind + std::to_string(k), op, features, sizes.width,
                        k == sizes.layers, lengths);
    features = sizes.width;
  }
  return x;
}

}  // namespace

void build_sequence(Layers& l, ValueId x, const NetworkSpec& spec) {
  if (spec.row.empty() || spec.row.size() > 2)
    unsuitable(spec, "sequences: token ids [time], numbers [time] or vectors [time, features]",
               "onnxtrain new cnn is for images, onnxtrain new mlp takes any row");
  const Sizes sizes = sizes_of(spec, spec.kind == "transformer" ? 2 : 1);
  x = spec.kind == "transformer" ? transformer(l, x, spec, sizes) : recurrent(l, x, spec, sizes);
  int64_t width = sizes.width;
  if (spec.beside > 0) {
    constexpr int64_t kLayer = 32;
    const ValueId columns =
        l.dense(l.graph().find(kBeside), "columns.layer", spec.beside, kLayer, 2);
    x = l.node("Concat", {x, l.relu(columns, "columns.relu")}, "joined", {{"axis", int64_t(1)}});
    width += kLayer;
  }
  l.head(l.dropout(x, "dropout", spec.dropout), width, spec);
}

}  // namespace onnxtrain
