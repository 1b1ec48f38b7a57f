// The part of Highway's library that run-time dispatch calls, so that libhwy.so is not needed:
// Debian has it as a shared object only, and its static constructors time the CPU's clock for
// 4 ms at every start of a program. See docs/decisions/0007-highway.md.
#include <hwy/highway.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "core/cpu.hpp"

namespace hwy {
namespace {

std::atomic<int64_t> disabled_targets{0};
std::atomic<int64_t> test_targets{0};

int64_t targets_of(onnxtrain::Isa isa) {
#if HWY_ARCH_X86
  int64_t found = HWY_STATIC_TARGET;
  if (isa >= onnxtrain::Isa::kSse4) found |= HWY_SSSE3 | HWY_SSE4;
  if (isa >= onnxtrain::Isa::kAvx2) found |= HWY_AVX2;
  if (isa >= onnxtrain::Isa::kAvx512) found |= HWY_AVX3;
  return found;
#else
  (void)isa;
  return HWY_STATIC_TARGET;
#endif
}

}  // namespace

int64_t SupportedTargets() {
  static const int64_t detected = targets_of(onnxtrain::instruction_set());
  const int64_t mock = test_targets.load();
  const int64_t targets = (mock != 0 ? mock : detected) & ~disabled_targets.load();
  return targets != 0 ? targets : HWY_STATIC_TARGET;
}

void DisableTargets(int64_t targets) {
  disabled_targets.store(targets);
  GetChosenTarget().DeInit();
}

void SetSupportedTargetsForTest(int64_t targets) {
  test_targets.store(targets);
  GetChosenTarget().DeInit();
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

void Abort(const char* file, int line, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
  va_end(args);
  std::abort();
}

}  // namespace hwy
