// What an operator is: one record that says everything the other folders need to know about it.
// No operator is named here; records are filled in by ops/ and looked up by (domain, name,
// version).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/threads.hpp"
#include "graph/graph.hpp"
#include "op/optimizer.hpp"

namespace onnxtrain {

// ---------------------------------------------------------------- concrete types
struct TensorType {
  DType dtype = DType::kUndefined;
  Shape shape;
  bool present() const { return dtype != DType::kUndefined; }
  int64_t size() const { return num_elements(shape); }
};

// ---------------------------------------------------------------- shape function
// Concrete input types in, concrete output types out. The same function serves planning and
// dynamic execution; it also validates attributes and shapes (model_error names the problem; the
// caller adds the node).
class ShapeCtx {
 public:
  ShapeCtx(const Node& node, std::vector<TensorType> in, std::vector<const Tensor*> values);
  const Node& node() const { return node_; }
  int version() const { return node_.version; }
  int inputs() const { return int(in_.size()); }
  int outputs() const { return int(node_.outputs.size()); }
  bool has(int i) const { return i < inputs() && in_[size_t(i)].present(); }
  // The type of input i; a model error if it is absent.
  const TensorType& in(int i) const;
  const Shape& shape(int i) const { return in(i).shape; }
  DType dtype(int i) const { return in(i).dtype; }
  int64_t rank(int i) const { return int64_t(in(i).shape.size()); }
  bool value_known(int i) const { return i < inputs() && values_[size_t(i)] != nullptr; }
  // The value of input i, one of the record's shape_values.
  const Tensor& value(int i) const;
  std::vector<int64_t> ints(int i) const { return value(i).to_ints(); }
  bool wants(int output) const {
    return output < outputs() && node_.outputs[size_t(output)] != kNone;
  }
  void set(int output, DType dtype, Shape shape);  // outputs the node does not have are ignored
  // The output's shape is known only after the kernel ran; the kernel calls Run::allocate.
  void set_dynamic(int output, DType dtype);

  std::vector<TensorType> out;
  std::vector<char> dynamic;  // per output

 private:
  const Node& node_;
  std::vector<TensorType> in_;
  std::vector<const Tensor*> values_;
};
using ShapeFn = void (*)(ShapeCtx&);

struct Op;
// Fills in the output types; false: the value of an input that decides them is not known yet.
bool infer_shape(const Op& op, ShapeCtx& c);

// ---------------------------------------------------------------- kernels
// What a prepared kernel gets when it runs. Pointers only; everything else was fixed in prepare.
struct Run {
  void* const* inputs;   // null for an omitted input
  void* const* outputs;  // null for an unwanted output; for dynamic outputs until allocate()
  void* workspace;       // Prepare::workspace bytes, 64-byte aligned
  ThreadPool* pool;
  uint64_t seed, step;  // of the run, for random operators
  // Only for dynamic outputs.
  struct Allocator {
    virtual ~Allocator() = default;
    virtual void* allocate(int output, const Shape& shape) = 0;
  };
  Allocator* allocator;

  template <class T>
  const T* in(int i) const {
    return static_cast<const T*>(inputs[i]);
  }
  template <class T>
  T* out(int i) const {
    return static_cast<T*>(outputs[i]);
  }
  template <class T>
  T* allocate(int output, const Shape& shape) const {
    return static_cast<T*>(allocator->allocate(output, shape));
  }
};

// A move-only callable void(const Run&).
class Kernel {
 public:
  Kernel() = default;
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Kernel>>>
  Kernel(F f) : holder_(std::make_unique<Holder<F>>(std::move(f))) {}
  void operator()(const Run& r) const { holder_->call(r); }
  explicit operator bool() const { return bool(holder_); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual void call(const Run&) = 0;
  };
  template <class F>
  struct Holder final : Base {
    explicit Holder(F f) : fn(std::move(f)) {}
    void call(const Run& r) override { fn(r); }
    F fn;
  };
  std::unique_ptr<Base> holder_;
};

// What a kernel maker knows: the node, all concrete types, and the values of inputs that are
// constant in this plan.
class Prepare {
 public:
  Prepare(const Node& node, std::vector<TensorType> in, std::vector<TensorType> out,
          std::vector<const Tensor*> values, ThreadPool& pool)
      : node_(node),
        in_(std::move(in)),
        out_(std::move(out)),
        values_(std::move(values)),
        pool_(pool) {}
  const Node& node() const { return node_; }
  int version() const { return node_.version; }
  int inputs() const { return int(in_.size()); }
  int outputs() const { return int(out_.size()); }
  bool has(int i) const { return i < inputs() && in_[size_t(i)].present(); }
  bool wants(int o) const { return o < outputs() && node_.outputs[size_t(o)] != kNone; }
  const TensorType& in(int i) const { return in_[size_t(i)]; }
  const TensorType& out(int i) const { return out_[size_t(i)]; }
  // null when input i changes from run to run
  const Tensor* constant(int i) const { return i < inputs() ? values_[size_t(i)] : nullptr; }
  ThreadPool& pool() const { return pool_; }
  // identity for random numbers
  uint64_t stream() const;

