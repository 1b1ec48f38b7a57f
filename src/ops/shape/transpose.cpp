// Transpose: permutes dimensions.
#include "op/grad_builder.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

std::vector<int64_t> perm_of(const Node& n, int64_t rank) {
  if (!n.has("perm")) {
    std::vector<int64_t> p;
    for (int64_t d = rank; d-- > 0;) p.push_back(d);
    return p;
  }
  std::vector<int64_t> p = n.ints("perm");
  if (int64_t(p.size()) != rank)
    model_error("OT1130",
                cat("perm of Transpose has ", p.size(), " entries, the input has rank ", rank));
  std::vector<char> seen(p.size(), 0);
  for (int64_t& d : p) {
    d = normalize_axis(d, rank, "perm of Transpose");
    if (seen[size_t(d)])
      model_error("OT1130", cat("perm of Transpose names dimension ", d, " twice"));
    seen[size_t(d)] = 1;
  }
  return p;
}

void shape(ShapeCtx& c) {
  Shape out;
  for (int64_t d : perm_of(c.node(), c.rank(0))) out.push_back(c.shape(0)[size_t(d)]);
  c.set(0, c.dtype(0), out);
}

Kernel make(Prepare& p) {
  Shape from = strides_of(p.in(0).shape), src;
  for (int64_t d : perm_of(p.node(), int64_t(from.size()))) src.push_back(from[size_t(d)]);
  StridedCopy copy(p.in(0).dtype, p.out(0).shape, src, strides_of(p.out(0).shape));
  return [copy](const Run& r) { copy.run(*r.pool, r.inputs[0], r.outputs[0]); };
}

std::vector<ValueId> grad(GradBuilder& b) {
  if (!b.node().has("perm")) return {b.call("Transpose", {b.dy()})};
  std::vector<int64_t> p = b.node().ints("perm"), inverse(p.size());
  for (size_t d = 0; d < p.size(); ++d)
    inverse[size_t(normalize_axis(p[d], int64_t(p.size()), "perm of Transpose"))] = int64_t(d);
  return {b.transpose(b.dy(), inverse)};
}

}  // namespace

void register_transpose(OpTable& t) {
  t.add({.name = "Transpose", .shape = shape, .impls = {{"ref", nullptr, make}}, .grad = grad});
}

}  // namespace onnxtrain::ops
