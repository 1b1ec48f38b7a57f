// The engine and prepared calls.
#include "kernels/common/engine_onednn.hpp"

#include "core/cpu.hpp"
#include "core/error.hpp"

namespace onnxtrain::onednn {

namespace {
// Before anything else of oneDNN: it refuses later.
const dnnl::engine* make_engine() {
  if (instruction_set_is_limited()) {
    constexpr dnnl::cpu_isa limits[] = {dnnl::cpu_isa::sse41, dnnl::cpu_isa::sse41,
                                        dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core};
    dnnl::set_max_cpu_isa(limits[int(instruction_set())]);
  }
  return new dnnl::engine(dnnl::engine::kind::cpu, 0);
}
}  // namespace

const dnnl::engine& cpu() {
  static const dnnl::engine* e = make_engine();
  return *e;
}

Call::Call(const dnnl::primitive& p,
           const std::vector<std::pair<int, dnnl::memory::desc>>& operands)
    : primitive_(p), stream_(cpu()) {
  for (const auto& [arg, md] : operands) {
    memories_.emplace_back(md, cpu(), nullptr);
    args_.push_back({arg, memories_.back().get()});
  }
}

void Call::run(std::initializer_list<const void*> pointers) {
  OT_ASSERT(pointers.size() == memories_.size());
  size_t k = 0;
  for (const void* p : pointers)
    dnnl_memory_set_data_handle(memories_[k++].get(), const_cast<void*>(p));
  dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream_.get(), int(args_.size()), args_.data());
  OT_ASSERT(status == dnnl_success);
}

Call make_reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  if (from == to) return {};
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::library);
  dnnl::reorder::primitive_desc pd(cpu(), from, cpu(), to, attr);
  return Call(dnnl::reorder(pd), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace onnxtrain::onednn