  size_t workspace = 0;  // set by the maker: scratch bytes the kernel needs
  // For a maker that finds out only while making that it has nothing for this problem:
  //   return p.refuse("oneDNN has only its reference here");
  // The next implementation is asked then. A maker never runs another one's loop in its own name.
  Kernel refuse(std::string why) {
    refusal = std::move(why);
    return {};
  }
  std::string refusal;  // of the last maker that gave no kernel

 private:
  const Node& node_;
  std::vector<TensorType> in_, out_;
  std::vector<const Tensor*> values_;
  ThreadPool& pool_;
};

struct Impl {
  const char* name;  // "onednn", "simd", "ref"
  std::string (*refuses)(
      const Prepare&);       // "" when it applies; otherwise why not; null: always applies
  Kernel (*make)(Prepare&);  // an empty kernel: refused after all (Prepare::refuse)
};

// The first implementation that does not refuse, and why the faster ones did.
struct Choice {
  Kernel kernel;
  const char* impl = "";
  std::vector<std::string> refused;  // "onednn: needs float32"
  size_t workspace = 0;
};
struct Op;
Choice choose_kernel(const Op& op, Prepare& p);

// Operators over sequences, optionals, maps, strings-of-unknown-size and subgraphs run on Values.
class ValueCtx {
 public:
  virtual ~ValueCtx() = default;
  virtual const Node& node() const = 0;
  virtual int inputs() const = 0;
  virtual int outputs() const = 0;
  virtual const Value* in(int i) const = 0;  // null: omitted
  virtual void out(int i, Value v) = 0;
  virtual bool wants(int i) const = 0;
  // Runs a subgraph attribute of the node with these inputs; captures are bound by the caller.
  // iteration > 0 gives random operators inside other numbers than another iteration does.
  virtual std::vector<Value> run_graph(std::string_view attr, std::vector<Value> inputs,
                                       uint64_t iteration = 0) = 0;
  virtual ThreadPool& pool() const = 0;
  virtual uint64_t seed() const = 0;
  virtual uint64_t step() const = 0;

  const Tensor& tensor(int i) const;  // input i as a tensor; a model error otherwise
  bool has(int i) const { return i < inputs() && in(i) != nullptr; }
};
using ValueFn = void (*)(ValueCtx&);

// ---------------------------------------------------------------- gradients
class GradBuilder;
// Returns one gradient per input (kNone: nothing flows to it).
using GradFn = std::vector<ValueId> (*)(GradBuilder&);
// Expands a node of our own domain into standard operators (lowered files, and gradients of
// gradients); returns the values that replace its outputs.
using LowerFn = std::vector<ValueId> (*)(GradBuilder&);

// ---------------------------------------------------------------- cost
struct Cost {
  double flops = 0, bytes = 0;
};
using CostFn = Cost (*)(const Prepare&);

// ---------------------------------------------------------------- order of dimensions
// Which operands may be in the order [N,D...,C]. A node that the pass `layout` turned has the
// attribute channels_last = 1 and operand types in that order.
struct ChannelsLast {
  std::vector<int> in = {}, out = {};  // operands that are turned; none at all: not possible
  bool gains = false;                  // faster so: worth turning what comes in and goes out
  // Which nodes can (all operands have concrete types); null: every one.
  bool (*applies)(const Graph&, const Node&) = nullptr;
  // Every element of the output depends on the elements at its place only (operands may broadcast):
  // any order will do.
  bool elementwise = false;
};

// ---------------------------------------------------------------- optimizer updates
namespace simd {
class OptimList;
}
// One step of many float tensors: learning rate, step number, a factor of all gradients.
using VectorUpdate = std::function<void(ThreadPool&, const simd::OptimList&, double rate,
                                        double step, float factor)>;

// An operator that updates a weight. Inputs: scalars, X, G, state; outputs: new X, new state.
struct UpdateForm {
  int scalars = 1;  // R, or R and T
  int states = 0;
  // By the settings of the node; null: there is no vector form, and such updates are neither
  // grouped nor moved nor scaled.
  VectorUpdate (*vector)(const Node&) = nullptr;
  // The operator that updates only those rows of a table that have a gradient, and whether the
  // node's settings leave a row without one as it is.
  const char* by_rows = nullptr;
  bool (*leaves_rows)(const Node&) = nullptr;
};

// ---------------------------------------------------------------- the record
struct Op {
  std::string name;
  std::string domain = std::string(kOnnxDomain);
  int since = 1;  // valid for opset >= since, until a record with a larger `since`

