// One chunk of a convolution as a oneDNN primitive, and how a problem is cut into chunks.
// Private to this folder.
#pragma once
#include "kernels/common/engine_onednn.hpp"
#include "kernels/conv/conv_general.hpp"

namespace onnxtrain::onednn {

using Dims = dnnl::memory::dims;

dnnl::memory::desc plain(const Dims& d);
Dims activations(int64_t n, int64_t c, const std::vector<int64_t>& spatial);
Dims weight_dims(const kernels::ConvShape& s);
// A chunk of a row-major [N, channels, spatial...] tensor: rows of the batch keep their full
// stride. last: of a [N, spatial..., channels] tensor, pixels keep theirs.
dnnl::memory::desc chunk_of(Dims d, int64_t all_channels, bool last);

// One shape of chunk: the primitive's description and the formats it wants.
struct Variant {
  kernels::ConvShape shape;
  dnnl::memory::desc src, weights, dst, scratch;
  dnnl::primitive primitive;
  std::string name;
  bool by_reference() const { return name.find("ref") != std::string::npos; }
};

// With channels last where oneDNN has a fast kernel for it, otherwise as it likes best (`last` is
// then false afterwards). weights: the format that must be taken, or null.
Variant make_variant(const kernels::ConvShape& s, ConvPass pass, bool bias, bool* last,
                     const dnnl::memory::desc* weights);

// How the problem is cut; depends on the problem only.
struct Cut {
  int64_t images;  // per chunk
  int64_t chunks, parts;
  int64_t rows = 1;  // blocks of output rows of every chunk, which is then one image
};
Cut choose_cut(const kernels::ConvShape& s, ConvPass pass, bool last);
// The block of output rows [begin, end) as a problem of its own; `from`: its first input row.
kernels::ConvShape row_block(const kernels::ConvShape& s, int64_t begin, int64_t end,
                             int64_t* from);

}  // namespace onnxtrain::onednn
