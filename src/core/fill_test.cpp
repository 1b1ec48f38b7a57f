#include "core/fill.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>

#include "core/threads.hpp"

namespace onnxtrain {
namespace {

TEST(Fill, EveryByteOnceForAnyNumberOfThreads) {
  std::vector<std::vector<uint8_t>> from;
  for (size_t n : {size_t(0), size_t(1), size_t(4097), size_t(1) << 20, (size_t(3) << 20) + 5}) {
    from.emplace_back(n);
    std::iota(from.back().begin(), from.back().end(), uint8_t(n));
  }
  for (int threads : {0, 1, 2, 4}) {
    std::vector<std::vector<uint8_t>> to;
    std::vector<Fill> fills;
    std::atomic<size_t> written{0}, all{0};
    for (const auto& f : from) to.emplace_back(f.size(), 0);
    for (size_t k = 0; k < from.size(); ++k) {
      all += from[k].size();
      fills.push_back({to[k].data(), to[k].size(), [&, k](size_t at, void* out, size_t n) {
                         std::copy_n(from[k].data() + at, n, static_cast<uint8_t*>(out));
                         written += n;
                       }});
    }
    if (threads == 0) {
      fill_all(fills);
    } else {
      ThreadPool pool(threads);
      fill_all(fills, pool);
    }
    EXPECT_EQ(to, from);
    EXPECT_EQ(written, all);
  }
}

TEST(Fill, AnErrorOfAnyThreadIsThrown) {
  std::vector<uint8_t> to(size_t(8) << 20);
  const std::vector<Fill> fills{{to.data(), to.size(), [](size_t at, void*, size_t) {
                                   if (at >= (4 << 20)) throw std::runtime_error("cut short");
                                 }}};
  EXPECT_THROW(fill_all(fills), std::runtime_error);
}

}  // namespace
}  // namespace onnxtrain
