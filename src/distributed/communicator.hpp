// What a training on several processes needs of them: who they are, and a few ways to exchange
// memory. MPI implements it in a plug-in library (mpi.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace onnxtrain {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // No call moves more than this: MPI counts bytes with an int.
  static constexpr size_t kLargest = size_t(1) << 28;

  // Blocking, for small things: `all` gets size() times `bytes`, in the order of ranks.
  virtual void all_gather(const void* mine, size_t bytes, void* all) = 0;
  virtual void broadcast(void* data, size_t bytes, int root) = 0;

  // Under way until waited for, or tested and done; at most kPending at once. Offsets are in bytes,
  // size() + 1 of them. Exchanges are begun in the same order by all ranks, and so are collections;
  // the two do not wait for each other.
  using Handle = int;
  static constexpr int kPending = 64;
  // send[offsets[r] .. offsets[r+1]) goes to rank r; what rank r sends here comes to
  // receive[at[r] .. at[r+1]).
  virtual Handle start_exchange(const void* send, const size_t* offsets, void* receive,
                                const size_t* at) = 0;
  // Every rank has its own part of `data`; afterwards all of them.
  virtual Handle start_collect(void* data, const size_t* offsets) = 0;
  virtual bool test(Handle h) = 0;
  void wait(Handle h) {
    for (int turn = 0; !test(h); ++turn) pause(turn);
  }
  // Between two looks at what is under way; the longer it takes the more is left to others.
  static void pause(int turn);
  // How long this process has been waiting for others by now; 0: it does not.
  static double waiting_seconds();

  // Ends all processes of the group at once.
  [[noreturn]] virtual void abort(int code) = 0;

  // What this rank has sent to others so far.
  struct Traffic {
    uint64_t bytes = 0, messages = 0;
  };
  virtual Traffic traffic() const = 0;
};

}  // namespace onnxtrain
