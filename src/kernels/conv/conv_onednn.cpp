// Convolution chunks over oneDNN primitives: images of the batch, and parts of the channels when
// there are few images, each a single-threaded primitive that our pool runs. Weight gradients of
// the chunks are added in their order. Channels last is what oneDNN reads and writes directly.
#include <algorithm>

#include "core/error.hpp"
#include "core/tensor.hpp"
#include "kernels/conv/conv_general.hpp"
#include "kernels/conv/conv_variant_onednn.hpp"

namespace onnxtrain::general {

using namespace onednn;

using dnnl::memory;
using kernels::ConvShape;

const char* const kConvName = "onednn";
const bool kConvIsFastForDepthwise = true;

struct ConvPlan::Impl {
  struct SlotCalls {
    Call main, src, dst;
  };
  ConvShape full, part;  // part: of one channel part, batch = images of a whole chunk
  ConvPass pass;
  bool with_bias, last;
  bool fast_last;  // oneDNN has a fast kernel for channels last
  Cut cut;
  struct Task {
    size_t variant;
    int64_t chunk, part, image;
    int64_t src_row, dst_row;  // of the first spatial dimension
  };
  std::vector<Variant> variants;  // one per shape of chunk
  std::vector<Task> tasks;
  std::vector<std::vector<SlotCalls>> calls;    // [variant][slot]
  std::vector<std::vector<Call>> weight_calls;  // [variant (weight gradient) or 0][slot]
  Slots slots;
  size_t src_bytes = 0, dst_bytes = 0, scratch_bytes = 0, weight_bytes = 0, partial_bytes = 0;
  bool same_weights = false;  // oneDNN takes the weights as they are
  std::shared_ptr<void> fixed;
  int64_t piece_channels = 0;
  std::vector<Call> pieces;  // reorders of the weights in pieces; empty: as a whole

  explicit Impl(int threads) : slots(threads) {}

  bool gradient_of_weights() const { return pass == ConvPass::kWeightGradient; }
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
    if (pass == ConvPass::kInputGradient && !splits_groups())
      return q * part.in_channels * part.window.taps();
    return q * weights_per_part();
  }
  int64_t src_channel(int64_t q) const {
    return splits_groups() || pass == ConvPass::kInputGradient ? q * part.in_channels : 0;
  }
  int64_t dst_channel(int64_t q) const {
    return splits_groups() || pass != ConvPass::kInputGradient ? q * part.out_channels : 0;
  }

  memory::desc plain_weights() const {
    Dims d = weight_dims(part);
    if (pass != ConvPass::kInputGradient || splits_groups()) return plain(d);
    Dims strides(d.size());
    int64_t s = 1;
    for (size_t k = d.size(); k-- > 0;) {
      strides[k] = s;
      s *= k == 1 ? full.in_channels : d[k];
    }
    return {d, memory::data_type::f32, strides};
  }

  void make_tasks(const memory::desc* weights);
  size_t variant_for(const ConvShape& s, const memory::desc* weights);
  bool by_reference() const;
  void make_variants();
  void prepare();
  void prepare_weights();
  void split_weights();
  void convert_weights(const float* w, char* to, ThreadPool* pool);
  void task(const ConvArgs& a, const Task& t, const char* weights, char* slot_area);
  void add_bias(const float* bias, int64_t images, float* to) const;
  void add_partials(const char* partials, float* out, ThreadPool& pool) const;
};

size_t ConvPlan::Impl::variant_for(const ConvShape& s, const memory::desc* weights) {
  for (size_t k = 0; k < variants.size(); ++k) {
    const ConvShape& v = variants[k].shape;
    if (v.batch == s.batch && v.window.in == s.window.in && v.window.out == s.window.out &&
        v.window.pads_begin == s.window.pads_begin)
      return k;
  }
  if (!weights && !variants.empty() && !gradient_of_weights()) weights = &variants[0].weights;
  variants.push_back(make_variant(s, pass, with_bias, &fast_last, weights));
  return variants.size() - 1;
}

// weights: the format that all variants take; null: the one that suits the first.
void ConvPlan::Impl::make_tasks(const memory::desc* weights) {
  variants.clear();
  tasks.clear();
  fast_last = last;
  for (int64_t chunk = 0; chunk < cut.chunks; ++chunk)
    for (int64_t r = 0; r < cut.rows; ++r) {
      int64_t image = chunk * cut.images, rows = full.window.out[0];
      ConvShape s = part;
      s.batch = std::min(cut.images, full.batch - image);
      int64_t begin = r * rows / cut.rows, from = 0;
      if (cut.rows > 1) s = row_block(s, begin, (r + 1) * rows / cut.rows, &from);
      size_t v = variant_for(s, weights);
      for (int64_t q = 0; q < cut.parts; ++q) tasks.push_back({v, chunk, q, image, from, begin});
    }
}

bool ConvPlan::Impl::by_reference() const {
  return std::any_of(variants.begin(), variants.end(),
                     [](const Variant& v) { return v.by_reference(); });
}

// All chunks take the weights in one format. Where that of the first leaves others with oneDNN's
// reference, hundreds of times slower, another's is taken, or chunks of one shape.
void ConvPlan::Impl::make_variants() {
  make_tasks(nullptr);
  if (variants.size() == 1 || gradient_of_weights() || !by_reference()) return;
  const std::vector<Variant> first = variants;
  for (size_t k = 1; k < first.size(); ++k) {
    try {
      bool as_it_lies = last;
      const Variant own = make_variant(first[k].shape, pass, with_bias, &as_it_lies, nullptr);
      if (own.by_reference()) break;
      make_tasks(&own.weights);
      if (!by_reference()) return;
    } catch (const dnnl::error&) {  // this format does not suit all of them
    }
  }
  cut = {1, full.batch, cut.parts};
  part.batch = 1;
  make_tasks(nullptr);
}

