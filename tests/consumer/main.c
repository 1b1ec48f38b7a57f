/* The smallest program over the installed C API. */
#include <onnxtrain/onnxtrain.h>
#include <stdio.h>

int main(void) {
  puts(ot_version());
  return 0;
}
