// Which vector instructions the kernels use: what this machine has, or less when asked.
#pragma once

namespace onnxtrain {

// Ordered: every level has all of those before it.
enum class Isa { kBase, kSse4, kAvx2, kAvx512 };

// The machine's level; ONNXTRAIN_ISA (sse4, avx2, avx512) lowers it, so that another machine's
// numbers can be repeated here. Any other value is an error. Read once.
Isa instruction_set();
// Whether ONNXTRAIN_ISA is set.
bool instruction_set_is_limited();
// "AVX-512", "AVX2", "SSE4", "baseline"; on aarch64 the base is "NEON" and there is no other
const char* name_of(Isa isa);

}  // namespace onnxtrain