void ConvPlan::Impl::prepare() {
  for (const Variant& v : variants) {
    memory::desc src = chunk_of(activations(v.shape.batch, part.in_channels, v.shape.window.in),
                                full.in_channels, last);
    memory::desc dst = chunk_of(activations(v.shape.batch, part.out_channels, v.shape.window.out),
                                full.out_channels, last);
    std::vector<SlotCalls> list;
    for (int k = 0; k < slots.count(); ++k) {
      SlotCalls c;
      bool src_out = pass == ConvPass::kInputGradient, dst_out = pass == ConvPass::kForward;
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
  if (!gradient_of_weights() && !same_weights && cut.parts == 1 && full.groups == 1)
    split_weights();
}

// The weights of an uncut convolution in pieces of whole blocks of output channels, for several
// threads.
void ConvPlan::Impl::split_weights() {
  Dims d = weight_dims(full), at(d.size(), 0), size = d;
  if (num_elements(d) < 65536) return;
  const memory::desc& to = variants[0].weights;
  int64_t block = 1;
  for (int k = 0; k < to.get_inner_nblks(); ++k)
    if (to.get_inner_idxs()[size_t(k)] == 0) block *= to.get_inner_blks()[size_t(k)];
  piece_channels = (d[0] / 8 + block) / block * block;
  try {
    for (; at[0] < d[0]; at[0] += piece_channels) {
      size[0] = std::min(piece_channels, d[0] - at[0]);
      pieces.push_back(make_reorder(plain(size), to.submemory_desc(size, at)));
    }
  } catch (const dnnl::error&) {
    pieces.clear();
  }
}

void ConvPlan::Impl::convert_weights(const float* w, char* to, ThreadPool* pool) {
  if (pool && !pieces.empty()) {
    int64_t size = piece_channels * full.in_channels * full.window.taps();
    pool->run(int64_t(pieces.size()), [&](int64_t k) {
      SingleThread single;
      pieces[size_t(k)].run({w + k * size, to});
    });
    return;
  }
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

void ConvPlan::Impl::task(const ConvArgs& a, const Task& t, const char* weights, char* slot_area) {
  SingleThread single;
  int64_t q = t.part;
  size_t v = t.variant;
  int slot = slots.take();
  SlotCalls& c = calls[v][size_t(slot)];
  char* area = slot_area + size_t(slot) * slot_bytes();
  char *src = area, *dst = src + src_bytes, *scratch = dst + dst_bytes,
       *dw = scratch + scratch_bytes;
  auto offset = [&](const std::vector<int64_t>& spatial, int64_t channels, int64_t channel,
                    int64_t row) {
    int64_t plane = num_elements(spatial);
    return t.image * channels * plane + channel * (last ? 1 : plane) +
           row * (plane / spatial[0]) * (last ? channels : 1);
  };
  int64_t src_at = offset(full.window.in, full.in_channels, src_channel(q), t.src_row);
  int64_t dst_at = offset(full.window.out, full.out_channels, dst_channel(q), t.dst_row);
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
  } else if (pass == ConvPass::kInputGradient) {
    const void* d = through(c.dst, a.dy + dst_at, dst);
    const void* w = same_weights && !fixed ? static_cast<const void*>(a.w + weight_offset(q))
                                           : weights + size_t(q) * weight_bytes;
    void* s = c.src ? static_cast<void*>(src) : a.out + src_at;
    c.main.run({s, w, d, scratch});
    if (c.src) c.src.run({src, a.out + src_at});
    if (a.bias) add_bias(a.bias + src_channel(q), variants[v].shape.batch, a.out + src_at);
  } else {
    const void* s = through(c.src, a.x + src_at, src);
    const void* d = through(c.dst, a.dy + dst_at, dst);
    char* base = cut.chunks > 1 ? const_cast<char*>(weights) + size_t(t.chunk) * partial_bytes
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
  impl->last = impl->fast_last = channels_last;
  impl->cut = choose_cut(shape, pass, channels_last);
  impl->part = shape;
  impl->part.batch = impl->cut.images;
  int64_t parts = impl->cut.parts;
  if (shape.groups > 1) {
    impl->part.groups /= parts;
    impl->part.in_channels /= parts;
    impl->part.out_channels /= parts;
  } else if (pass == ConvPass::kInputGradient) {
    impl->part.in_channels /= parts;
  } else {
    impl->part.out_channels /= parts;
  }
  try {
    impl->make_variants();
    if (impl->variants[0].by_reference()) return refuse("oneDNN has only its reference here");
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
  pool.run(int64_t(m.tasks.size()),
           [&](int64_t t) { m.task(args, m.tasks[size_t(t)], weights, slot_area); });
  if (m.gradient_of_weights() && m.cut.chunks > 1) m.add_partials(weights, args.out, pool);
}

std::string ConvPlan::describe() const {
  std::string names;
  for (const Variant& v : impl_->variants)
    if (names.find(v.name) == std::string::npos) names += cat(names.empty() ? "" : " and ", v.name);
  return cat(names, ", ", impl_->cut.chunks, " chunks of ", impl_->cut.images, " images, ",
             impl_->cut.parts, " parts, ", impl_->cut.rows, " blocks of rows");
}

}  // namespace onnxtrain::general
