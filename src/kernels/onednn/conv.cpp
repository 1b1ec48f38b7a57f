// Convolution chunks over oneDNN primitives.
#include "kernels/onednn/conv.hpp"

#include <cstring>

#include "core/error.hpp"
#include "core/tensor.hpp"
#include "kernels/onednn/common.hpp"

namespace onnxtrain::onednn {

namespace {

using dnnl::memory;
using kernels::ConvShape;
using Dims = memory::dims;

memory::format_tag plain_tag(size_t rank) {
  constexpr memory::format_tag tags[] = {memory::format_tag::undef, memory::format_tag::a,
                                         memory::format_tag::ab,    memory::format_tag::abc,
                                         memory::format_tag::abcd,  memory::format_tag::abcde,
                                         memory::format_tag::abcdef};
  return tags[rank];
}
memory::desc any(const Dims& d) { return {d, memory::data_type::f32, memory::format_tag::any}; }
memory::desc plain(const Dims& d) { return {d, memory::data_type::f32, plain_tag(d.size())}; }

memory::desc dense_last(const Dims& d) {
  constexpr memory::format_tag tags[] = {memory::format_tag::acb, memory::format_tag::acdb,
                                         memory::format_tag::acdeb};
  return {d, memory::data_type::f32, tags[d.size() - 3]};
}

// A chunk of a row-major [N, channels, spatial...] tensor: rows of the batch keep their full
// stride. last: of a [N, spatial..., channels] tensor, pixels keep theirs.
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

// One shape of chunk: the primitive's description and the formats it wants.
struct Variant {
  int64_t images = 0;
  memory::desc src, weights, dst, scratch;
  dnnl::primitive primitive;
  std::string name;
};

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
Variant make_variant(const ConvShape& s, ConvPass pass, bool bias, bool last,
                     const memory::desc* weights) {
  Variant v;
  v.images = s.batch;
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
  } else if (pass == ConvPass::kGradX) {
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

bool by_reference(const Variant& v) { return v.name.find("ref") != std::string::npos; }

// With channels last where oneDNN has a fast kernel for it, otherwise as it likes best.
Variant make_best(const ConvShape& s, ConvPass pass, bool bias, bool* last,
                  const memory::desc* weights) {
  if (*last) {
    try {
      Variant v = make_variant(s, pass, bias, true, weights);
      if (!by_reference(v)) return v;
    } catch (const dnnl::error&) {
      // there is another way
    }
    *last = false;
  }
  return make_variant(s, pass, bias, false, weights);
}

// How the problem is cut; depends on the problem only.
struct Cut {
  int64_t images;  // per chunk
  int64_t chunks, parts;
};

Cut choose_cut(const ConvShape& s, ConvPass pass) {
  double weights = double(s.out_channels) * double(s.in_per_group()) * double(s.window.taps());
  double flops = 2.0 * double(s.batch) * double(s.window.out_size()) * weights;
  double moved = double(s.batch) * (double(s.in_channels) * double(s.window.in_size()) +
                                    double(s.out_channels) * double(s.window.out_size()));
  // channels that a part may divide: whole groups, or blocks of 8 that vectors are made of
  int64_t split =
      s.groups > 1 ? s.groups : (pass == ConvPass::kGradX ? s.in_channels : s.out_channels);
  int64_t unit = s.groups > 1 && s.out_per_group() >= 8 ? 1 : 8;
  auto parts_for = [&](int64_t chunks) {
    int64_t parts = 1;
    for (int64_t p : {2, 4, 8})
      if (split % (p * unit) == 0 && chunks * p <= 8 && flops / double(chunks * p) > 2e6) parts = p;
    return parts;
  };
  bool gradient_of_weights = pass == ConvPass::kGradW;
  // every batch chunk of a weight gradient costs one more set of weights: large ones are cut by
  // channels
  if (gradient_of_weights && 2 * weights > moved)
    if (int64_t parts = parts_for(1); parts >= 4) return {s.batch, 1, parts};
  int64_t most = gradient_of_weights ? 8 : 16;
  int64_t chunks = std::clamp<int64_t>(int64_t(flops / 2e6), 1, std::min(most, s.batch));
  int64_t images = (s.batch + chunks - 1) / chunks;
  chunks = (s.batch + images - 1) / images;
  return {images, chunks, chunks < 4 ? parts_for(chunks) : 1};
}

}  // namespace

struct ConvPlan::Impl {
  struct SlotCalls {
    Call main, src, dst;
  };
  ConvShape full, part;  // part: of one channel part, batch = images of a whole chunk
  ConvPass pass;
  bool with_bias, last;
  Cut cut;
  std::vector<Variant> variants;                // whole chunk, then the shorter last one if any
  std::vector<std::vector<SlotCalls>> calls;    // [variant][slot]
  std::vector<std::vector<Call>> weight_calls;  // [variant (weight gradient) or 0][slot]
  Slots slots;
  size_t src_bytes = 0, dst_bytes = 0, scratch_bytes = 0, weight_bytes = 0, partial_bytes = 0;
  bool same_weights = false;  // oneDNN takes the weights as they are
  std::shared_ptr<void> fixed;

