// Formats, primitives and cuts of convolutions.
#include "kernels/conv/conv_variant_onednn.hpp"

#include <algorithm>

#include "core/cpu.hpp"

namespace onnxtrain::onednn {

using dnnl::memory;
using kernels::ConvShape;

namespace {
memory::format_tag plain_tag(size_t rank) {
  constexpr memory::format_tag tags[] = {memory::format_tag::undef, memory::format_tag::a,
                                         memory::format_tag::ab,    memory::format_tag::abc,
                                         memory::format_tag::abcd,  memory::format_tag::abcde,
                                         memory::format_tag::abcdef};
  return tags[rank];
}
memory::desc dense_last(const Dims& d) {
  constexpr memory::format_tag tags[] = {memory::format_tag::acb, memory::format_tag::acdb,
                                         memory::format_tag::acdeb};
  return {d, memory::data_type::f32, tags[d.size() - 3]};
}
}  // namespace

memory::desc plain(const Dims& d) { return {d, memory::data_type::f32, plain_tag(d.size())}; }

memory::desc chunk_of(Dims d, int64_t all_channels, bool last) {
  if (last && d[1] == all_channels) return dense_last(d);
  if (last) {
    Dims strides(d.size());
    int64_t s = all_channels;
    for (size_t k = d.size(); k-- > 2;) {
      strides[k] = s;
      s *= d[k];
    }
    strides[0] = s;
    strides[1] = 1;
    return {d, memory::data_type::f32, strides};
  }
  Dims strides(d.size());
  int64_t s = 1;
  for (size_t k = d.size(); k-- > 1;) {
    strides[k] = s;
    s *= d[k];
  }
  strides[0] = d[1] == all_channels || d[0] == 1 ? s : s / d[1] * all_channels;
  return {d, memory::data_type::f32, strides};
}

Dims activations(int64_t n, int64_t c, const std::vector<int64_t>& spatial) {
  Dims d{n, c};
  d.insert(d.end(), spatial.begin(), spatial.end());
  return d;
}

Dims weight_dims(const ConvShape& s) {
  Dims d;
  if (s.groups > 1) d.push_back(s.groups);
  d.push_back(s.out_per_group());
  d.push_back(s.in_per_group());
  d.insert(d.end(), s.window.kernel.begin(), s.window.kernel.end());
  return d;
}

namespace {
memory::desc any(const Dims& d) { return {d, memory::data_type::f32, memory::format_tag::any}; }

struct Geometry {
  Dims strides, dilations, begin, end;
  explicit Geometry(const kernels::Window& w) : strides(w.strides), begin(w.pads_begin) {
    for (size_t d = 0; d < w.dims(); ++d) {
      dilations.push_back(w.dilations[d] - 1);
      // the padding that the last window really uses
      int64_t reach = (w.out[d] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
      end.push_back(std::max<int64_t>(0, reach - w.in[d] - w.pads_begin[d]));
    }
  }
};

template <class Pd>
void keep(Variant& v, const Pd& pd) {
  v.scratch = pd.scratchpad_desc();
  v.name = pd.impl_info_str();
}

// last: with channels last; otherwise oneDNN chooses.
Variant variant_in(const ConvShape& s, ConvPass pass, bool bias, bool last,
                   const memory::desc* weights) {
  Variant v;
  v.shape = s;
  auto format = last ? dense_last : any;
  memory::desc src = format(activations(s.batch, s.in_channels, s.window.in));
  memory::desc dst = format(activations(s.batch, s.out_channels, s.window.out));
  memory::desc w = weights ? *weights : any(weight_dims(s));
  memory::desc b = bias ? plain({s.out_channels}) : memory::desc();
  Geometry g(s.window);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  auto algo = dnnl::algorithm::convolution_direct;
  dnnl::convolution_forward::primitive_desc forward(
      cpu(), dnnl::prop_kind::forward_training, algo, src, w,
      pass == ConvPass::kForward ? b : memory::desc(), dst, g.strides, g.dilations, g.begin, g.end,
      attr);
  if (pass == ConvPass::kForward) {
    v.src = forward.src_desc(), v.weights = forward.weights_desc(), v.dst = forward.dst_desc();
    v.primitive = dnnl::convolution_forward(forward);
    keep(v, forward);
  } else if (pass == ConvPass::kInputGradient) {
    dnnl::convolution_backward_data::primitive_desc pd(cpu(), algo, src, w, dst, g.strides,
                                                       g.dilations, g.begin, g.end, forward, attr);
    v.src = pd.diff_src_desc(), v.weights = pd.weights_desc(), v.dst = pd.diff_dst_desc();
    v.primitive = dnnl::convolution_backward_data(pd);
    keep(v, pd);
  } else {
    dnnl::convolution_backward_weights::primitive_desc pd(
        cpu(), algo, src, w, dst, g.strides, g.dilations, g.begin, g.end, forward, attr);
    v.src = pd.src_desc(), v.weights = pd.diff_weights_desc(), v.dst = pd.diff_dst_desc();
    v.primitive = dnnl::convolution_backward_weights(pd);
    keep(v, pd);
  }
  return v;
}

}  // namespace

Variant make_variant(const ConvShape& s, ConvPass pass, bool bias, bool* last,
                     const memory::desc* weights) {
  if (*last) {
    try {
      Variant v = variant_in(s, pass, bias, true, weights);
      if (!v.by_reference()) return v;
    } catch (const dnnl::error&) {
      // there is another way
    }
    *last = false;
  }
  return variant_in(s, pass, bias, false, weights);
}

Cut choose_cut(const ConvShape& s, ConvPass pass, bool last) {
  double weights = double(s.out_channels) * double(s.in_per_group()) * double(s.window.taps());
  double flops = 2.0 * double(s.batch) * double(s.window.out_size()) * weights;
  double moved = double(s.batch) * (double(s.in_channels) * double(s.window.in_size()) +
                                    double(s.out_channels) * double(s.window.out_size()));
  // channels that a part may divide: whole groups, or blocks that fill a vector
  int64_t split =
      s.groups > 1 ? s.groups : (pass == ConvPass::kInputGradient ? s.in_channels : s.out_channels);
  int64_t vector = instruction_set() >= Isa::kAvx512 && split % 32 == 0 ? 16 : 8;
  int64_t unit = s.groups > 1 && s.out_per_group() >= 8 ? 1 : vector;
  auto parts_for = [&](int64_t chunks) {
    int64_t parts = 1;
    for (int64_t p : {2, 4, 8})
      if (split % (p * unit) == 0 && chunks * p <= 8 && flops / double(chunks * p) > 2e6) parts = p;
    return parts;
  };
  bool gradient_of_weights = pass == ConvPass::kWeightGradient;
  // every batch chunk of a weight gradient costs one more set of weights: large ones are cut by
  // channels
  if (gradient_of_weights && 2 * weights > moved)
    if (int64_t parts = parts_for(1); parts >= 4) return {s.batch, 1, parts};
  int64_t most = gradient_of_weights ? 8 : 16;
  int64_t chunks = std::clamp<int64_t>(int64_t(flops / 2e6), 1, std::min(most, s.batch));
  int64_t images = (s.batch + chunks - 1) / chunks;
  chunks = (s.batch + images - 1) / images;
  int64_t parts = chunks < 4 ? parts_for(chunks) : 1;
  // few images, but more to read of them than of the weights: blocks of rows need no copies
  if (last && pass == ConvPass::kForward && images == 1 && chunks < 8 && weights < moved)
    if (int64_t rows = std::min({8 / chunks, s.window.out[0] / 2, int64_t(flops / 4e6) / chunks});
        rows > 1)
      return {images, chunks, 1, rows};
  return {images, chunks, parts};
}

ConvShape row_block(const ConvShape& s, int64_t begin, int64_t end, int64_t* from) {
  ConvShape b = s;
  const kernels::Window& w = s.window;
  int64_t first = begin * w.strides[0] - w.pads_begin[0];
  int64_t last =
      (end - 1) * w.strides[0] - w.pads_begin[0] + (w.kernel[0] - 1) * w.dilations[0] + 1;
  *from = std::clamp<int64_t>(first, 0, w.in[0] - 1);
  b.window.in[0] = std::max<int64_t>(1, std::min(last, w.in[0]) - *from);
  b.window.pads_begin[0] = *from - first;
  b.window.out[0] = end - begin;
  return b;
}

}  // namespace onnxtrain::onednn
