// For packages only: libstdc++ as a static library of a machine with glibc 2.36 asks for arc4random
// (std::random_device). With this one the packages run from glibc 2.34 on.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t v = 0;
  if (getrandom(&v, sizeof v, 0) != ssize_t(sizeof v)) std::abort();
  return v;
}
