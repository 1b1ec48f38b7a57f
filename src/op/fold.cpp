// Constant folding of single nodes.
#include "op/fold.hpp"

#include <algorithm>

#include "core/text_memory.hpp"

namespace onnxtrain {

std::vector<Tensor> run_node_now(const Node& n, const Op& op, const std::vector<TensorType>& in,
                                 const std::vector<const Tensor*>& values,
                                 const std::vector<TensorType>& out, ThreadPool& pool) {
  Prepare p(n, in, out, values, pool);
  Choice c = choose_kernel(op, p);
  std::vector<void*> inputs, outputs;
  std::vector<Tensor> results;
  for (const Tensor* v : values) inputs.push_back(v ? const_cast<void*>(v->data()) : nullptr);
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    results.push_back(n.outputs[k] == kNone ? Tensor() : Tensor(out[k].dtype, out[k].shape));
    outputs.push_back(results.back().defined() ? results.back().data() : nullptr);
  }
  std::shared_ptr<void> workspace = allocate(c.workspace);
  c.kernel(Run{inputs.data(), outputs.data(), workspace.get(), &pool, 0, 0, nullptr});
  return results;
}

int64_t text_to_fold(const std::vector<const Tensor*>& values, const std::vector<TensorType>& out) {
  double elements = 0, text = 0;
  for (const TensorType& o : out)
    if (o.present() && o.dtype == DType::kString) elements += double(o.size());
  if (elements == 0) return 0;
  for (const Tensor* v : values)
    if (v && v->dtype() == DType::kString) text += double(text_bytes(*v));
  return int64_t(std::min(text * elements, 1e18));  // every element may hold all of it
}

bool fold_node(Graph& g, const Node& n, const OpTable& table, int64_t max_bytes) {
  const Op* op = table.find(n);
  if (!op || !op->shape || op->random || op->impls.empty()) return false;
  std::vector<TensorType> in;
  std::vector<const Tensor*> values;
  if (!concrete_inputs(g, n, in, values)) return false;
  bool constant = true;
  for (size_t k = 0; k < in.size(); ++k) constant &= !in[k].present() || values[k];
  if (!constant && !op->types_only) return false;
  ShapeCtx ctx(n, in, values);
  if (!infer_shape(*op, ctx)) return false;
  int64_t bytes = 0;
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    if (ctx.dynamic[k]) return false;
    if (n.outputs[k] != kNone) bytes += ctx.out[k].size() * int64_t(dtype_size(ctx.out[k].dtype));
  }
  if (bytes > max_bytes || text_to_fold(values, ctx.out) > max_bytes) return false;
  static ThreadPool alone(1);
  std::vector<Tensor> results = run_node_now(n, *op, in, values, ctx.out, alone);
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    if (n.outputs[k] == kNone) continue;
    ValueDef& d = g.value(n.outputs[k]);
    d.type = TypeInfo::tensor(results[k].dtype(), results[k].shape());
    d.constant = results[k];
    d.producer = -1;
  }
  return true;
}

}  // namespace onnxtrain
