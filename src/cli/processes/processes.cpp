// Several processes at one command.
#include "cli/processes/processes.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "cli/common/narration.hpp"
#include "core/text.hpp"
#include "distributed/launcher.hpp"
#include "distributed/rows.hpp"

namespace onnxtrain::cli {

namespace {
constexpr const char* kGroup = "Processes";
}

void ProcessFlags::add_connection(Registry& r, CLI::App* c) {
  r.rare(c->add_option("--distributed", options.mode,
                       "auto: with the processes that mpirun or srun started; off: alone; mpi")
             ->check(CLI::IsMember({"auto", "off", "mpi"})),
         kGroup);
  r.rare(c->add_option("--fault-timeout", options.fault_timeout,
                       "seconds without a sign of life after which a process counts as lost")
             ->check(CLI::PositiveNumber),
         kGroup);
}

void ProcessFlags::add_to(Registry& r, CLI::App* c) {
  add_connection(r, c);
  r.rare(
      c->add_option("--micro-blocks", cut.blocks,
                    "blocks of rows that every batch is cut into; the same bits on any number of "
                    "processes that divides it (0: one for each process)")
          ->check(CLI::NonNegativeNumber),
      kGroup);
  r.rare(
      c->add_option("--batch-norm", cut.batch_norm,
                    "BatchNormalization of a batch in blocks: local: by the statistics of each "
                    "block, as every process would alone; sync: of the whole batch (local, or as "
                    "the run that is resumed)")
          ->check(CLI::IsMember({"local", "sync"})),
      kGroup);
  r.rare(c->add_option("--reduce-dtype", cut.reduce_dtype,
                       "bf16: gradients go between processes as bfloat16, half the bytes; the bits "
                       "are then no longer those of one process (float32)")
             ->check(CLI::IsMember({"float32", "bf16"})),
         kGroup);
  r.rare(c->add_flag("--shard-optimizer", cut.shard,
                     "every process keeps and updates a part of the optimizer's state, and new "
                     "weights go to all; the bits stay the same"),
         kGroup);
}

Communicator* ProcessFlags::connect(int& threads) const {
  Communicator* c = connect_processes(options);
  if (!c) return nullptr;
  if (c->rank() > 0) set_quiet(true);
  if (threads == 0) threads = cores_of_process();
  return c;
}

std::vector<std::pair<std::string, std::string>> mpi_plugins() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const MpiPlugin& p : find_mpi_plugins())
    out.emplace_back(p.path, p.problem.empty() ? try_mpi_plugin(p.path) : p.problem);
  return out;
}

void say_mpi() {
  const auto found = mpi_plugins();
  if (found.empty()) std::printf("mpi       no plug-in: one process only   (make mpi builds it)\n");
  for (const auto& [path, problem] : found)
    std::printf("mpi       %s   %s\n", path.c_str(), problem.empty() ? "loads" : problem.c_str());
}

namespace {

// Before the first step: what is not read by the model is taken for the optimizer's.
std::string shard_text(const Training& t) {
  std::set<std::string> read;
  const Graph& main = t.source().main;
  for (const Node& n : main.nodes)
    for (ValueId v : main.reads(n)) read.insert(main.value_name(v));
  size_t bytes = 0;
  for (const std::string& name : t.state().names())
    if (read.count(name) == 0) bytes += t.state().get(name).bytes();
  return cat("optimizer state of ", megabytes(bytes, 2), " shared out, about ",
             megabytes(bytes / size_t(t.communicator()->size()), 2),
             " in each process (--shard-optimizer)");
}

}  // namespace

std::string processes_text(const Training& t) {
  const Communicator* c = t.communicator();
  std::string text;
  if (c)
    text = cat("\n            ", c->size(),
               " processes, the batch is that of all together, the "
               "learning rate stays as it is");
  if (!c && t.blocks() == 1) return text;
  text += cat(c ? ", " : "\n            ", t.blocks(), " blocks of rows (--micro-blocks)");
  if (t.block_options().narrow)
    text +=
        ", gradients between them as bfloat16 (--reduce-dtype bf16): other bits than one process";
  if (t.block_options().shard) text += cat(", ", shard_text(t));
  bool norm = false;
  for (const TrainingStep& s : t.source().training)
    for (const Node& n : s.algorithm.nodes) norm |= uses_batch_statistics(n);
  if (norm)
    text += t.block_options().sync_norm
                ? ", BatchNormalization by the statistics of the whole batch (--batch-norm sync)"
                : ", BatchNormalization by the statistics of each block (--batch-norm local)";
  return text;
}

int failed(const std::string& text, int code) {
  Communicator* c = connected_processes();
  const Launch launch = find_launch();
  const int rank = c ? c->rank() : launch.size > 1 ? launch.rank : 0;
  // the same mistake is made by all: rank 0 tells it and ends the others before they do, also where
  // the machine is busy and it comes later
  if (rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(4000 + 100 * rank));
  if (rank > 0) {
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    std::fprintf(stderr, "rank %d on host %s: ", rank, host);
  }
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  if (c) c->abort(code);
  if (launch.size > 1) end_launched(code);
  return code;
}

}  // namespace onnxtrain::cli
