// ImageDecoder on an image of two pixels; formats are tested in tests/conformance.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(ImageDecoder, Formats) {
  const std::string text = "P6\n2 1\n255\n";
  std::vector<uint8_t> bytes(text.begin(), text.end());
  for (int v : {255, 0, 0, 10, 20, 30}) bytes.push_back(uint8_t(v));
  auto decode = [&](const char* format) {
    return OpCase("ImageDecoder", 20)
        .attr("pixel_format", std::string(format))
        .input(Tensor::vector<uint8_t>(bytes));
  };
  auto image = [](const std::vector<uint8_t>& v, int64_t channels) {
    return Tensor::vector<uint8_t>(v).reshaped({1, 2, channels});
  };
  decode("RGB").expect(image({255, 0, 0, 10, 20, 30}, 3));
  decode("BGR").expect(image({0, 0, 255, 30, 20, 10}, 3));
  decode("Grayscale").expect(image({76, 18}, 1));
  EXPECT_THROW(decode("CMYK").run(), Error);
  bytes.resize(bytes.size() - 1);
  EXPECT_THROW(decode("RGB").run(), Error);
}

}  // namespace onnxtrain::testing
