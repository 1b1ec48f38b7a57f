// A run that several processes make together: the same settings, model and data in each.
#include "distributed/mpi.hpp"
#include "run/run.hpp"
#include "run/same_everywhere.hpp"

namespace onnxtrain::run {

namespace {

constexpr const char* kTraining = "training (loss, optimizer, learning rate or their state)";

// Paths may differ between hosts; the data itself is compared.
std::string comparable(const std::string& settings) {
  std::string out;
  size_t at = 0;
  while (at < settings.size()) {
    const size_t end = std::min(settings.find('\n', at), settings.size());
    const std::string line = settings.substr(at, end - at);
    const std::string key = line.substr(0, line.find(' '));
    if (key != "data" && key != "valid" && key != "model" && key != "config") out += line + "\n";
    at = end + 1;
  }
  return out;
}

}  // namespace

// Enough rows for all, the same number of blocks as before.
void Run::cut_batches() {
  Communicator* c = q_.communicator;
  const int ranks = c ? c->size() : 1;
  if (c && parts_.train.rows() < ranks)
    data_error("OT5005",
               cat("the data has ", parts_.train.rows(), " rows for training, fewer than the ",
                   ranks, " processes"),
               "start fewer processes");
  if (c && q_.fit.batch < ranks)
    usage_error("OT5006",
                cat("--batch ", q_.fit.batch, " is the batch of all ", ranks,
                    " processes together: it has fewer rows than there are processes"),
                cat("--batch ", ranks));
  distribute(c, q_.cut);
  settings_.replace("micro-blocks", std::to_string(t_->blocks()));
  settings_.replace("batch-norm", t_->block_options().sync_norm ? "sync" : "local");
  check_processes(settings_.text_for_checkpoint());
}

void Run::distribute(Communicator* c, const Cut& cut) {
  const int ranks = c ? c->size() : 1;
  q_.communicator = c;
  q_.cut = cut;
  if (c) t_->limit_threads(cores_of_process());
  if (cut.blocks == 0) q_.cut.blocks = known_cut_.blocks > 0 ? known_cut_.blocks : ranks;
  if (cut.batch_norm.empty()) q_.cut.batch_norm = known_cut_.batch_norm;
  if (!cut.batch_norm.empty() && cut.batch_norm != "local" && cut.batch_norm != "sync")
    usage_error("OT5052", cat("batch_norm is '", cut.batch_norm, "', it is local or sync"),
                "--batch-norm local   or   --batch-norm sync");
  const std::string& type = cut.reduce_dtype;
  if (!type.empty() && type != "float32" && type != "bf16")
    usage_error("OT5054", cat("reduce_dtype is '", type, "', it is float32 or bf16"),
                "--reduce-dtype float32   or   --reduce-dtype bf16");
  t_->set_blocks(q_.cut.blocks, c,
                 {.sync_norm = q_.cut.batch_norm == "sync",
                  .narrow = c && type == "bf16",
                  .shard = c && cut.shard});
  const BlockOptions& how = t_->block_options();
  check_same(c, {{"model", hash_of(t_->source(), t_.get())},
                 {kTraining, hash_of_training(*t_)},
                 {"number of blocks, batch_norm, reduce_dtype or shard_optimizer",
                  hash_of(cat(t_->blocks(), how.sync_norm, how.narrow, how.shard))}});
}

void Run::check_processes(const std::string& settings) const {
  if (!q_.communicator) return;
  check_same(q_.communicator, {{"model", hash_of(t_->source(), t_.get())},
                               {kTraining, hash_of_training(*t_)},
                               {"data", hash_of(parts_.all.text())}});
  check_same_lines(q_.communicator, comparable(settings));
  check_same(q_.communicator,
             {{"position in the training",
               hash_of(cat(at_.step, " ", at_.epoch, " ", at_.batch, " ", at_.seed))},
              {"division of the data into rows for training and validation (--valid)",
               hash_of(cat(parts_.train.rows(), " ", parts_.has_valid, " ",
                           parts_.train_rows.text(), " ", parts_.valid_rows.text()))}});
}

}  // namespace onnxtrain::run
