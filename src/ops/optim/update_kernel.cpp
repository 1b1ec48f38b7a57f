// Vector updates for optimizer nodes.
#include "ops/optim/update_kernel.hpp"

#include <cstring>

#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

const UpdateForm& form_of(const Node& n) {
  const bool many = n.is("MultiUpdate", kOwnDomain);
  const std::string rule = many ? n.s("rule", "") : n.op;
  const Op* op = all_ops().find(kOwnDomain, rule, 1);
  if (!op || !op->update || !op->update->vector)
    model_error("OT1134", cat("MultiUpdate: there is no rule '", rule, "'"));
  return *op->update;
}

}  // namespace

UpdateLayout::UpdateLayout(const Node& n)
    : form(form_of(n)),
      scaled(n.i("scaled", 0) == 1),
      tensors((int(n.inputs.size()) - form.scalars - scaled) / width()) {}

std::string refuses_simd_update(const Prepare& p) {
  const UpdateLayout at(p.node());
  for (int k = at.form.scalars; k < p.inputs(); ++k)
    if (p.in(k).dtype != DType::kFloat) return "only for float";
  for (int o = 0; o < p.outputs(); ++o)
    if (!p.wants(o)) return "a result is not wanted";
  return "";
}

Kernel make_simd_update(Prepare& p) {
  const UpdateLayout at(p.node());
  const VectorUpdate update = at.form.vector(p.node());
  const int outs = at.results(), states = at.form.states, count = at.tensors;
  std::vector<int64_t> size;
  for (int k = 0; k < count; ++k) size.push_back(p.in(at.input(k, 0)).size());
  const bool counts = at.form.scalars > 1;
  DType lr_type = p.in(0).dtype, step_type = counts ? p.in(1).dtype : DType::kFloat;
  // the list is made once and again only when memory has moved
  return [=, list = simd::OptimList()](const Run& r) mutable {
    bool same = int(list.tensors().size()) == count;
    for (int k = 0; k < count && same; ++k) {
      const simd::OptimTensor& t = list.tensors()[size_t(k)];
      same = t.x == r.outputs[k * outs] && t.g == r.inputs[at.input(k, 1)];
      for (int s = 0; s < states && same; ++s) same = t.state[s] == r.outputs[k * outs + 1 + s];
    }
    if (!same) {
      std::vector<simd::OptimTensor> tensors;
      for (int k = 0; k < count; ++k) {
        simd::OptimTensor t{
            .x = r.out<float>(k * outs), .g = r.in<float>(at.input(k, 1)), .n = size[size_t(k)]};
        for (int s = 0; s < states; ++s) t.state[s] = r.out<float>(k * outs + 1 + s);
        tensors.push_back(t);
      }
      list = simd::OptimList(std::move(tensors));
    }
    for (int k = 0; k < count; ++k)
      for (int o = 0; o < outs; ++o) {
        const void* from = r.inputs[at.source(k, o)];
        void* to = r.outputs[k * outs + o];
        if (from != to && size[size_t(k)])
          std::memcpy(to, from, size_t(size[size_t(k)]) * sizeof(float));
      }
    const double step = counts ? read_scalar(r.inputs[1], step_type) : 0;
    const float factor = at.scaled ? *r.in<float>(at.input(count, 0)) : 1.0f;
    update(*r.pool, list, read_scalar(r.inputs[0], lr_type), step, factor);
  };
}

}  // namespace onnxtrain::ops
