// Checkpoints: a training ONNX file with the current state; position, seeds and checksums travel
// in metadata_props (ruling G9). Written atomically; a damaged one is refused by tensor.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/training.hpp"

namespace onnxtrain::run {

struct Position {
  uint64_t step = 0;  // steps done
  uint64_t seed = 0;
  int64_t epoch = 0;    // epochs finished
  int64_t batch = 0;    // batches done of the running epoch
  double loss_sum = 0;  // of the running epoch, and rows behind it
  int64_t rows = 0;
  double best = 0;                  // best value of the watched metric so far
  std::optional<double> best_loss;  // validation loss of that epoch, which decides between equals
  int64_t best_epoch = 0;
  std::string watched;  // which number that is
};

// How batches are cut; what is not given is as the run had it.
struct Cut {
  int blocks = 0;                 // of rows that a batch is cut into; 0: one for each process
  std::string batch_norm;         // local|sync
  std::string reduce_dtype = {};  // float32|bf16; not kept in a run
  bool shard = false;             // optimizer state is shared out; not kept in a run
};

// Writes `path` from the trainer's state; the previous file stays as `path`.previous. `metadata` is
// added to the file's. Tensors of more than `one_file` bytes together go to `path`.0.data, .1.data
// or .2.data, whichever neither the last nor the previous checkpoint uses.
constexpr uint64_t kOneFile = uint64_t(2000) << 20;
void save_checkpoint(const Training& t, const Position& p, const std::string& path,
                     const std::map<std::string, std::string>& metadata = {},
                     uint64_t one_file = kOneFile);

// Loads, verifies checksums (a CheckpointError names the tensor and the previous file if that is
// intact) and reads the position.
Model load_checkpoint(const std::string& path, Position& p);

// A model file of any kind, read once; a checkpoint is verified and its position read, as
// load_checkpoint does.
Model load_model_or_checkpoint(const std::string& path, Position& p);

// The checkpoint at `from` as `to` as well, which keeps its own file as `to`.previous. False when
// tensors stand beside it: then it has to be written.
bool copy_checkpoint(const std::string& from, const std::string& to);

bool is_checkpoint(const Model& m);
// How its batches were cut, as far as it says.
Cut saved_cut(const Model& m);
// The same model without the position and checksums.
void strip_checkpoint_metadata(Model& m);

}  // namespace onnxtrain::run