  ShapeFn shape = nullptr;
  // Inputs whose value decides the output's shape, where they are given. `shape` is called only
  // when they are all known; until then the node is dynamic.
  std::vector<int> shape_values = {};
  // The same where the node decides which; used when set.
  std::vector<int> (*shape_values_of)(const Node&) = nullptr;
  std::vector<Impl> impls = {};  // fastest first
  // Instead of shape + impls; beside them, it serves what is not a tensor of known shape.
  ValueFn run_values = nullptr;

  // Exactly one of the two for an operator with float inputs: a rule, or why there is none.
  GradFn grad = nullptr;
  const char* no_grad = nullptr;

  // Element-wise with numpy broadcasting: gradients are summed back to each input's shape.
  bool broadcasts = false;
  bool random = false;  // never folded or merged
  // {input, output}: the output may take over the input's memory (same bytes, element-wise access).
  std::vector<std::pair<int, int>> in_place = {};
  // The same for operators with any number of operands; used when set.
  std::vector<std::pair<int, int>> (*in_place_of)(const Node&) = nullptr;
  // Output 0 is this input seen with another shape: no work at run time (Reshape, Identity, ...).
  int view_of = -1;
  // The kernel reads only the types of its inputs (Shape, Size): known as soon as shapes are.
  bool types_only = false;
  // Vectorised step for fused element-wise chains (float32): index into kernels' micro-op table.
  int micro_op = -1;
  // The name that StridedMatMul has for this activation, which a GEMM then applies to its result,
  // or for the activation whose gradient this is; by the settings of the node. null: it has none.
  const char* (*epilogue)(const Node&) = nullptr;
  const char* (*epilogue_gradient)(const Node&) = nullptr;
  bool reduces = false;   // one number for all elements along its axes
  CostFn cost = nullptr;  // default: bytes of all operands
  // What it can do with tensors [N,D...,C] in place of [N,C,D...] (pass layout). Not said:
  // element-wise for records with `broadcasts` or a micro_op, else nothing.
  std::optional<ChannelsLast> channels_last = {};

  std::optional<UpdateForm> update = {};  // an optimizer's update of one weight

  const char* function = nullptr;  // own domain: ONNX text of the function with this meaning (G14)
  LowerFn lower = nullptr;         // own domain: the same by building nodes
  // The last output keeps what the gradient needs (the training form of a recurrent layer). `grad`
  // knows the other outputs; a derivative that arrives at the last one needs the lowered form.
  bool keeps_values = false;
  // Own domain: the operator with the same inputs and outputs and one output more, which keeps
  // what the gradient needs; null: there is none.
  const char* training_form = nullptr;
  // Floating-point inputs from this one on are settings (a bound, a probability, a scale), never
  // weights; -1: none is.
  int settings_from = -1;
  // Inputs of integers that stand for real numbers: the operands of an integer layer.
  std::vector<int> quantised_inputs = {};

  ~Op();  // compiled once, in op.cpp: every operator's file has it
};

class OpTable {
 public:
  void add(const Op& op);
  // The record in force for this node's domain, name and version; null if unknown.
  const Op* find(std::string_view domain, std::string_view name, int version) const;
  const Op* find(const Node& n) const { return find(n.domain, n.op, n.version); }
  const Op& get(const Node& n) const;  // model error OT1101 when unknown
  std::vector<const Op*> all() const;

  void add_optimizer(Optimizer o);
  const Optimizer* optimizer(std::string_view kind) const;  // null if unknown
  std::vector<const Optimizer*> optimizers() const;         // by kind

 private:
  std::unordered_map<std::string, std::vector<std::unique_ptr<Op>>>
      ops_;  // "domain:name", by since
  std::map<std::string, std::unique_ptr<Optimizer>, std::less<>> optimizers_;
};

// Defined by the build from the file names in ops/.
void register_all_ops(OpTable& table);
// The table of everything, made once.
const OpTable& all_ops();

// Types of a node's inputs and the values that are constant; false when a type is not concrete.
bool concrete_inputs(const Graph& g, const Node& n, std::vector<TensorType>& in,
                     std::vector<const Tensor*>& values);

// Types of the outputs of one node from annotated input types: fills in Graph values when all
// inputs are concrete. Returns false if that is not possible yet.
bool infer_node(Graph& g, const Node& n, const OpTable& table);

}  // namespace onnxtrain
