// Look-up of operator records, contexts, and types of single nodes.
#include "op/op.hpp"

#include <algorithm>

#include "core/random.hpp"
#include "op/foreign.hpp"
#include "op/symbolic.hpp"

namespace onnxtrain {

Op::~Op() = default;

ShapeCtx::ShapeCtx(const Node& node, std::vector<TensorType> in, std::vector<const Tensor*> values)
    : out(node.outputs.size()),
      dynamic(node.outputs.size(), 0),
      node_(node),
      in_(std::move(in)),
      values_(std::move(values)) {
  values_.resize(in_.size(), nullptr);
}

const TensorType& ShapeCtx::in(int i) const {
  if (!has(i)) model_error("OT1107", cat("input ", i, " is missing"));
  return in_[size_t(i)];
}

const Tensor& ShapeCtx::value(int i) const {
  if (!has(i)) model_error("OT1107", cat("input ", i, " is missing"));
  OT_ASSERT(values_[size_t(i)]);  // the record must name it in shape_values
  return *values_[size_t(i)];
}

bool infer_shape(const Op& op, ShapeCtx& c) {
  for (int i : op.shape_values_of ? op.shape_values_of(c.node()) : op.shape_values)
    if (c.has(i) && !c.value_known(i)) return false;
  op.shape(c);
  return true;
}

void ShapeCtx::set(int output, DType dtype, Shape shape) {
  num_elements(shape);  // checks for negative dimensions and overflow
  if (output < outputs()) out[size_t(output)] = {dtype, std::move(shape)};
}

void ShapeCtx::set_dynamic(int output, DType dtype) {
  if (output >= outputs()) return;
  out[size_t(output)] = {dtype, {}};
  dynamic[size_t(output)] = 1;
}

uint64_t Prepare::stream() const {
  return node_.random_stream ? node_.random_stream
                             : hash64(node_.name.data(), node_.name.size(), 1);
}

const Tensor& ValueCtx::tensor(int i) const {
  if (!has(i)) model_error("OT1107", cat("input ", i, " is missing"));
  if (const Tensor* t = std::get_if<Tensor>(in(i))) return *t;
  model_error("OT1108", cat("input ", i, " is not a tensor"));
}

void OpTable::add(const Op& op) {
  auto& list = ops_[op.domain + ":" + op.name];
  auto at =
      std::find_if(list.begin(), list.end(), [&](const auto& o) { return o->since >= op.since; });
  OT_ASSERT(at == list.end() || (*at)->since != op.since);
  list.insert(at, std::make_unique<Op>(op));
}

const Op* OpTable::find(std::string_view domain, std::string_view name, int version) const {
  std::string key;  // asked for thousands of times per plan: no stream
  key.reserve(domain.size() + 1 + name.size());
  key.append(domain).append(1, ':').append(name);
  if (version >= kForeignVersion) return foreign_op(domain, name, version);
  auto it = ops_.find(key);
  if (it == ops_.end()) return nullptr;
  const Op* best = nullptr;
  for (const auto& o : it->second)
    if (o->since <= version) best = o.get();
  return best;
}

const Op& OpTable::get(const Node& n) const {
  if (const Op* op = find(n)) return *op;
  model_error("OT1101", cat("no implementation of operator '", n.op, "' (domain '",
                            n.domain.empty() ? "ai.onnx" : n.domain, "', opset ", n.version,
                            ") in ", n.label()));
}

std::vector<const Op*> OpTable::all() const {
  std::vector<const Op*> v;
  for (const auto& [key, list] : ops_)
    for (const auto& o : list) v.push_back(o.get());
  std::sort(v.begin(), v.end(), [](const Op* a, const Op* b) {
    return std::tie(a->domain, a->name, a->since) < std::tie(b->domain, b->name, b->since);
  });
  return v;
}

void OpTable::add_optimizer(Optimizer o) {
  std::string kind = o.kind;
  const bool fresh =
      optimizers_.emplace(std::move(kind), std::make_unique<Optimizer>(std::move(o))).second;
  OT_ASSERT(fresh);
}

const Optimizer* OpTable::optimizer(std::string_view kind) const {
  auto it = optimizers_.find(kind);
  return it == optimizers_.end() ? nullptr : it->second.get();
}

std::vector<const Optimizer*> OpTable::optimizers() const {
  std::vector<const Optimizer*> list;
  for (const auto& [kind, o] : optimizers_) list.push_back(o.get());
  return list;
}

const OpTable& all_ops() {
  static const OpTable* table = [] {
    auto* t = new OpTable;
    register_all_ops(*t);
    return t;
  }();
  return *table;
}

bool concrete_inputs(const Graph& g, const Node& n, std::vector<TensorType>& in,
                     std::vector<const Tensor*>& values) {
  for (ValueId v : n.inputs) {
    if (v == kNone) {
      in.push_back({});
      values.push_back(nullptr);
      continue;
    }
    const ValueDef& d = g.value(v);
    if (!d.type.concrete()) return false;
    in.push_back({d.type.elem, d.type.concrete_shape()});
    values.push_back(d.is_constant() ? &d.constant : nullptr);
  }
  return true;
}

bool infer_node(Graph& g, const Node& n, const OpTable& table) {
  const Op* op = table.find(n);
  if (!op || !op->shape) return false;
  std::vector<TensorType> in;
  std::vector<const Tensor*> values;
  if (!concrete_inputs(g, n, in, values)) return infer_symbolic(g, n, *op);
  ShapeCtx ctx(n, std::move(in), std::move(values));
  try {
    if (!infer_shape(*op, ctx)) return false;
  } catch (Error& e) {
    e.add_place("in " + n.label());
    throw;
  }
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    if (n.outputs[k] == kNone || !ctx.out[k].present()) continue;
    TypeInfo& t = g.value(n.outputs[k]).type;
    if (ctx.dynamic[k]) {
      if (!t.is_tensor()) t = TypeInfo::tensor(ctx.out[k].dtype);
    } else {
      t = TypeInfo::tensor(ctx.out[k].dtype, ctx.out[k].shape);
    }
  }
  return true;
}

}  // namespace onnxtrain
