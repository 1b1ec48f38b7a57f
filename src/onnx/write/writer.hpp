// Graph -> GraphProto and the parts of a model file. Internal to onnx/.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "onnx/message/source.hpp"
#include "onnx/message/wire.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {

// What writing a graph from the IR finds out on the way.
struct Used {
  // per domain: every operator with the versions of its nodes
  std::map<std::string, std::map<std::string, std::set<int>>> ops;
  int min_ir = 3;  // features: element types, ...
};

// Writes a graph. `names` gets the name of every value as written. `outer`: names of the values of
// the enclosing graph (null: none); `taken`: names that must not be used again.
class GraphWriter {
 public:
  explicit GraphWriter(Used& used) : used_(used) {}
  // own_tensors: large initializers go to out.tensors; otherwise all stand in the proto.
  void write(const Graph& g, const std::vector<std::string>* outer,
             std::unordered_set<std::string>& taken, GraphOut& out, std::vector<std::string>& names,
             bool split_tensors, const std::unordered_set<std::string>& keep);

 private:
  void name_values(const Graph& g, const std::vector<std::string>* outer,
                   std::unordered_set<std::string>& taken, std::vector<std::string>& names);
  void write_node(const Graph& g, const Node& n, const std::vector<std::string>& names,
                  std::unordered_set<std::string>& taken, onnx::NodeProto& p);
  void write_attr(const std::string& name, const Attr& a, const std::vector<std::string>& names,
                  std::unordered_set<std::string>& taken, onnx::AttributeProto& p);
  Used& used_;
};

// The parts of a file, in memory still.
struct FileParts {
  onnx::ModelProto head;  // all but graph and training_info
  GraphOut graph;
  struct Training {
    GraphOut initialization, algorithm;
    bool has_initialization = false, has_algorithm = false;
    onnx::TrainingInfoProto bindings;
  };
  std::vector<Training> training;

  template <class F>
  void each_tensor(F&& f) {
    for (TensorOut& t : graph.tensors) f(t);
    for (Training& t : training) {
      for (TensorOut& x : t.initialization.tensors) f(x);
      for (TensorOut& x : t.algorithm.tensors) f(x);
    }
  }
};

FileParts make_parts(const Model& m, const OpTable& ops, const SaveOptions& o);
Pieces to_pieces(FileParts& f);

// versions.cpp
using OpsetMapView = std::map<std::string, int>;
int ir_for_opset(int opset);  // the table of the releases
int ir_for_dtype(DType t);    // 3 when the type was always there
void set_imports(onnx::ModelProto& head, const Model& m, const Used& used, bool from_source);
// Functions of operators of our own domain that are in use and not there yet.
void add_functions(onnx::ModelProto& head, const OpTable& ops, Used& used);

}  // namespace onnxtrain
