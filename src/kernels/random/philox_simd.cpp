// Philox 4x32-10, one block per vector lane.
#include "core/random.hpp"
#include "kernels/common/targets.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/random/philox.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/philox_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D32 = hn::ScalableTag<uint32_t>;
using U = hn::Vec<D32>;

// Low and high words of a * m, lane by lane; m is the same in all lanes.
HWY_INLINE void wide_mul(U a, U m, U& low, U& high) {
  const D32 d;
  const hn::RepartitionToWide<D32> wide;
  const auto even = hn::MulEven(a, m);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), m);
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

// The counter of one block per lane.
struct Counter {
  U c0, c1, c2, c3;
  HWY_INLINE Counter(uint64_t index, uint64_t high) {
    const D32 d;
    const uint32_t low = uint32_t(index), upper = uint32_t(index >> 32);
    c0 = hn::Iota(d, low);
    // lanes whose low word began again from 0
    c1 = hn::Sub(hn::Set(d, upper), hn::VecFromMask(d, hn::Lt(c0, hn::Set(d, low))));
    c2 = hn::Set(d, uint32_t(high));
    c3 = hn::Set(d, uint32_t(high >> 32));
  }
  HWY_INLINE void round(U k0, U k1) {
    const D32 d;
    U low0, high0, low1, high1;
    wide_mul(c0, hn::Set(d, 0xD2511F53u), low0, high0);
    wide_mul(c2, hn::Set(d, 0xCD9E8D57u), low1, high1);
    c0 = hn::Xor(hn::Xor(high1, c1), k0);
    c2 = hn::Xor(hn::Xor(high0, c3), k1);
    c1 = low1;
    c3 = low0;
  }
  HWY_INLINE void store(float* out) const {
    const hn::RebindToFloat<D32> df;
    const hn::RebindToSigned<D32> di;
    const auto unit = hn::Set(df, 0x1p-24f);
    auto number = [&](U w) HWY_ATTR {
      return hn::Mul(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<8>(w))), unit);
    };
    hn::StoreInterleaved4(number(c0), number(c1), number(c2), number(c3), df, out);
  }
};

// Blocks [index, index + blocks) as numbers in [0, 1); blocks is a multiple of the lanes. Two
// vectors at a time: each waits for its own products.
void uniform_blocks(uint64_t seed, uint64_t high, uint64_t index, int64_t blocks, float* out) {
  const D32 d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  auto rounds = [&](auto&... counters) HWY_ATTR {
    uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const U v0 = hn::Set(d, k0), v1 = hn::Set(d, k1);
      (counters.round(v0, v1), ...);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  };
  int64_t b = 0;
  for (; b + 2 * lanes <= blocks; b += 2 * lanes, out += 8 * lanes) {
    Counter x(index + uint64_t(b), high), y(index + uint64_t(b + lanes), high);
    rounds(x, y);
    x.store(out);
    y.store(out + 4 * lanes);
  }
  for (; b < blocks; b += lanes, out += 4 * lanes) {
    Counter x(index + uint64_t(b), high);
    rounds(x);
    x.store(out);
  }
}

int64_t block_lanes() { return int64_t(hn::Lanes(D32())); }

void drop_tile(const float* x, float* y, float* u, int64_t n, float ratio, float scale) {
  const WholeIo::D d;
  const auto r = hn::Set(d, ratio), s = hn::Set(d, scale), one = hn::Set(d, 1.0f);
  each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
    const auto keep = hn::Ge(io.load(u + i), r);
    io.store(hn::IfThenElseZero(keep, hn::Mul(io.load(x + i), s)), y + i);
    io.store(hn::IfThenElseZero(keep, one), u + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain {
uint64_t philox_counter_high(uint64_t stream, uint64_t step);  // core/random.cpp
}
namespace onnxtrain::simd {
HWY_EXPORT(uniform_blocks);
HWY_EXPORT(block_lanes);
HWY_EXPORT(drop_tile);

void philox_uniform(uint64_t seed, uint64_t stream, uint64_t step, uint64_t first, int64_t n,
                    float* out) {
  const int64_t group = 4 * HWY_DYNAMIC_DISPATCH(block_lanes)();
  int64_t done = first % 4 == 0 ? n / group * group : 0;
  if (done > 0) HWY_DYNAMIC_DISPATCH(uniform_blocks)
  (seed, philox_counter_high(stream, step), first / 4, done / 4, out);
  if (done < n)
    onnxtrain::philox_uniform(seed, stream, step, first + uint64_t(done), n - done, out + done);
}

void drop(const float* x, float* y, float* u, uint8_t* keep, int64_t n, float ratio, float scale) {
  HWY_DYNAMIC_DISPATCH(drop_tile)(x, y, u, n, ratio, scale);
  if (keep) bytes_from_mask(u, keep, n);
}

}  // namespace onnxtrain::simd
#endif
