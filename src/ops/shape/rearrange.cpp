// Fixed rearrangements: DepthToSpace, SpaceToDepth, ReverseSequence, CenterCropPad.
#include <algorithm>

#include "op/grad_builder.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

// ---------------------------------------------------------------- DepthToSpace, SpaceToDepth
struct Blocks {
  int64_t size;
  bool crd;
};

Blocks blocks_of(const Node& n) {
  Blocks b{n.i("blocksize", 0), false};
  if (b.size < 1 || b.size > (int64_t(1) << 31))
    model_error("OT1130", cat("blocksize of ", n.op, " is ", b.size));
  std::string mode = n.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    model_error("OT1130", cat("mode of ", n.op, " is '", mode, "'"));
  b.crd = mode == "CRD";
  return b;
}

void block_shape(ShapeCtx& c) {
  Blocks b = blocks_of(c.node());
  const Shape& s = c.shape(0);
  bool to_space = c.node().op == "DepthToSpace";
  bool fits = s.size() == 4;
  if (fits)
    fits = to_space ? s[1] % (b.size * b.size) == 0 : s[2] % b.size == 0 && s[3] % b.size == 0;
  if (!fits)
    model_error("OT1130", cat(c.node().op, " of shape ", to_string(s), " by blocks of ", b.size));
  if (to_space) {
    c.set(0, c.dtype(0), {s[0], s[1] / (b.size * b.size), s[2] * b.size, s[3] * b.size});
  } else {
    c.set(0, c.dtype(0), {s[0], s[1] * b.size * b.size, s[2] / b.size, s[3] / b.size});
  }
}

// Six dimensions of the input and the order in which the output has them.
void block_view(const Node& n, const Shape& s, Shape& dims, std::vector<int64_t>& perm) {
  Blocks b = blocks_of(n);
  int64_t k = b.size;
  if (n.op == "DepthToSpace") {
    int64_t c = s[1] / (k * k);
    dims = b.crd ? Shape{s[0], c, k, k, s[2], s[3]} : Shape{s[0], k, k, c, s[2], s[3]};
    perm = b.crd ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2};
  } else {
    dims = {s[0], s[1], s[2] / k, k, s[3] / k, k};
    perm = b.crd ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4};
  }
}

Kernel make_block(Prepare& p) {
  Shape dims, out, src;
  std::vector<int64_t> perm;
  block_view(p.node(), p.in(0).shape, dims, perm);
  Shape strides = strides_of(dims);
  for (int64_t d : perm) {
    out.push_back(dims[size_t(d)]);
    src.push_back(strides[size_t(d)]);
  }
  StridedCopy copy(p.in(0).dtype, out, src, strides_of(out));
  return [copy](const Run& r) { copy.run(*r.pool, r.inputs[0], r.outputs[0]); };
}

std::vector<ValueId> block_grad(GradBuilder& b) {
  Blocks k = blocks_of(b.node());
  bool to_space = b.node().op == "DepthToSpace";
  GradBuilder::Attrs a{{"blocksize", k.size}};
  if (!to_space) {  // the mode of DepthToSpace says which of the two orders
    if (k.crd) a["mode"] = std::string("CRD");
    return {b.call("DepthToSpace", {b.dy()}, a)};
  }
  if (!k.crd) return {b.call("SpaceToDepth", {b.dy()}, a)};
  // SpaceToDepth has no such mode before opset 28: [n,c,h,k,w,k] -> [n,c,k,k,h,w]
  ValueId shape = b.shape_of(b.x(0));
  ValueId size = b.constant_ints({k.size});
  auto part = [&](int64_t d) { return b.call("Gather", {shape, b.constant_ints({d})}); };
  ValueId depth = b.div(part(1), b.constant_ints({k.size * k.size}));
  ValueId six =
      b.call("Concat", {part(0), depth, part(2), size, part(3), size}, {{"axis", int64_t(0)}});
  ValueId t = b.transpose(b.call("Reshape", {b.dy(), six}, {{"allowzero", int64_t(1)}}),
                          {0, 1, 3, 5, 2, 4});
  return {b.call("Reshape", {t, shape}, {{"allowzero", int64_t(1)}})};
}

// ---------------------------------------------------------------- ReverseSequence
void reverse_axes(const Node& n, int64_t rank, int64_t& batch, int64_t& time) {
  batch = normalize_axis(n.i("batch_axis", 1), rank, "batch_axis of ReverseSequence");
  time = normalize_axis(n.i("time_axis", 0), rank, "time_axis of ReverseSequence");
  if (batch > 1 || time > 1 || batch == time)
    model_error("OT1130",
                "batch_axis and time_axis of ReverseSequence must be 0 and 1 in some order");
}

