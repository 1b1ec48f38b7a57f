// New networks for those who have data and no model: small, standard ONNX, sized for the data, with
// initial values, ready to be trained.
#pragma once
#include <string>
#include <vector>

#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

// What the network is made for: one row of the data and what is to be learned from it.
struct NetworkSpec {
  std::string kind = "mlp";  // one of network_kinds()
  std::string input = "x";
  Shape row;               // of one row, without the batch dimension
  int64_t vocabulary = 0;  // > 0: the input holds int64 token ids 0..vocabulary-1
  // Not empty: a second input int64 of the same shape, 1 for tokens that are there, 0 for padding
  // behind them (transformer, lstm, gru).
  std::string mask;
  // > 0: one more input "columns", float [N, beside], that joins what the network makes of the
  // sequence in front of the last layer (transformer, lstm, gru).
  int64_t beside = 0;
  std::string output;   // name of the output; empty: "logits" for classes, else "prediction"
  int64_t outputs = 1;  // classes, or numbers per row
  bool classes = false;
  // Numbers to learn: mean and standard deviation per output. The network ends with
  // y * deviation + mean as constants, so that it learns numbers near 1. Empty: none.
  std::vector<double> target_mean, target_deviation;
  // Not empty: an output for each of these, instead of `output`, `outputs` and what follows them.
  struct Head {
    std::string output;
    int64_t outputs = 1;
    bool classes = false;
    std::vector<double> mean, deviation;
  };
  std::vector<Head> heads;
  std::vector<int64_t> hidden;  // sizes of the hidden layers; empty: chosen by kind and row
  double dropout = 0;
  uint64_t seed = 0;
};

inline constexpr const char* kBeside = "columns";

struct NetworkKind {
  const char* name;
  const char* text;  // what it is and which data it is for
};
const std::vector<NetworkKind>& network_kinds();

// Throws OT0030 for an unknown kind and OT2170 when the rows of the data do not suit the kind.
Model new_network(const NetworkSpec& spec, const OpTable& ops);

}  // namespace onnxtrain
