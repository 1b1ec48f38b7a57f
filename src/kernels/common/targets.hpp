// Which instruction sets the vector kernels are compiled for. Include before any Highway header.
// On x86: SSE4 (the least we run on), AVX2+FMA and AVX-512; fewer means faster builds.
#pragma once
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_SSE4
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
