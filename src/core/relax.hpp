// What a thread does between two looks at something it waits for.
#pragma once

namespace onnxtrain {

// Lets the core's other thread work. Pauses lie apart: a hypervisor that sees many of them in a row
// takes the core away for a time slice, which made waiting cost several milliseconds.
inline void relax() {
  for (int i = 0; i < 200; ++i) asm volatile("" ::: "memory");
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace onnxtrain
