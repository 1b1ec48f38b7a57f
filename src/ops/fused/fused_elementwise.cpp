// FusedElementwise: a chain of element-wise operators as one program. Made by the pass
// fuse_elementwise after differentiation; never written to files.
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/elementwise_program.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  Shape s = c.shape(0);
  for (int k = 1; k < c.inputs(); ++k) s = broadcast(s, c.shape(k));
  c.set(0, DType(c.node().i("to", int64_t(DType::kFloat))), s);
}

// Constants of a step from the attributes of its node, which the pass kept as "STEP.NAME".
void read_attributes(const Node& n, size_t step, MicroStep& s) {
  using simd::MicroOp;
  auto f = [&](const char* name, float def) { return n.f(cat(step, ".", name), def); };
  bool tanh = n.s(cat(step, ".approximate"), "none") == "tanh";
  switch (s.op) {
    case MicroOp::kLeakyRelu:
    case MicroOp::kLeakyReluGrad:
      s.params[0] = f("alpha", 0.01f);
      break;
    case MicroOp::kElu:
      s.params[0] = f("alpha", 1);
      break;
    case MicroOp::kHardSigmoid:
      s.params = {f("alpha", 0.2f), f("beta", 0.5f)};
      break;
    case MicroOp::kGelu:
      s.op = tanh ? MicroOp::kGeluTanh : s.op;
      break;
    case MicroOp::kGeluGrad:
      s.op = tanh ? MicroOp::kGeluTanhGrad : s.op;
      break;
    // others with constants are not fused
    default:
      OT_ASSERT(simd::micro_op_info(s.op).params == 0);
  }
}

// "program": per step the micro-operation, the number of operands and the operands.
Kernel make(Prepare& p) {
  std::vector<int64_t> code = p.node().ints("program");
  std::vector<MicroStep> steps;
  for (size_t at = 0; at + 1 < code.size();) {
    OT_ASSERT(code[at] >= 0 && code[at] < int64_t(simd::MicroOp::kCount));
    MicroStep s{simd::MicroOp(code[at])};
    size_t arity = size_t(code[at + 1]);
    OT_ASSERT(arity == simd::micro_op_info(s.op).inputs && at + 2 + arity <= code.size());
    for (size_t k = 0; k < arity; ++k) {
      s.in[k] = int(code[at + 2 + k]);
      OT_ASSERT(s.in[k] >= 0 && s.in[k] < p.inputs() + int(steps.size()));
    }
    read_attributes(p.node(), steps.size(), s);
    steps.push_back(s);
    at += 2 + arity;
  }
  return micro_kernel(p, std::move(steps));
}

std::vector<std::pair<int, int>> any_input_in_place() {
  std::vector<std::pair<int, int>> v;
  for (int k = 0; k < int(kMaxMicroInputs); ++k) v.push_back({k, 0});
  return v;
}

}  // namespace

void register_fused_elementwise(OpTable& t) {
  t.add({.name = "FusedElementwise",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"simd", micro_refuses, make}},
         .no_grad = "it is made after differentiation",
         .broadcasts = true,
         .in_place = any_input_in_place()});
}

}  // namespace onnxtrain::ops
