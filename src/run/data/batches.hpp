// Where an epoch gets its batches from: the rows of columns in an order made by (seed, epoch), or a
// stream of batches that somebody else makes.
#pragma once
#include <functional>
#include <memory>

#include "data/columns/stream.hpp"
#include "engine/session.hpp"
#include "run/data/feeds.hpp"

namespace onnxtrain::run {

struct FedBatch {
  int64_t index = 0;  // within the epoch
  int64_t rows = 0;
  Feeds feeds;  // by the names of the training's inputs
};

class Batches {
 public:
  virtual ~Batches() = default;
  // Starts an epoch at batch `first` (a run that resumes inside an epoch).
  virtual void start(int64_t epoch, int64_t first) = 0;
  // The next batch, or nullptr at the end of the epoch; valid until the next call.
  virtual const FedBatch* next() = 0;
  virtual int64_t batches() const = 0;  // of an epoch; 0 when only its end will tell
  virtual double wait_seconds() const = 0;
  virtual const std::string& label() const = 0;     // the target's name; may be empty
  virtual bool is_stream() const { return false; }  // nobody has seen all rows before
};

// Which of several processes this is.
struct Part {
  int rank = 0, size = 1;
};

// Batches of `batch` rows, assembled ahead of time. whole: the file fixes the batch size, rows that
// do not make up a batch are left out (they are other ones in each epoch). part: only its rows of
// every batch are read; FedBatch::rows are those of all.
std::unique_ptr<Batches> column_batches(const FeedColumns& data, int64_t batch, uint64_t seed,
                                        bool shuffle, bool whole, const Part& part = {});
// inputs: of the training; every array is made to fit as columns are. part: every process is given
// the same whole batches and takes its rows of them; first_batch is called with a hash of the first
// of each epoch.
std::unique_ptr<Batches> stream_batches(BatchStream& stream, const Model& m,
                                        const std::vector<ValueDef>& inputs, const Part& part = {},
                                        std::function<void(uint64_t)> first_batch = {});

}  // namespace onnxtrain::run
