// The list of passes, in order.
#include <algorithm>
#include <chrono>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {
struct Pass {
  const char* name;
  void (*run)(Graph&, const PassContext&);
};
constexpr Pass kPipeline[] = {
    {"partition", pass_partition},
    {"identity", pass_identity},
    {"cse", pass_cse},
    {"dead", pass_dead},
    {"fold_norm", pass_fold_norm},
    {"layout", pass_layout},
    {"fuse_norm", pass_fuse_norm},
    {"fuse_loss", pass_fuse_loss},
    {"join_slices", pass_join_slices},
    {"fuse_matmul", pass_fuse_matmul},
    {"scale_updates", pass_scale_updates},
    {"fuse_elementwise", pass_fuse_elementwise},
    {"row_updates", pass_row_updates},
    {"group_updates", pass_group_updates},
    {"schedule_late", pass_schedule_late},
    {"recompute", pass_recompute},
};
}  // namespace

std::vector<PassTime> run_passes(Graph& g, const std::vector<ValueId>& keep, const OpTable& table,
                                 const PassOptions& o) {
  std::vector<PassTime> times;
  PassContext c{keep, table};
  for (const Pass& p : kPipeline) {
    if (std::find(o.skip.begin(), o.skip.end(), p.name) != o.skip.end()) continue;
    auto start = std::chrono::steady_clock::now();
    int before = int(g.nodes.size());
    p.run(g, c);
    g.renumber();
    std::chrono::duration<double> d = std::chrono::steady_clock::now() - start;
    times.push_back({p.name, d.count(), before, int(g.nodes.size())});
    if (o.verify) g.verify(p.name);
  }
  return times;
}

}  // namespace onnxtrain
