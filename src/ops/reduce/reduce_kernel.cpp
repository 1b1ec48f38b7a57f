// Axes, shapes and merged loops of the Reduce* operators.
#include "ops/reduce/reduce_kernel.hpp"

#include "op/needs_shape.hpp"

namespace onnxtrain::ops {

int reduce_axes_input_since(const std::string& op) { return op == "ReduceSum" ? 13 : 18; }

namespace {

bool axes_are_input(const Node& n) { return n.version >= reduce_axes_input_since(n.op); }

}  // namespace

std::vector<int64_t> reduce_axes(const Node& n, int64_t rank, bool given,
                                 const std::vector<int64_t>& axes) {
  std::vector<char> reduce(size_t(rank), 0);
  if (!given || axes.empty()) {
    bool noop = axes_are_input(n) && n.i("noop_with_empty_axes", 0) != 0;
    if (!noop) reduce.assign(size_t(rank), 1);
  }
  for (int64_t a : axes) {
    // a scalar has the axes -1 and 0 for numpy's sake in old exporters; ONNX allows none
    a = normalize_axis(a, rank, "axes of a reduction");
    if (reduce[size_t(a)]) model_error("OT1130", cat("axis ", a, " of ", n.op, " is named twice"));
    reduce[size_t(a)] = 1;
  }
  std::vector<int64_t> out;
  for (int64_t d = 0; d < rank; ++d)
    if (reduce[size_t(d)]) out.push_back(d);
  return out;
}

void reduce_shape(ShapeCtx& c) {
  std::vector<int64_t> axes;
  bool given;
  if (axes_are_input(c.node())) {
    given = c.has(1);
    if (given) axes = c.ints(1);
  } else {
    given = c.node().has("axes");
    axes = c.node().ints("axes");
  }
  axes = reduce_axes(c.node(), c.rank(0), given, axes);
  bool keep = c.node().i("keepdims", 1) != 0;
  Shape out;
  size_t next = 0;
  for (size_t d = 0; d < c.shape(0).size(); ++d) {
    bool reduced = next < axes.size() && axes[next] == int64_t(d);
    next += reduced;
    if (!reduced)
      out.push_back(c.shape(0)[d]);
    else if (keep)
      out.push_back(1);
  }
  c.set(0, c.dtype(0), out);
}

Op reduction(const char* name, std::vector<Impl> impls, GradFn grad) {
  return {.name = name,
          .shape = reduce_shape,
          .shape_values = {1},
          .impls = std::move(impls),
          .grad = grad,
          .reduces = true};
}

ReduceLoop::ReduceLoop(const Shape& in, const std::vector<int64_t>& axes) {
  struct Dim {
    int64_t n, stride;
    bool reduced;
  };
  std::vector<Dim> dims;
  Shape strides = strides_of(in);
  size_t next = 0;
  for (size_t d = 0; d < in.size(); ++d) {
    bool is = next < axes.size() && axes[next] == int64_t(d);
    next += is;
    if (is) reduced *= in[d];
    if (in[d] == 1) continue;
    if (!dims.empty() && dims.back().reduced == is) {
      dims.back().n *= in[d];
      dims.back().stride = strides[d];
    } else {
      dims.push_back({in[d], strides[d], is});
    }
  }
  if (!dims.empty()) {
    inner_reduced = dims.back().reduced;
    run = dims.back().n;
    dims.pop_back();
  }
  for (const Dim& d : dims) {
    (d.reduced ? red : kept).push_back(d.n);
    (d.reduced ? red_strides : kept_strides).push_back(d.stride);
    (d.reduced ? red_count : kept_count) *= d.n;
  }
  // few results, much to add: cut so that several threads have work
  int64_t length = inner_reduced && red_count == 1 ? run : red_count;
  int64_t each = inner_reduced && red_count == 1 ? 1 : run;
  part = std::max<int64_t>(1, length);
  if (kept_count * (inner_reduced ? 1 : (run + kReduceColumns - 1) / kReduceColumns) < 8) {
    part = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, each));
    if (part > length) part = std::max<int64_t>(1, length);
    parts = length == 0 ? 1 : (length + part - 1) / part;
  }
}

ReduceLoop reduce_loop(const Prepare& p) {
  // the axes are seen in the shapes only when they are kept as 1; otherwise from the node
  const Node& n = p.node();
  std::vector<int64_t> axes;
  bool given;
  if (axes_are_input(n)) {
    given = p.has(1);
    if (given) axes = p.constant(1)->to_ints();
  } else {
    given = n.has("axes");
    axes = n.ints("axes");
  }
  const Shape& in = p.in(0).shape;
  return ReduceLoop(in, reduce_axes(n, int64_t(in.size()), given, axes));
}

