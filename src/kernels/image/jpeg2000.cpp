// JPEG 2000 (boxed .jp2 and bare code streams) through libopenjp2.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/image/decode.hpp"
#include "kernels/image/library.hpp"

namespace onnxtrain::image {

namespace {

struct Api {
  Library library{"libopenjp2.so.7", "JPEG 2000", "libopenjp2-7"};
#define OT_OPJ(name) \
  decltype(opj_##name)* name = library.function<decltype(opj_##name)>("opj_" #name)
  OT_OPJ(stream_create);
  OT_OPJ(stream_destroy);
  OT_OPJ(stream_set_read_function);
  OT_OPJ(stream_set_skip_function);
  OT_OPJ(stream_set_seek_function);
  OT_OPJ(stream_set_user_data);
  OT_OPJ(stream_set_user_data_length);
  OT_OPJ(create_decompress);
  OT_OPJ(destroy_codec);
  OT_OPJ(set_default_decoder_parameters);
  OT_OPJ(setup_decoder);
  OT_OPJ(read_header);
  OT_OPJ(decode);
  OT_OPJ(image_destroy);
#undef OT_OPJ
};

// The bytes as openjpeg's stream sees them.
struct Bytes {
  const uint8_t* data;
  int64_t size, pos = 0;
};

OPJ_SIZE_T read(void* to, OPJ_SIZE_T n, void* user) {
  auto& b = *static_cast<Bytes*>(user);
  int64_t count = std::min<int64_t>(int64_t(std::min<OPJ_SIZE_T>(n, 1u << 30)), b.size - b.pos);
  if (count <= 0) return OPJ_SIZE_T(-1);
  std::memcpy(to, b.data + b.pos, size_t(count));
  b.pos += count;
  return OPJ_SIZE_T(count);
}

OPJ_BOOL seek(OPJ_OFF_T to, void* user) {
  auto& b = *static_cast<Bytes*>(user);
  if (to < 0 || to > b.size) return OPJ_FALSE;
  b.pos = to;
  return OPJ_TRUE;
}

OPJ_OFF_T skip(OPJ_OFF_T n, void* user) {
  auto& b = *static_cast<Bytes*>(user);
  if (n < -b.pos || n > b.size - b.pos) return -1;
  b.pos += n;
  return n;
}

// A component's samples as 0..255, repeated where it is stored at a coarser grid.
uint8_t sample(const opj_image_comp_t& c, int64_t y, int64_t x) {
  int64_t cy = std::min<int64_t>(y / c.dy, c.h - 1), cx = std::min<int64_t>(x / c.dx, c.w - 1);
  int64_t v = c.data[cy * c.w + cx];
  if (c.sgnd) v += int64_t(1) << (c.prec - 1);
  v = c.prec > 8 ? v >> (c.prec - 8) : c.prec < 8 ? v * 255 / ((1 << c.prec) - 1) : v;
  return uint8_t(std::clamp<int64_t>(v, 0, 255));
}

Image pixels(const opj_image_t& image) {
  const auto* c = image.comps;
  if (image.numcomps < 1) damaged("JPEG 2000", "it has no components");
  bool colour = image.numcomps >= 3;
  if (image.color_space == OPJ_CLRSPC_SYCC || image.color_space == OPJ_CLRSPC_CMYK)
    data_error("OT1191", "a JPEG 2000 image in YCC or CMYK colours is not supported");
  for (int k = 0; k < (colour ? 3 : 1); ++k)
    if (!c[k].data || c[k].w < 1 || c[k].h < 1 || c[k].dx < 1 || c[k].dy < 1 || c[k].prec < 1 ||
        c[k].prec > 31)
      damaged("JPEG 2000", "a component is missing");
  Image p = blank("JPEG 2000", int64_t(image.y1) - image.y0, int64_t(image.x1) - image.x0);
  for (int64_t y = 0; y < p.height; ++y)
    for (int64_t x = 0; x < p.width; ++x)
      for (int k = 0; k < 3; ++k)
        p.rgb[size_t((y * p.width + x) * 3 + k)] = sample(c[colour ? k : 0], y, x);
  return p;
}

}  // namespace

Image decode_jpeg2000(const uint8_t* data, int64_t size) {
  static const Api api;
  bool boxed = size > 0 && data[0] == 0;
  Bytes bytes{data, size};
  std::unique_ptr<opj_stream_t, decltype(api.stream_destroy)> stream(
      api.stream_create(1 << 16, OPJ_TRUE), api.stream_destroy);
  std::unique_ptr<opj_codec_t, decltype(api.destroy_codec)> codec(
      api.create_decompress(boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), api.destroy_codec);
  if (!stream || !codec) damaged("JPEG 2000", "the decoder cannot be made");
  api.stream_set_read_function(stream.get(), read);
  api.stream_set_seek_function(stream.get(), seek);
  api.stream_set_skip_function(stream.get(), skip);
  api.stream_set_user_data(stream.get(), &bytes, nullptr);
  api.stream_set_user_data_length(stream.get(), OPJ_UINT64(size));
  opj_dparameters_t parameters;
  api.set_default_decoder_parameters(&parameters);
  opj_image_t* raw = nullptr;
  bool header = api.setup_decoder(codec.get(), &parameters) &&
                api.read_header(stream.get(), codec.get(), &raw);
  std::unique_ptr<opj_image_t, decltype(api.image_destroy)> image(raw, api.image_destroy);
  if (!header || !image) damaged("JPEG 2000", "its header cannot be read");
  // The size is checked against the memory limit before the decoder takes memory for it.
  blank("JPEG 2000", int64_t(image->y1) - image->y0, int64_t(image->x1) - image->x0);
  if (!api.decode(codec.get(), stream.get(), image.get()))
    damaged("JPEG 2000", "its pixels cannot be decoded");
  return pixels(*image);
}

}  // namespace onnxtrain::image
