// The part of Highway's library that run-time dispatch calls, so that libhwy.so is not needed:
// Debian has it as a shared object only, and its static constructors time the CPU's clock for
// 4 ms at every start of a program. See docs/decisions/0007-highway.md.
#include <hwy/highway.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hwy {
namespace {

std::atomic<int64_t> disabled_targets{0};
std::atomic<int64_t> test_targets{0};

#if HWY_ARCH_X86
int64_t detect_targets() {
  __builtin_cpu_init();
  int64_t found = 0;
  const bool sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("aes") &&
                    __builtin_cpu_supports("pclmul");
  // F16C and LZCNT, which AVX2 code may use as well, came with or before the ones asked for here.
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
  if (__builtin_cpu_supports("ssse3")) found |= HWY_SSSE3;
  if (sse4) found |= HWY_SSE4;
  if (avx2) found |= HWY_AVX2;
  if (avx3) found |= HWY_AVX3;
  return found;
}
#else
int64_t detect_targets() { return HWY_STATIC_TARGET; }
#endif

}  // namespace

int64_t SupportedTargets() {
  static const int64_t detected = detect_targets() | HWY_STATIC_TARGET;
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
