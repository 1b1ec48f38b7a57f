// Two passes of eight values each.
#include "kernels/image/jpeg_transform.hpp"

namespace onnxtrain::image {

namespace {

uint8_t clamp(int64_t v) { return uint8_t(v < 0 ? 0 : v > 255 ? 255 : v); }

// One pass of eight over values `step` apart; the even and odd part of libjpeg's jidctint.
void eight(const int64_t* in, int64_t step, int64_t* out) {
  int64_t z1, z2 = in[2 * step], z3 = in[6 * step], z4, z5;
  z1 = (z2 + z3) * 4433;
  int64_t t2 = z1 + z3 * -15137, t3 = z1 + z2 * 6270;
  int64_t t0 = (in[0] + in[4 * step]) * 8192, t1 = (in[0] - in[4 * step]) * 8192;
  int64_t e0 = t0 + t3, e3 = t0 - t3, e1 = t1 + t2, e2 = t1 - t2;
  t0 = in[7 * step], t1 = in[5 * step], t2 = in[3 * step], t3 = in[step];
  z1 = t0 + t3, z2 = t1 + t2, z3 = t0 + t2, z4 = t1 + t3, z5 = (z3 + z4) * 9633;
  t0 *= 2446, t1 *= 16819, t2 *= 25172, t3 *= 12299;
  z1 *= -7373, z2 *= -20995, z3 = z3 * -16069 + z5, z4 = z4 * -3196 + z5;
  t0 += z1 + z3, t1 += z2 + z4, t2 += z2 + z3, t3 += z1 + z4;
  out[0] = e0 + t3, out[7] = e0 - t3, out[1] = e1 + t2, out[6] = e1 - t2;
  out[2] = e2 + t1, out[5] = e2 - t1, out[3] = e3 + t0, out[4] = e3 - t0;
}

}  // namespace

void jpeg_transform(const int64_t* v, uint8_t* to, int64_t stride) {
  int64_t middle[64], line[8];
  for (int x = 0; x < 8; ++x) {
    eight(v + x, 8, line);
    for (int y = 0; y < 8; ++y) middle[y * 8 + x] = (line[y] + (1 << 10)) >> 11;
  }
  for (int y = 0; y < 8; ++y) {
    eight(middle + y * 8, 1, line);
    for (int x = 0; x < 8; ++x) to[y * stride + x] = clamp(((line[x] + (1 << 17)) >> 18) + 128);
  }
}

}  // namespace onnxtrain::image
