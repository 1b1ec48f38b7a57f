// Detection through the compiler's run-time library, which also asks whether the operating system
// saves the wide registers.
#include "core/cpu.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/error.hpp"

namespace onnxtrain {
namespace {

const char* wanted() {
  const char* text = std::getenv("ONNXTRAIN_ISA");
  return text && *text ? text : nullptr;
}

Isa detected() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("aes") ||
      !__builtin_cpu_supports("pclmul"))
    return Isa::kBase;
  // F16C and LZCNT, which AVX2 code may use as well, came with or before the ones asked for here.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
    return Isa::kSse4;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd"))
    return Isa::kAvx2;
  return Isa::kAvx512;
#else
  return Isa::kBase;
#endif
}

Isa limit() {
  const char* text = wanted();
  if (!text) return Isa::kAvx512;
  const std::string s = text;
#if defined(__aarch64__)
  if (s == "neon") return Isa::kBase;
  usage_error("OT0008", cat("environment variable ONNXTRAIN_ISA: '", s, "' is none of this CPU's"),
              "neon is the only one here (aarch64); unset, it is used as well");
#endif
  if (s == "sse4") return Isa::kSse4;
  if (s == "avx2") return Isa::kAvx2;
  if (s == "avx512") return Isa::kAvx512;
  usage_error("OT0008", cat("environment variable ONNXTRAIN_ISA: '", s, "' is no instruction set"),
              "sse4, avx2 and avx512 are; unset, the machine's best is used");
}

}  // namespace

Isa instruction_set() {
  static const Isa isa = std::min(detected(), limit());
  return isa;
}

bool instruction_set_is_limited() { return wanted() != nullptr; }

const char* name_of(Isa isa) {
#if defined(__aarch64__)
  constexpr const char* base = "NEON";
#else
  constexpr const char* base = "baseline";
#endif
  constexpr const char* names[] = {base, "SSE4", "AVX2", "AVX-512"};
  return names[int(isa)];
}

}  // namespace onnxtrain
