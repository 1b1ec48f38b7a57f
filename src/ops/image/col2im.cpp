// Col2Im adds columns of blocks back into an image; Im2Col (own domain) is its gradient: the blocks
// of an image as columns.
#include "op/needs_shape.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/nn/conv_shape.hpp"
#include "ops/nn/window_shape.hpp"

namespace onnxtrain::ops {

namespace {

kernels::Window window(const Node& n, const Shape& image, const Shape& block) {
  if (image.empty() || image.size() != block.size() || image.size() > kernels::kMaxSpatial)
    model_error("OT1143", cat("image_shape ", to_string(image), " and block_shape ",
                              to_string(block), " do not fit"));
  num_elements(image);
  for (int64_t k : block)
    if (k < 1) model_error("OT1143", cat("block_shape is ", to_string(block)));
  num_elements(block);
  return window_of(n, image, block);
}

void col2im_shape(ShapeCtx& c) {
  const Shape& x = c.shape(0);
  Shape image = c.ints(1), block = c.ints(2);
  kernels::Window w = window(c.node(), image, block);
  if (x.size() != 3 || x[1] % w.taps() != 0 || x[2] != w.out_size())
    model_error("OT1143", cat("columns of shape ", to_string(x), " do not make an image of shape ",
                              to_string(image), " from blocks of ", to_string(block), " at ",
                              w.out_size(), " places"));
  c.set(0, c.dtype(0), with_channels(x[0], x[1] / w.taps(), image));
}

// Im2Col(image, block_shape)
void im2col_shape(ShapeCtx& c) {
  Shape image = spatial_of(c.shape(0), "Im2Col");
  kernels::Window w = window(c.node(), image, c.ints(1));
  c.set(0, c.dtype(0), {c.shape(0)[0], num_elements({c.shape(0)[1], w.taps()}), w.out_size()});
}

struct ToImage {
  template <class T>
  static Kernel make(Prepare& p) {
    const Shape& y = p.out(0).shape;
    kernels::Window w = window(p.node(), Shape(y.begin() + 2, y.end()), p.constant(2)->to_ints());
    int64_t planes = y[0] * y[1], xs = w.in_size(), places = w.out_size(), taps = w.taps(),
            step = w.strides.back();
    return [=](const Run& r) {
      const T* cols = r.in<T>(0);
      T* image = r.out<T>(0);
      r.pool->run(planes, [&](int64_t p) {
        T* to = image + p * xs;
        const T* from = cols + p * taps * places;
        std::fill_n(to, xs, T(0));
        w.for_runs([&](int64_t t, int64_t o, int64_t i, int64_t count) {
          for (int64_t j = 0; j < count; ++j) to[i + j * step] += from[t * places + o + j];
        });
      });
    };
  }
};

struct ToColumns {
  template <class T>
  static Kernel make(Prepare& p) {
    const Shape& x = p.in(0).shape;
    kernels::Window w = window(p.node(), Shape(x.begin() + 2, x.end()), p.constant(1)->to_ints());
    int64_t planes = x[0] * x[1], xs = w.in_size(), places = w.out_size(), taps = w.taps(),
            step = w.strides.back();
    return [=](const Run& r) {
      const T* image = r.in<T>(0);
      T* cols = r.out<T>(0);
      r.pool->run(planes, [&](int64_t p) {
        T* to = cols + p * taps * places;
        const T* from = image + p * xs;
        std::fill_n(to, taps * places, T(0));
        w.for_runs([&](int64_t t, int64_t o, int64_t i, int64_t count) {
          for (int64_t j = 0; j < count; ++j) to[t * places + o + j] = from[i + j * step];
        });
      });
    };
  }
};

std::vector<ValueId> col2im_grad(GradBuilder& b) {
  return {b.own("Im2Col", {b.dy(), b.x(2)}, window_attrs(b.node())), kNone, kNone};
}

ValueId image_shape(GradBuilder& b, ValueId image) {
  if (b.shape_known(image)) {
    Shape s = b.shape(image);
    return b.constant_ints(Shape(s.begin() + 2, s.end()));
  }
  return b.call("Slice",
                {b.call("Shape", {image}), b.constant_ints({2}), b.constant_ints({INT64_MAX})});
}

std::vector<ValueId> im2col_grad(GradBuilder& b) {
  return {b.call("Col2Im", {b.dy(), image_shape(b, b.x(0)), b.x(1)}, window_attrs(b.node())),
          kNone};
}

// Every element of a column is one element of the padded image: picked by constant indices.
std::vector<ValueId> im2col_lower(GradBuilder& b) {
  const Tensor* block = b.constant(b.x(1));
  if (!block || !b.shape_known(b.x(0)))
    needs_shape("OT1206", "the gradient of Col2Im in standard operators needs known shapes");
  Shape x = b.shape(b.x(0));
  kernels::Window w = window(b.node(), Shape(x.begin() + 2, x.end()), block->to_ints());
  int64_t n = w.in_size();
  // one element behind the image is zero: the padding
  std::vector<int64_t> at(size_t(num_elements({w.taps(), w.out_size()})), n);
  w.for_runs([&](int64_t t, int64_t o, int64_t i, int64_t count) {
    for (int64_t j = 0; j < count; ++j)
      at[size_t(t * w.out_size() + o + j)] = i + j * w.strides.back();
  });
  ValueId flat = b.call("Reshape", {b.x(0), b.constant_ints({x[0], x[1], n})});
  flat = b.call("Pad", {flat, b.constant_ints({0, 0, 0, 0, 0, 1})});
  ValueId picked = b.call("Gather", {flat, b.constant_ints(at)}, {{"axis", int64_t(2)}});
  return {b.call("Reshape", {picked, b.constant_ints({x[0], x[1] * w.taps(), w.out_size()})})};
}

}  // namespace

void register_col2im(OpTable& t) {
  t.add({.name = "Col2Im",
         .shape = col2im_shape,
         .shape_values = {1, 2},
         .impls = {{"ref", nullptr, float_or_double<ToImage>}},
         .grad = col2im_grad});
  t.add({.name = "Im2Col",
         .domain = std::string(kOwnDomain),
         .shape = im2col_shape,
         .shape_values = {1},
         .impls = {{"ref", nullptr, float_or_double<ToColumns>}},
         .grad = im2col_grad,
         .lower = im2col_lower});
}

}  // namespace onnxtrain::ops