namespace {

// Bytes of n accumulators.
struct Accumulators {
  alignas(kReduceAccumulator) unsigned char bytes[kReduceColumns * kReduceAccumulator];
};

Kernel reduce_to_runs(Prepare& p, const ReduceLoop& l, const ReduceFunctions& f) {
  p.workspace = l.parts > 1 ? size_t(l.parts * l.kept_count) * f.accumulator : 0;
  return [l, f](const Run& r) {
    const void* x = r.inputs[0];
    void* y = r.outputs[0];
    char* partial = static_cast<char*>(r.workspace);
    auto one = [&](int64_t o, int64_t part, void* a) {
      const int64_t at = l.offset(o, l.kept, l.kept_strides), b = part * l.part;
      if (l.red_count == 1)
        f.runs(l, x, at, 0, 1, b, std::min(b + l.part, l.run), a);
      else
        f.runs(l, x, at, b, std::min(b + l.part, l.red_count), 0, l.run, a);
    };
    int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, l.reduced / l.parts));
    parallel_for(*r.pool, l.kept_count * l.parts, grain, [&](int64_t b, int64_t e) {
      Accumulators a;
      for (int64_t i = b; i < e; ++i) {
        if (l.parts > 1) {
          one(i / l.parts, i % l.parts, partial + size_t(i) * f.accumulator);
          continue;
        }
        one(i, 0, a.bytes);
        f.finish(a.bytes, y, i, 1, l.reduced);
      }
    });
    if (l.parts == 1) return;
    for (int64_t o = 0; o < l.kept_count; ++o) {
      char* a = partial + size_t(o * l.parts) * f.accumulator;
      for (int64_t k = 1; k < l.parts; ++k) f.merge(a, a + size_t(k) * f.accumulator, 1);
      f.finish(a, y, o, 1, l.reduced);
    }
  };
}

Kernel reduce_to_columns(Prepare& p, const ReduceLoop& l, const ReduceFunctions& f) {
  const int64_t total = l.kept_count * l.run;
  p.workspace = l.parts > 1 ? size_t(l.parts * total) * f.accumulator : 0;
  const int64_t blocks = (l.run + kReduceColumns - 1) / kReduceColumns;
  return [l, f, blocks, total](const Run& r) {
    const void* x = r.inputs[0];
    void* y = r.outputs[0];
    char* partial = static_cast<char*>(r.workspace);
    int64_t work = std::min(l.run, kReduceColumns) * std::max<int64_t>(1, l.red_count / l.parts);
    int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work));
    parallel_for(*r.pool, l.kept_count * blocks * l.parts, grain, [&](int64_t b, int64_t e) {
      Accumulators a;
      for (int64_t i = b; i < e; ++i) {
        const int64_t part = i % l.parts, block = i / l.parts % blocks, o = i / l.parts / blocks;
        const int64_t c0 = block * kReduceColumns, n = std::min(kReduceColumns, l.run - c0);
        const int64_t from = l.offset(o, l.kept, l.kept_strides) + c0, to = o * l.run + c0;
        void* sums = l.parts == 1 ? static_cast<void*>(a.bytes)
                                  : partial + size_t(part * total + to) * f.accumulator;
        f.columns(l, x, from, n, part * l.part, std::min((part + 1) * l.part, l.red_count), sums);
        if (l.parts == 1) f.finish(sums, y, to, n, l.reduced);
      }
    });
    if (l.parts == 1) return;
    for (int64_t k = 1; k < l.parts; ++k)
      f.merge(partial, partial + size_t(k * total) * f.accumulator, total);
    f.finish(partial, y, 0, total, l.reduced);
  };
}

}  // namespace

Kernel reduce_kernel(Prepare& p, const ReduceFunctions& f) {
  const ReduceLoop l = reduce_loop(p);
  const int64_t n = p.out(0).size();
  if (n == 0) return [](const Run&) {};
  if (l.reduced == 0) return [n, f](const Run& r) { f.finish(nullptr, r.outputs[0], 0, n, 0); };
  return l.inner_reduced ? reduce_to_runs(p, l, f) : reduce_to_columns(p, l, f);
}

