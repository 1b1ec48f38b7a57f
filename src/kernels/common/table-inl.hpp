// The kernels of a file as a table of functions, for the best instruction set that this machine
// has.
#pragma once

// In the part of a file that is compiled once: const Table& name(), from the function make, which
// each instruction set has.
#define OT_SIMD_TABLE(Table, name, make)                            \
  HWY_EXPORT(make);                                                 \
  const Table& name() {                                             \
    static const Table* const table = HWY_DYNAMIC_DISPATCH(make)(); \
    return *table;                                                  \
  }
