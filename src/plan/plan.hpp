// A Plan: everything decided before the first run. Order, kernels, memory offsets, pointers.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "op/op.hpp"
#include "plan/memory.hpp"

namespace onnxtrain {

// Where a value lives while the plan runs.
enum class Place : uint8_t { kNone, kConstant, kState, kInput, kArena, kDynamic };

struct Slot {
  Place place = Place::kNone;
  TensorType type;          // for kDynamic: not known before the run
  void* address = nullptr;  // constant, state, arena; inputs: of the current run
  int input = -1;           // index among graph inputs
  ValueId root = kNone;     // the value whose memory this is (itself unless a view or in place)
};

struct Step {
  NodeId node = -1;
  const Op* op = nullptr;
  Kernel kernel;                     // empty for a dynamic step
  const char* impl = "";             // of a dynamic step: what ran last
  std::vector<std::string> refused;  // faster ones and why not: "onednn: needs float32"
  std::vector<void*> in, out;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  bool dynamic = false;
};

// After the steps: this value is assigned to this state variable.
struct Update {
  ValueId value;
  std::string state;
  void* to = nullptr;
  DType dtype = DType::kUndefined;  // of the variable; what is assigned must be the same
  Shape shape;
  size_t bytes = 0;
  bool in_place = false;  // the kernel wrote there already
};

struct Plan {
  Graph graph;  // specialised: all static values have concrete types
  std::vector<Slot> slots;
  std::vector<Step> steps;
  std::vector<Update> updates;
  // Places that hold an input's pointer: inputs[i] lists addresses to patch when its data moves.
  std::vector<std::vector<void**>> input_pointers;
  std::vector<void*> bound_inputs;
  // Steps after which dynamic values are dead and can be released.
  std::vector<std::vector<ValueId>> release_after;

  // Steps from here on write over state; everything before leaves it as it was.
  size_t first_write = 0;
  // What those steps and the assignments afterwards read of the steps before: if it is finite, what
  // is written will be. `gradient`: read by an optimizer.
  struct Watched {
    ValueId value;
    bool gradient;
  };
  std::vector<Watched> watched;
  // A floating-point variable is assigned that is computed behind the first write: nobody has
  // looked at its value before.
  bool assigns_unseen = false;
  // Gradients of 16-bit weights, which the optimizer reads in wider copies: looked at where they
  // are made, so that they need not be kept. By step, in order.
  struct Narrow {
    size_t step;
    ValueId value;
  };
  std::vector<Narrow> narrow;

  std::shared_ptr<void> arena;
  size_t arena_bytes = 0, peak_bytes = 0;  // planned; peak: alive at once
  size_t reserved_bytes = 0;               // of `arena`, which may be shared with other plans
  size_t whole_bytes = 0;                  // arena_bytes without recomputation
  int recomputed = 0;                      // nodes that run a second time (passes/recompute)
  bool has_dynamic = false;

  // How this plan was made: stages of the engine and passes, in order.
  struct Stage {
    std::string name;
    double seconds = 0;
    int nodes_before = 0, nodes_after = 0;
  };
  std::vector<Stage> stages;

  // The results handed out last; their memory serves again when nobody else holds it.
  std::vector<Tensor> handed;
};

// The tensor behind a state variable; its memory stays where it is.
using StateTensor = std::function<const Tensor&(const std::string& name)>;

using StateUpdates = std::vector<std::pair<ValueId, std::string>>;  // value, state variable

// Memory of another plan that never runs at the same time: taken when it is large enough.
struct Arena {
  std::shared_ptr<void> memory;
  size_t bytes = 0;
};

// `graph` must be specialised (infer/specialise).
std::unique_ptr<Plan> make_plan(Graph graph, const StateUpdates& updates, const OpTable& table,
                                const StateTensor& state, ThreadPool& pool,
                                const Arena& arena = {});

// Bytes of the arena that make_plan would lay out for this graph, without making kernels.
// workspace(node): the scratch bytes its kernel needs.
size_t plan_bytes(Graph graph, const StateUpdates& updates, const OpTable& table,
                  const StateTensor& state, const std::function<size_t(const Node&)>& workspace);

// A model error that names the variable when a value of this type cannot be assigned to it (C12).
void check_update(const Update& u, DType dtype, const Shape& shape);

}  // namespace onnxtrain