std::string refuses_simd_reduce(const Prepare& p) {
  if (p.in(0).dtype != DType::kFloat) return "only for float";
  ReduceLoop l = reduce_loop(p);
  if (p.out(0).size() == 0 || l.reduced == 0) return "empty";
  if (l.inner_reduced)
    return l.red.size() > 1 || l.kept.size() > 1 ? "more than two stretches of axes" : "";
  if (l.red.empty()) return "nothing to reduce";
  return l.red.size() > 1 || l.kept.size() > 1 ? "more than one stretch of axes" : "";
}

Kernel make_simd_reduce(Prepare& p, simd::Reduce op, float (*last)(float)) {
  ReduceLoop l = reduce_loop(p);
  int64_t n = p.out(0).size();
  auto finish = [last, n](float* y) {
    for (int64_t i = 0; i < n && last; ++i) y[i] = last(y[i]);
  };
  if (!l.inner_reduced) {  // [kept][reduced][run]
    p.workspace = simd::reduce_middle_workspace(l.kept_count, l.red_count, l.run);
    return [=](const Run& r) {
      simd::reduce_middle(*r.pool, op, r.in<float>(0), l.kept_count, l.red_count, l.run,
                          r.out<float>(0), r.workspace);
      finish(r.out<float>(0));
    };
  }
  // [reduced][kept][run]: runs first, then the outer stretch
  int64_t rows = l.red_count * l.kept_count;
  size_t first = simd::reduce_middle_workspace(rows, l.run, 1);
  if (l.red.empty()) {
    p.workspace = first;
    return [=](const Run& r) {
      simd::reduce_middle(*r.pool, op, r.in<float>(0), rows, l.run, 1, r.out<float>(0),
                          r.workspace);
      finish(r.out<float>(0));
    };
  }
  size_t part = (size_t(rows) * 4 + 63) / 64 * 64;
  p.workspace = part + std::max(first, simd::reduce_middle_workspace(1, l.red_count, l.kept_count));
  bool sums = op == simd::Reduce::kSumSquare || op == simd::Reduce::kSumAbs;
  simd::Reduce then = sums ? simd::Reduce::kSum : op;
  return [=](const Run& r) {
    float* rows_out = static_cast<float*>(r.workspace);
    void* rest = static_cast<char*>(r.workspace) + part;
    simd::reduce_middle(*r.pool, op, r.in<float>(0), rows, l.run, 1, rows_out, rest);
    simd::reduce_middle(*r.pool, then, rows_out, 1, l.red_count, l.kept_count, r.out<float>(0),
                        rest);
    finish(r.out<float>(0));
  };
}

ValueId unreduce(GradBuilder& b, ValueId v) {
  const Node& n = b.node();
  if (n.i("keepdims", 1) != 0) return v;
  if (axes_are_input(n)) {
    if (!b.has(1)) return v;
    const Tensor* c = b.constant(b.x(1));
    if (c) return c->size() == 0 ? v : b.unsqueeze(v, c->to_ints());
    return b.call("Unsqueeze", {v, b.x(1)});
  }
  std::vector<int64_t> axes = n.ints("axes");
  return axes.empty() ? v : b.unsqueeze(v, axes);
}

ValueId reduce_again(GradBuilder& b, std::string_view op, ValueId v) {
  const Node& n = b.node();
  int since = reduce_axes_input_since(std::string(op));
  GradBuilder::Attrs attrs{{"keepdims", int64_t(1)}};
  if (axes_are_input(n)) {
    attrs["noop_with_empty_axes"] = n.i("noop_with_empty_axes", 0);
    if (b.has(1) && b.opset() < since) {  // only possible with constant axes
      const Tensor* c = b.constant(b.x(1));
      if (!c)
        needs_shape("OT1206", "the gradient of a reduction over computed axes needs opset 18");
      if (c->size()) attrs["axes"] = c->to_ints();
      attrs.erase("noop_with_empty_axes");
      return b.call(op, {v}, attrs);
    }
    return b.has(1) ? b.call(op, {v, b.x(1)}, attrs) : b.call(op, {v}, attrs);
  }
  std::vector<int64_t> axes = n.ints("axes");
  if (axes.empty()) return b.call(op, {v}, attrs);
  if (b.opset() >= since) return b.call(op, {v, b.constant_ints(axes)}, attrs);
  attrs["axes"] = axes;
  return b.call(op, {v}, attrs);
}

std::vector<ValueId> reduce_result(GradBuilder& b, ValueId dx) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  g[0] = dx;
  return g;
}

}  // namespace onnxtrain::ops
