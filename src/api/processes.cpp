// The C API of several processes.
#include <algorithm>
#include <cstring>

#include "api/handles.hpp"
#include "distributed/mpi.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

ot_status ot_trainer_distribute(ot_trainer* t, const ot_distributed* o) {
  return guarded({{"t", t}}, [&] {
    ot_distributed given = {sizeof(ot_distributed), nullptr, 0, 0, -1, nullptr, nullptr, 0};
    if (o) std::memcpy(&given, o, std::min(o->size, sizeof given));  // an older caller has less
    DistributedOptions d;
    if (given.mode) d.mode = given.mode;
    if (given.fault_timeout > 0) d.fault_timeout = given.fault_timeout;
    d.communicator = given.communicator;
    if (given.micro_blocks < 0)
      usage_error("OT5001", cat("micro_blocks is ", given.micro_blocks, ", it must be 0 or more"));
    run::Cut cut;
    cut.blocks = given.micro_blocks;
    if (given.batch_norm) cut.batch_norm = given.batch_norm;
    if (given.reduce_dtype) cut.reduce_dtype = given.reduce_dtype;
    cut.shard = given.shard_optimizer != 0;
    t->run.distribute(connect_processes(d), cut);
  });
}

int ot_trainer_rank(const ot_trainer* t) {
  const Communicator* c = t ? t->t().communicator() : nullptr;
  return c ? c->rank() : 0;
}

int ot_trainer_ranks(const ot_trainer* t) {
  const Communicator* c = t ? t->t().communicator() : nullptr;
  return c ? c->size() : 1;
}

ot_status ot_trainer_traffic(const ot_trainer* t, uint64_t* bytes, uint64_t* messages) {
  return guarded({{"t", t}, {"bytes", bytes}, {"messages", messages}}, [&] {
    const Communicator* c = t->t().communicator();
    const Communicator::Traffic traffic = c ? c->traffic() : Communicator::Traffic{};
    *bytes = traffic.bytes;
    *messages = traffic.messages;
  });
}

void ot_abort_processes(int code) {
  if (Communicator* c = connected_processes()) c->abort(code);
}

int ot_launch_rank(void) { return find_launch().rank; }
