// Windows that the tests of all pools go through.
#pragma once
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

struct PoolCase {
  Shape x;
  Ints kernel, strides, dilations, pads;
  int64_t ceil_mode = 0;
  const char* auto_pad = nullptr;
};

inline std::vector<PoolCase> pool_cases() {
  return {{{2, 2, 7}, {3}, {2}, {}, {1, 1}, 0, nullptr},
          {{1, 2, 5, 6}, {2, 3}, {1, 2}, {}, {0, 1, 1, 0}, 0, nullptr},
          {{1, 2, 6, 6}, {3, 3}, {2, 2}, {}, {}, 1, nullptr},
          {{1, 1, 7, 7}, {2, 2}, {2, 1}, {2, 3}, {1, 1, 1, 1}, 0, nullptr},
          {{1, 1, 5, 5}, {3, 3}, {2, 2}, {}, {}, 0, "SAME_UPPER"},
          {{1, 1, 6, 5}, {2, 3}, {2, 2}, {}, {}, 0, "SAME_LOWER"},
          {{1, 2, 3, 4, 3}, {2, 2, 2}, {1, 1, 2}, {}, {}, 0, nullptr}};
}

inline OpCase pool_op(const char* op, int version, const PoolCase& c) {
  OpCase o(op, version);
  o.attr("kernel_shape", c.kernel);
  if (!c.strides.empty()) o.attr("strides", c.strides);
  if (!c.dilations.empty()) o.attr("dilations", c.dilations);
  if (!c.pads.empty()) o.attr("pads", c.pads);
  if (c.ceil_mode) o.attr("ceil_mode", c.ceil_mode);
  if (c.auto_pad) o.attr("auto_pad", std::string(c.auto_pad));
  return o.input(random_tensor(c.x));
}

}  // namespace onnxtrain::testing