void reverse_shape(ShapeCtx& c) {
  int64_t batch, time;
  if (c.rank(0) < 2) model_error("OT1130", cat("ReverseSequence of a tensor of rank ", c.rank(0)));
  reverse_axes(c.node(), c.rank(0), batch, time);
  if (c.shape(1) != Shape{c.shape(0)[size_t(batch)]} || c.dtype(1) != DType::kInt64)
    model_error("OT1130", cat("sequence_lens of ReverseSequence has shape ", to_string(c.shape(1)),
                              " for ", to_string(c.shape(0))));
  c.set(0, c.dtype(0), c.shape(0));
}

Kernel make_reverse(Prepare& p) {
  const Shape& s = p.in(0).shape;
  int64_t batch, time;
  reverse_axes(p.node(), int64_t(s.size()), batch, time);
  int64_t nb = s[size_t(batch)], nt = s[size_t(time)], block = product(s, 2, s.size());
  int64_t sb = batch == 0 ? nt : 1, st = time == 0 ? nb : 1;  // in blocks
  return dispatch_size(p.in(0).dtype, [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      const int64_t* len = r.in<int64_t>(1);
      for (int64_t b = 0; b < nb; ++b)
        if (len[b] < 0 || len[b] > nt)
          data_error("OT2110", cat("ReverseSequence: length ", len[b], " of sequence ", b,
                                   " is not between 0 and ", nt));
      const T* x = r.in<T>(0);
      T* y = r.out<T>(0);
      parallel_for(*r.pool, nb * nt, std::max<int64_t>(1, 16 * 1024 / std::max<int64_t>(1, block)),
                   [&](int64_t k, int64_t e) {
                     for (; k < e; ++k) {
                       int64_t b = k / nt, t = k % nt, from = t < len[b] ? len[b] - 1 - t : t;
                       std::copy_n(x + (b * sb + from * st) * block, block,
                                   y + (b * sb + t * st) * block);
                     }
                   });
    };
  });
}

std::vector<ValueId> reverse_grad(GradBuilder& b) {
  return {b.call("ReverseSequence", {b.dy(), b.x(1)},
                 {{"batch_axis", b.node().i("batch_axis", 1)},
                  {"time_axis", b.node().i("time_axis", 0)}}),
          kNone};
}

// ---------------------------------------------------------------- CenterCropPad
// Copies the common centre of two tensors; the rest of the output is zero.
Kernel centre_copy(const TensorType& in, const TensorType& out) {
  const Shape &from = in.shape, &to = out.shape;
  Shape common, src = strides_of(from), dst = strides_of(to);
  int64_t at_src = 0, at_dst = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    common.push_back(std::min(from[d], to[d]));
    // an odd difference leaves the additional element at the end, when cropping and when padding
    if (from[d] > to[d])
      at_src += (from[d] - to[d]) / 2 * src[d];
    else
      at_dst += (to[d] - from[d]) / 2 * dst[d];
  }
  StridedCopy copy(in.dtype, common, src, dst, at_src, at_dst);
  int64_t n = out.size();
  bool whole = common == to;
  return dispatch_size(in.dtype, [&]<class T>() -> Kernel {
    return [copy, n, whole](const Run& r) {
      if (!whole) std::fill_n(r.out<T>(0), n, T{});
      copy.run(*r.pool, r.inputs[0], r.outputs[0]);
    };
  });
}

void crop_shape(ShapeCtx& c) {
  std::vector<int64_t> target = c.ints(1), axes = c.node().ints("axes");
  Shape s = c.shape(0);
  if (!c.node().has("axes"))
    for (size_t d = 0; d < s.size(); ++d) axes.push_back(int64_t(d));
  if (axes.size() != target.size())
    model_error("OT1130",
                cat("CenterCropPad has ", target.size(), " sizes for ", axes.size(), " axes"));
  for (size_t k = 0; k < axes.size(); ++k) {
    if (target[k] < 0) model_error("OT1130", cat("CenterCropPad to the size ", target[k]));
    s[size_t(normalize_axis(axes[k], c.rank(0), "axes of CenterCropPad"))] = target[k];
  }
  c.set(0, c.dtype(0), s);
}

Kernel make_crop(Prepare& p) { return centre_copy(p.in(0), p.out(0)); }

// Halves of the differences are rounded down both ways, so padding undoes cropping and back.
std::vector<ValueId> crop_grad(GradBuilder& b) {
  return {b.call("CenterCropPad", {b.dy(), b.shape_of(b.x(0))}), kNone};
}

}  // namespace

void register_rearrange(OpTable& t) {
  for (const char* name : {"DepthToSpace", "SpaceToDepth"})
    t.add({.name = name,
           .shape = block_shape,
           .impls = {{"ref", nullptr, make_block}},
           .grad = block_grad});
  t.add({.name = "ReverseSequence",
         .shape = reverse_shape,
         .impls = {{"ref", nullptr, make_reverse}},
         .grad = reverse_grad});
  t.add({.name = "CenterCropPad",
         .shape = crop_shape,
         .shape_values = {1},
         .impls = {{"ref", nullptr, make_crop}},
         .grad = crop_grad});
}

}  // namespace onnxtrain::ops