  explicit Impl(int threads) : slots(threads) {}

  bool gradient_of_weights() const { return pass == ConvPass::kGradW; }
  size_t slot_bytes() const {
    return src_bytes + dst_bytes + scratch_bytes + (gradient_of_weights() ? weight_bytes : 0);
  }
  size_t weights_area() const {
    if (gradient_of_weights()) return cut.chunks > 1 ? partial_bytes * size_t(cut.chunks) : 0;
    return fixed || same_weights ? 0 : weight_bytes * size_t(cut.parts);
  }
  bool splits_groups() const { return full.groups > 1; }
  int64_t weights_per_part() const {
    return part.out_channels * part.in_per_group() * part.window.taps();
  }
  // Where part q begins in the plain weights; input channels cut the second dimension.
  int64_t weight_offset(int64_t q) const {
    if (pass == ConvPass::kGradX && !splits_groups())
      return q * part.in_channels * part.window.taps();
    return q * weights_per_part();
  }
  int64_t src_channel(int64_t q) const {
    return splits_groups() || pass == ConvPass::kGradX ? q * part.in_channels : 0;
  }
  int64_t dst_channel(int64_t q) const {
    return splits_groups() || pass != ConvPass::kGradX ? q * part.out_channels : 0;
  }

  memory::desc plain_weights() const {
    Dims d = weight_dims(part);
    if (pass != ConvPass::kGradX || splits_groups()) return plain(d);
    Dims strides(d.size());
    int64_t s = 1;
    for (size_t k = d.size(); k-- > 0;) {
      strides[k] = s;
      s *= k == 1 ? full.in_channels : d[k];
    }
    return {d, memory::data_type::f32, strides};
  }

