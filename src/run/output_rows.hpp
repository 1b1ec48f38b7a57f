// Outputs of a model batch by batch, put together row by row, and what is known about each.
#pragma once
#include <string>
#include <vector>

#include "distributed/communicator.hpp"
#include "run/predict.hpp"

namespace onnxtrain::run {

class OutputRows {
 public:
  explicit OutputRows(const Graph& main);
  // Results of one batch: `fed` rows went in, the first `rows` of them count.
  void add(const std::vector<std::pair<std::string, Value>>& results, int64_t fed, int64_t rows);
  // Where processes have run every n-th batch each: all rows in every process.
  void gather(Communicator& c);
  // Outputs without a value per row are left out with a note; OT2153 when none is left.
  std::vector<PredictedOutput> finish(Observer& observer);

 private:
  struct One {
    std::string name;
    std::vector<Tensor> parts;
    std::vector<std::string> columns;
    std::string why;  // it has no value per row
  };
  std::vector<One> all_;
};

// floats: the rows are floating-point tensors. main: the output that was trained. classes: names
// of this output's classes.
OutputMeaning meaning(const Model& m, const std::string& output, const Shape& rows, bool floats,
                      bool main, std::vector<std::string> classes);

// Which output is the main one, which hold scores of classes and how they become probabilities.
// classes: names of the classes of the trained output.
void describe_outputs(const Model& m, const std::vector<std::string>& classes, Predictions& p);

}  // namespace onnxtrain::run
