// Which implementation runs a node.
#include "op/op.hpp"

namespace onnxtrain {

Choice choose_kernel(const Op& op, Prepare& p) {
  // Before an implementation makes its tables: they grow with the result.
  for (int k = 0; k < p.outputs(); ++k) {
    const TensorType& t = p.out(k);
    if (p.wants(k) && t.present() && size_t(t.size()) > memory_limit() / dtype_size(t.dtype))
      model_error("OT1401",
                  cat("output ", k, " of '", op.name, "' would be ", dtype_name(t.dtype),
                      to_string(t.shape), "; the memory limit is ", memory_limit(), " bytes"));
  }
  Choice c;
  for (const Impl& impl : op.impls) {
    std::string why = impl.refuses ? impl.refuses(p) : std::string();
    if (!why.empty()) {
      c.refused.push_back(cat(impl.name, ": ", why));
      continue;
    }
    p.workspace = 0;
    c.kernel = impl.make(p);
    if (!c.kernel) {
      c.refused.push_back(cat(impl.name, ": ", p.refusal));
      continue;
    }
    c.impl = impl.name;
    c.workspace = p.workspace;
    return c;
  }
  std::string all;
  for (const auto& r : c.refused) all += "; " + r;
  model_error("OT1102", cat("no implementation of '", op.name, "' takes these types", all));
}

}  // namespace onnxtrain
