// The update of a step whose optimizer state is shared out among processes: each has the memory of
// its part only, and new weights go to all.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "distributed/block_sum.hpp"
#include "distributed/shards.hpp"
#include "runtime/executor.hpp"
#include "runtime/state.hpp"

namespace onnxtrain {

class ShardedUpdate {
 public:
  // elsewhere: state variables that more than this update reads. Orders the sums of `split` so that
  // those that are shared out stand together. Throws OT5055 when nothing can be shared out.
  ShardedUpdate(SplitStep& split, std::shared_ptr<State> state, Communicator& c,
                const std::set<std::string>& elsewhere, ThreadPool& pool);

  // Parts of the sums that are shared out, by the order of split.sum_names.
  BlockSum::Shared shared() const;
  // The update of this process, once it is known which sums it gets.
  Graph graph(const BlockSum& sums, SplitStep::Updates& updates);
  // Its variables: elements of the whole ones, and those that all processes have.
  const std::shared_ptr<State>& state() const { return own_; }
  // Where an input of the graph is that is elements of a sum; false: it is no such input.
  bool find(const std::string& input, const BlockSum& sums, Tensor& found) const;

  // All processes judge what they have seen (Guard::agree).
  bool agree(Guard& guard, bool passed, double& norm);
  // After the update: the weights of all in all.
  void hand_out() { exchange(weights_, -1); }

  // The optimizer's variables, which are shared out, whole again: in process `root`, or in all
  // (root < 0). All processes call it.
  void gather(int root) { exchange(slot_parts_, root); }
  // Memory of what other processes have is given back.
  void forget();
  bool is_slot(const std::string& name) const { return slots_.count(name) != 0; }
  const std::set<std::string>& slots() const { return slots_; }
  // The names in state() of what this process has of a variable.
  std::vector<std::string> pieces_of(const std::string& name) const;
  size_t slot_bytes() const;  // of all processes
  const std::vector<size_t>& bytes_of_rank() const { return bytes_of_rank_; }
  const std::vector<std::string>& kept() const { return plan_.kept; }

 private:
  // Elements of a variable that a process has.
  struct Part {
    std::string name;
    size_t from, to;  // bytes of the variable
    char* data;
  };
  void drop_outputs(SplitStep& split);
  void share_out(const BlockSum& sums);
  void add_piece(size_t unit, int rank, int64_t from, int64_t to);
  using Parts = std::vector<std::vector<Part>>;  // by rank
  // Bytes [at, at + bytes) of these parts, one behind the other: to or from `other`.
  void copy(const std::vector<Part>& parts, size_t at, size_t bytes, char* other, bool out) const;
  // Every process gets the parts of the others (root < 0), or one of them does.
  void exchange(const Parts& parts, int root);

  Graph whole_, types_;
  ShardPlan plan_;
  std::shared_ptr<State> state_, own_;
  Communicator& c_;
  size_t shared_from_ = 0, shared_to_ = 0;
  std::vector<std::string> sum_names_;
  std::vector<ShardPiece> pieces_;  // of this process
  Parts weights_, slot_parts_;
  std::set<std::string> slots_;
  std::vector<size_t> bytes_of_rank_;  // of slots
  struct Elements {
    size_t sum;
    int64_t from, to;
  };
  std::map<std::string, Elements> inputs_;
  std::shared_ptr<void> staging_, received_;
  std::vector<size_t> totals_, offsets_, places_;
  struct Told {
    double norm = 0, gradients = -1;
    int64_t passed = 0, count = 0, zeros = 0, narrow = 0;
  };
  std::vector<Told> said_;  // by rank, in agree()
};

}  // namespace onnxtrain
