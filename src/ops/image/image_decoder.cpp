// ImageDecoder: the bytes of an image to [height, width, channels].
#include "kernels/image/decode.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

namespace {

enum class Pixels { kRgb, kBgr, kGrey };

Pixels pixels_of(const Node& n) {
  std::string f = n.s("pixel_format", "RGB");
  if (f == "RGB") return Pixels::kRgb;
  if (f == "BGR") return Pixels::kBgr;
  if (f == "Grayscale") return Pixels::kGrey;
  model_error("OT1192", cat("pixel_format of ", n.label(), " is '", f, "'"));
}

void shape(ShapeCtx& c) {
  pixels_of(c.node());
  if (c.rank(0) != 1 || c.dtype(0) != DType::kUint8)
    model_error("OT1192", "ImageDecoder needs a row of bytes");
  c.set_dynamic(0, DType::kUint8);
}

Kernel make(Prepare& p) {
  Pixels format = pixels_of(p.node());
  int64_t size = p.in(0).size();
  return [=](const Run& r) {
    image::Image decoded = image::decode(r.in<uint8_t>(0), size);
    int64_t channels = format == Pixels::kGrey ? 1 : 3, n = decoded.height * decoded.width;
    uint8_t* y = r.allocate<uint8_t>(0, {decoded.height, decoded.width, channels});
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t* c = decoded.rgb.data() + i * 3;
      if (format == Pixels::kGrey) {
        y[i] = uint8_t((c[0] * 19595 + c[1] * 38470 + c[2] * 7471 + 0x8000) >> 16);
      } else {
        for (int k = 0; k < 3; ++k) y[i * 3 + k] = c[format == Pixels::kRgb ? k : 2 - k];
      }
    }
  };
}

}  // namespace

void register_image_decoder(OpTable& t) {
  t.add({.name = "ImageDecoder",
         .since = 20,
         .shape = shape,
         .impls = {{"own", nullptr, make}},
         .no_grad = "it decodes bytes"});
}

}  // namespace onnxtrain::ops
