// Layers written as nodes of standard ONNX with named weights: what the networks are built from.
#pragma once
#include <string>
#include <vector>

#include "convert/networks/networks.hpp"
#include "convert/step/initial_values.hpp"

namespace onnxtrain {

class Layers {
 public:
  using Attrs = Attributes;
  static constexpr int kOpset = 17;

  Layers(Graph& g, uint64_t seed) : g_(g), seed_(seed) {}

  ValueId input(const std::string& name, DType type, const Shape& row);
  ValueId weight(const std::string& name, const Shape& shape, const InitialValue& start);
  // A node; `name` names the node and its output.
  ValueId node(const char* op, std::vector<ValueId> in, const std::string& name, Attrs attrs = {});
  std::vector<ValueId> node_n(const char* op, std::vector<ValueId> in, const std::string& name,
                              int outputs, Attrs attrs = {});
  ValueId ints(const std::vector<int64_t>& v);
  ValueId number(double v);
  ValueId numbers(const std::vector<double>& v);

  // x [N,in] -> [N,out]. gain 2: in front of a ReLU (He), 1: otherwise (LeCun).
  ValueId dense(ValueId x, const std::string& name, int64_t in, int64_t out, double gain);
  // The same over the last dimension of any tensor.
  ValueId linear(ValueId x, const std::string& name, int64_t in, int64_t out);
  // Without bias: a BatchNormalization follows. Padding keeps the size (divided by the stride).
  ValueId conv(ValueId x, const std::string& name, int64_t in, int64_t out, int64_t kernel,
               int64_t stride, int64_t dims);
  ValueId batch_norm(ValueId x, const std::string& name, int64_t channels);
  ValueId layer_norm(ValueId x, const std::string& name, int64_t width);
  ValueId relu(ValueId x, const std::string& name) { return node("Relu", {x}, name); }
  ValueId gelu(ValueId x, const std::string& name);
  // In inference it passes its input on; training makes it drop.
  ValueId dropout(ValueId x, const std::string& name, double ratio);
  // Token ids -> vectors.
  ValueId embedding(ValueId ids, const std::string& name, int64_t vocabulary, int64_t width);
  // The last layer with the scale of the targets, one for each; declares the graph's outputs.
  void head(ValueId x, int64_t in, const NetworkSpec& spec);

  Graph& graph() { return g_; }

 private:
  void one_head(ValueId x, int64_t in, const std::string& name, const NetworkSpec::Head& h);
  Graph& g_;
  uint64_t seed_;
};

// Appends a network of its kind behind the input.
void build_dense(Layers& l, ValueId x, const NetworkSpec& spec);     // linear, mlp
void build_image(Layers& l, ValueId x, const NetworkSpec& spec);     // cnn, resnet
void build_sequence(Layers& l, ValueId x, const NetworkSpec& spec);  // transformer, lstm, gru

// Refuses data that does not suit the kind (OT2170).
[[noreturn]] void unsuitable(const NetworkSpec& spec, const std::string& wants,
                             const std::string& instead);

}  // namespace onnxtrain
