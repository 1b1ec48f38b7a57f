// How a training whose batches are cut into blocks computes them.
#pragma once

namespace onnxtrain {

struct BlockOptions {
  bool sync_norm = false;  // BatchNormalization by the statistics of the whole batch
  bool narrow = false;     // gradients are bfloat16 between processes
  bool shard = false;      // optimizer state and updates are shared out among processes
};

}  // namespace onnxtrain