  void prepare();
  void prepare_weights();
  void convert_weights(const float* w, char* to, ThreadPool* pool);
  void task(const ConvArgs& a, int64_t t, const char* weights, char* slot_area);
  void add_bias(const float* bias, int64_t images, float* to) const;
  void add_partials(const char* partials, float* out, ThreadPool& pool) const;
};

void ConvPlan::Impl::prepare() {
  for (const Variant& v : variants) {
    memory::desc src =
        chunk_of(activations(v.images, part.in_channels, part.window.in), full.in_channels, last);
    memory::desc dst = chunk_of(activations(v.images, part.out_channels, part.window.out),
                                full.out_channels, last);
    std::vector<SlotCalls> list;
    for (int k = 0; k < slots.count(); ++k) {
      SlotCalls c;
      bool src_out = pass == ConvPass::kGradX, dst_out = pass == ConvPass::kForward;
      c.src = src_out ? make_reorder(v.src, src) : make_reorder(src, v.src);
      c.dst = dst_out ? make_reorder(v.dst, dst) : make_reorder(dst, v.dst);
      std::vector<std::pair<int, memory::desc>> operands = {
          {src_out ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, v.src},
          {gradient_of_weights() ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, v.weights},
          {dst_out ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, v.dst},
          {DNNL_ARG_SCRATCHPAD, v.scratch}};
      if (with_bias && dst_out) operands.push_back({DNNL_ARG_BIAS, plain({part.out_channels})});
      c.main = Call(v.primitive, operands);
      list.push_back(std::move(c));
    }
    src_bytes = std::max(src_bytes, aligned(v.src.get_size()));
    dst_bytes = std::max(dst_bytes, aligned(v.dst.get_size()));
    scratch_bytes = std::max(scratch_bytes, aligned(v.scratch.get_size()));
    weight_bytes = std::max(weight_bytes, aligned(v.weights.get_size()));
    calls.push_back(std::move(list));
  }
  prepare_weights();
}

void ConvPlan::Impl::prepare_weights() {
  memory::desc w = plain_weights();
  partial_bytes =
      aligned(size_t(full.out_channels * full.in_per_group() * full.window.taps()) * sizeof(float));
  same_weights = true;
  for (const Variant& v : variants) {
    std::vector<Call> list;
    for (int k = 0; k < slots.count(); ++k)
      list.push_back(gradient_of_weights() ? make_reorder(v.weights, w)
                                           : make_reorder(w, v.weights));
    same_weights &= !list[0];
    weight_calls.push_back(std::move(list));
    if (!gradient_of_weights()) break;  // all variants take the same format
  }
}

void ConvPlan::Impl::convert_weights(const float* w, char* to, ThreadPool* pool) {
  auto one = [&](int64_t q) {
    SingleThread single;
    int slot = slots.take();
    weight_calls[0][size_t(slot)].run({w + weight_offset(q), to + size_t(q) * weight_bytes});
    slots.give_back(slot);
  };
  if (pool && cut.parts > 1) {
    pool->run(cut.parts, one);
  } else {
    for (int64_t q = 0; q < cut.parts; ++q) one(q);
  }
}

// Adds the bias of a transposed convolution to a chunk.
void ConvPlan::Impl::add_bias(const float* bias, int64_t images, float* to) const {
  int64_t plane = full.window.in_size();
  if (last) {
    for (int64_t i = 0; i < images * plane; ++i, to += full.in_channels)
      for (int64_t ch = 0; ch < part.in_channels; ++ch) to[ch] += bias[ch];
    return;
  }
  for (int64_t i = 0; i < images; ++i)
    for (int64_t ch = 0; ch < part.in_channels; ++ch) {
      float* row = to + (i * full.in_channels + ch) * plane;
      for (int64_t j = 0; j < plane; ++j) row[j] += bias[ch];
    }
}

void ConvPlan::Impl::task(const ConvArgs& a, int64_t t, const char* weights, char* slot_area) {
  SingleThread single;
  int64_t chunk = t / cut.parts, q = t % cut.parts, n = chunk * cut.images;
  size_t v = variants.size() > 1 && chunk == cut.chunks - 1 ? 1 : 0;
  int slot = slots.take();
  SlotCalls& c = calls[v][size_t(slot)];
  char* area = slot_area + size_t(slot) * slot_bytes();
  char *src = area, *dst = src + src_bytes, *scratch = dst + dst_bytes,
       *dw = scratch + scratch_bytes;
  int64_t src_at = n * full.in_channels * full.window.in_size() +
                   src_channel(q) * (last ? 1 : full.window.in_size());
  int64_t dst_at = n * full.out_channels * full.window.out_size() +
                   dst_channel(q) * (last ? 1 : full.window.out_size());
  const float* bias = a.bias ? a.bias + dst_channel(q) : nullptr;
  auto through = [](Call& reorder, const float* from, char* to) -> const void* {
    if (!reorder) return from;
    reorder.run({from, to});
    return to;
  };
  if (pass == ConvPass::kForward) {
    const void* s = through(c.src, a.x + src_at, src);
    const void* w = same_weights && !fixed ? static_cast<const void*>(a.w + weight_offset(q))
                                           : weights + size_t(q) * weight_bytes;
    void* d = c.dst ? static_cast<void*>(dst) : a.out + dst_at;
    if (with_bias)
      c.main.run({s, w, d, scratch, bias});
    else
      c.main.run({s, w, d, scratch});
    if (c.dst) c.dst.run({dst, a.out + dst_at});
  } else if (pass == ConvPass::kGradX) {
    const void* d = through(c.dst, a.dy + dst_at, dst);
    const void* w = same_weights && !fixed ? static_cast<const void*>(a.w + weight_offset(q))
                                           : weights + size_t(q) * weight_bytes;
    void* s = c.src ? static_cast<void*>(src) : a.out + src_at;
    c.main.run({s, w, d, scratch});
    if (c.src) c.src.run({src, a.out + src_at});
    if (a.bias) add_bias(a.bias + src_channel(q), variants[v].images, a.out + src_at);
  } else {
    const void* s = through(c.src, a.x + src_at, src);
    const void* d = through(c.dst, a.dy + dst_at, dst);
    char* base = cut.chunks > 1 ? const_cast<char*>(weights) + size_t(chunk) * partial_bytes
                                : reinterpret_cast<char*>(a.out);
    float* to = reinterpret_cast<float*>(base) + weight_offset(q);
    Call& back = weight_calls[v][size_t(slot)];
    c.main.run({s, back ? static_cast<void*>(dw) : to, d, scratch});
    if (back) back.run({dw, to});
  }
  slots.give_back(slot);
}

void ConvPlan::Impl::add_partials(const char* partials, float* out, ThreadPool& pool) const {
  int64_t n = full.out_channels * full.in_per_group() * full.window.taps();
  parallel_for(pool, n, 8192, [&](int64_t b, int64_t e) {
    const auto* first = reinterpret_cast<const float*>(partials);
    std::copy(first + b, first + e, out + b);
    for (int64_t c = 1; c < cut.chunks; ++c) {
      const auto* p = reinterpret_cast<const float*>(partials + size_t(c) * partial_bytes);
      for (int64_t i = b; i < e; ++i) out[i] += p[i];
    }
  });
}

ConvPlan::ConvPlan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConvPlan::~ConvPlan() = default;

std::unique_ptr<ConvPlan> ConvPlan::make(const ConvShape& shape, ConvPass pass, bool with_bias,
                                         bool channels_last, int threads, std::string* why) {
  auto refuse = [&](std::string text) {
    if (why) *why = std::move(text);
    return nullptr;
  };
  if (shape.window.dims() > 3) return refuse("more than 3 spatial dimensions");
  if (shape.batch == 0 || shape.window.out_size() == 0 || shape.window.in_size() == 0 ||
      shape.in_channels == 0 || shape.out_channels == 0)
    return refuse("an empty tensor");
  SingleThread single;
  auto impl = std::make_unique<Impl>(std::max(1, threads));
  impl->full = shape;
  impl->pass = pass;
  impl->with_bias = with_bias;
  impl->last = channels_last;
  impl->cut = choose_cut(shape, pass);
  impl->part = shape;
  impl->part.batch = impl->cut.images;
  int64_t parts = impl->cut.parts;
  if (shape.groups > 1) {
    impl->part.groups /= parts;
    impl->part.in_channels /= parts;
    impl->part.out_channels /= parts;
  } else if (pass == ConvPass::kGradX) {
    impl->part.in_channels /= parts;
  } else {
    impl->part.out_channels /= parts;
  }
  try {
    bool last = channels_last;
    impl->variants.push_back(make_best(impl->part, pass, with_bias, &last, nullptr));
    if (by_reference(impl->variants[0]))
      return refuse("oneDNN has only its reference here");
    int64_t rest = shape.batch - (impl->cut.chunks - 1) * impl->cut.images;
    if (rest != impl->cut.images) {
      ConvShape tail = impl->part;
      tail.batch = rest;
      impl->variants.push_back(make_variant(
          tail, pass, with_bias, last,
          pass == ConvPass::kGradW ? nullptr : &impl->variants[0].weights));
    }
    impl->prepare();
  } catch (const dnnl::error& e) {
    return refuse(cat("oneDNN: ", e.what()));
  }
  return std::unique_ptr<ConvPlan>(new ConvPlan(std::move(impl)));
}

void ConvPlan::fix_weights(const float* w) {
  if (impl_->gradient_of_weights() || impl_->same_weights) return;
  std::shared_ptr<void> area = allocate(impl_->weight_bytes * size_t(impl_->cut.parts));
  impl_->convert_weights(w, static_cast<char*>(area.get()), nullptr);
  impl_->fixed = std::move(area);
}

size_t ConvPlan::workspace() const {
  return impl_->weights_area() + impl_->slot_bytes() * size_t(impl_->slots.count());
}

void ConvPlan::run(const ConvArgs& args, void* workspace, ThreadPool& pool) {
  Impl& m = *impl_;
  char* weights = static_cast<char*>(workspace);
  char* slot_area = weights + m.weights_area();
  if (!m.gradient_of_weights()) {
    if (m.fixed)
      weights = static_cast<char*>(m.fixed.get());
    else if (!m.same_weights)
      m.convert_weights(args.w, weights, &pool);
  }
  pool.run(m.cut.chunks * m.cut.parts, [&](int64_t t) { m.task(args, t, weights, slot_area); });
  if (m.gradient_of_weights() && m.cut.chunks > 1) m.add_partials(weights, args.out, pool);
}

std::string ConvPlan::describe() const {
  return cat(impl_->variants[0].name, ", ", impl_->cut.chunks, " chunks of ", impl_->cut.images,
             " images, ", impl_->cut.parts, " parts");
}

}  // namespace onnxtrain::onednn
