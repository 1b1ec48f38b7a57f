// Preparing and running element-wise programs.
#include "ops/common/elementwise_program.hpp"

#include <cstring>

#include "ops/common/elementwise_kernel.hpp"

namespace onnxtrain::ops {

namespace {

using simd::MicroOp;
constexpr int64_t kTile = 1024;
constexpr int64_t kShortRow = 256;  // shorter rows are put together in one tile
constexpr size_t kMaxTiles = kMaxMicroInputs + kMaxMicroSteps;

// The form of `op` with a constant second (or first) operand; kCount: there is none.
MicroOp with_constant(MicroOp op, bool first) {
  switch (op) {
    case MicroOp::kAdd:
      return MicroOp::kAddScalar;
    case MicroOp::kSub:
      return first ? MicroOp::kScalarSub : MicroOp::kSubScalar;
    case MicroOp::kMul:
      return MicroOp::kMulScalar;
    case MicroOp::kDiv:
      return first ? MicroOp::kScalarDiv : MicroOp::kDivScalar;
    case MicroOp::kMin:
      return MicroOp::kMinScalar;
    case MicroOp::kMax:
      return MicroOp::kMaxScalar;
    case MicroOp::kPow:
      return first ? MicroOp::kCount : MicroOp::kPowScalar;
    case MicroOp::kEqual:
      return MicroOp::kEqualScalar;
    case MicroOp::kLess:
      return first ? MicroOp::kGreaterScalar : MicroOp::kLessScalar;
    case MicroOp::kLessEqual:
      return first ? MicroOp::kGreaterEqualScalar : MicroOp::kLessEqualScalar;
    case MicroOp::kGreater:
      return first ? MicroOp::kLessScalar : MicroOp::kGreaterScalar;
    case MicroOp::kGreaterEqual:
      return first ? MicroOp::kLessEqualScalar : MicroOp::kGreaterEqualScalar;
    default:
      return MicroOp::kCount;
  }
}

// How an input reaches the steps.
enum class Reach : uint8_t { kUnused, kDirect, kScalar, kTile };

struct Source {
  Reach reach = Reach::kUnused;
  bool mask = false;
  bool full = false;  // as many elements as the output, in the same order
  int tile = -1;
};

struct Prepared {
  simd::TileFn fn;
  int arity;
  std::array<int, 3> in;  // < inputs: a source; otherwise inputs + tile
  std::array<float, 2> params;
  int tile = -1;  // where the result goes; -1: the output itself
};

class Program {
 public:
  Program(Prepare& p, std::vector<MicroStep> steps);
  void run(const Run& r) const;

 private:
  struct Task {
    explicit Task(const Run& run) : r(run) {}  // tiles stay uninitialised
    const Run& r;
    const float* at[kMaxMicroInputs];
    alignas(64) float tiles[kMaxTiles][kTile];
  };
  void use_constants(const Prepare& p, std::vector<MicroStep>& steps);
  void assign_tiles(const std::vector<MicroStep>& steps);
  void start(Task& t) const;
  void execute(Task& t, int64_t out_at, int64_t n) const;
  void row_segment(Task& t, int64_t o, const int64_t* at, int64_t col, int64_t n) const;
  void run_long_rows(const Run& r) const;
  void run_short_rows(const Run& r) const;
  void load(Task& t, size_t k, int64_t from, int64_t step, int64_t to, int64_t n) const;

  BroadcastLoop loop_;
  std::vector<Source> sources_;
  std::vector<Prepared> steps_;
  int tiles_ = 0;
  bool mask_out_;
};

std::vector<Shape> operand_shapes(const Prepare& p) {
  std::vector<Shape> s;
  for (int k = 0; k < p.inputs(); ++k)
    s.push_back(k == 1 ? second_shape(p.node(), p.in(0).shape, p.in(1).shape) : p.in(k).shape);
  return s;
}

Program::Program(Prepare& p, std::vector<MicroStep> steps)
    : loop_(operand_shapes(p), p.out(0).shape), mask_out_(p.out(0).dtype == DType::kBool) {
  OT_ASSERT(size_t(p.inputs()) <= kMaxMicroInputs && steps.size() <= kMaxMicroSteps &&
            !steps.empty());
  use_constants(p, steps);
  sources_.resize(size_t(p.inputs()));
  bool short_rows = loop_.rows > 1 && loop_.inner < kShortRow;
  for (const MicroStep& s : steps)
    for (int k = 0; k < simd::micro_op_info(s.op).inputs; ++k) {
      if (s.in[size_t(k)] >= p.inputs()) continue;
      Source& src = sources_[size_t(s.in[size_t(k)])];
      const TensorType& t = p.in(s.in[size_t(k)]);
      src.mask = t.dtype == DType::kBool;
      src.full = t.size() == p.out(0).size();
      bool straight = src.full || (!short_rows && loop_.step[size_t(s.in[size_t(k)])] == 1);
      if (t.size() == 1 && !src.full)
        src.reach = Reach::kScalar;
      else if (straight && !src.mask)
        src.reach = Reach::kDirect;
      else
        src.reach = Reach::kTile;
    }
  for (Source& s : sources_)
    if (s.reach == Reach::kScalar || s.reach == Reach::kTile) s.tile = tiles_++;
  assign_tiles(steps);
}

void Program::use_constants(const Prepare& p, std::vector<MicroStep>& steps) {
  auto constant = [&](int k) {
    return k < p.inputs() && p.constant(k) && p.in(k).dtype == DType::kFloat && p.in(k).size() == 1;
  };
  for (MicroStep& s : steps) {
    if (simd::micro_op_info(s.op).inputs != 2) continue;
    for (int side : {1, 0}) {
      if (!constant(s.in[size_t(side)]) || constant(s.in[size_t(1 - side)])) continue;
      MicroOp with = with_constant(s.op, side == 0);
      if (with == MicroOp::kCount) continue;
      s.params[0] = *p.constant(s.in[size_t(side)])->as<float>();
      s.in[0] = s.in[size_t(1 - side)];
      s.op = with;
      break;
    }
  }
}

// Results live in tiles that are free again after their last reader.
void Program::assign_tiles(const std::vector<MicroStep>& steps) {
  int inputs = int(sources_.size());
  std::vector<int> last(steps.size(), -1), where(steps.size(), -1), free;
  for (size_t s = 0; s < steps.size(); ++s)
    for (int k = 0; k < simd::micro_op_info(steps[s].op).inputs; ++k)
      if (int v = steps[s].in[size_t(k)] - inputs; v >= 0) last[size_t(v)] = int(s);
  for (size_t s = 0; s < steps.size(); ++s) {
    Prepared q;
    q.fn = simd::micro_op(steps[s].op);
    q.arity = simd::micro_op_info(steps[s].op).inputs;
    q.params = steps[s].params;
    for (int k = 0; k < q.arity; ++k) {
      int v = steps[s].in[size_t(k)];
      q.in[size_t(k)] = v < inputs ? v : inputs + where[size_t(v - inputs)];
    }
    // a step may write over one of its own operands
    for (size_t v = 0; v < s; ++v)
      if (last[v] == int(s)) free.push_back(where[v]);
    bool final = s + 1 == steps.size();
    if (!final || mask_out_) {
      if (free.empty()) {
        q.tile = tiles_++;
      } else {
        q.tile = free.back();
        free.pop_back();
      }
      where[s] = q.tile;
    }
    steps_.push_back(q);
  }
}

// Copies (or repeats, step 0) n elements of input k into its tile from position `to` on.
void Program::load(Task& t, size_t k, int64_t from, int64_t step, int64_t to, int64_t n) const {
  const Source& s = sources_[k];
  float* tile = t.tiles[s.tile] + to;
  if (s.mask) {
    const uint8_t* x = t.r.in<uint8_t>(int(k)) + from;
    if (step == 0)
      std::fill_n(tile, n, *x ? 1.0f : 0.0f);
    else
      simd::mask_from_bytes(x, tile, n);
  } else {
    const float* x = t.r.in<float>(int(k)) + from;
    if (step == 0)
      std::fill_n(tile, n, *x);
    else
      std::memcpy(tile, x, size_t(n) * sizeof(float));
  }
}

void Program::start(Task& t) const {
  for (size_t k = 0; k < sources_.size(); ++k) {
    if (sources_[k].tile >= 0) t.at[k] = t.tiles[sources_[k].tile];
    if (sources_[k].reach == Reach::kScalar) load(t, k, 0, 0, 0, kTile);
  }
}

void Program::execute(Task& t, int64_t out_at, int64_t n) const {
  const int inputs = int(sources_.size());
  for (const Prepared& s : steps_) {
    const float* in[3];
    for (int k = 0; k < s.arity; ++k) {
      int v = s.in[size_t(k)];
      in[k] = v < inputs ? t.at[v] : t.tiles[v - inputs];
    }
    float* out = s.tile >= 0 ? t.tiles[s.tile] : t.r.out<float>(0) + out_at;
    s.fn(in, out, n, s.params.data());
  }
  if (mask_out_)
    simd::bytes_from_mask(t.tiles[steps_.back().tile], t.r.out<uint8_t>(0) + out_at, n);
}

void Program::row_segment(Task& t, int64_t o, const int64_t* at, int64_t col, int64_t n) const {
  for (size_t k = 0; k < sources_.size(); ++k) {
    const Source& s = sources_[k];
    int64_t step = loop_.step[k];
    if (s.reach == Reach::kDirect) t.at[k] = t.r.in<float>(int(k)) + at[k] + col * step;
    // a repeated element is written once per row, for its longest segment
    else if (s.reach == Reach::kTile && step != 0)
      load(t, k, at[k] + col, 1, 0, n);
    else if (s.reach == Reach::kTile && col == 0)
      load(t, k, at[k], 0, 0, std::min(kTile, loop_.inner));
  }
  execute(t, o + col, n);
}

void Program::run_long_rows(const Run& r) const {
  if (loop_.rows == 1) {
    parallel_for(*r.pool, loop_.inner, kGrain, [&](int64_t b, int64_t e) {
      Task t(r);
      start(t);
      const int64_t zero[kMaxMicroInputs] = {};
      for (int64_t col = b; col < e; col += kTile)
        row_segment(t, 0, zero, col, std::min(kTile, e - col));
    });
    return;
  }
  parallel_for(*r.pool, loop_.rows, loop_.grain_rows(), [&](int64_t b, int64_t e) {
    Task t(r);
    start(t);
    loop_.run(b, e, [&](int64_t o, const int64_t* at) {
      for (int64_t col = 0; col < loop_.inner; col += kTile)
        row_segment(t, o, at, col, std::min(kTile, loop_.inner - col));
    });
  });
}

void Program::run_short_rows(const Run& r) const {
  const int64_t inner = loop_.inner, together = kTile / inner;
  int64_t grain = std::max<int64_t>(together, loop_.grain_rows() / together * together);
  parallel_for(*r.pool, loop_.rows, grain, [&](int64_t b, int64_t e) {
    Task t(r);
    start(t);
    int64_t filled = 0, first = b * inner;
    auto flush = [&] {
      for (size_t k = 0; k < sources_.size(); ++k)
        if (sources_[k].reach == Reach::kDirect) t.at[k] = r.in<float>(int(k)) + first;
      execute(t, first, filled * inner);
      first += filled * inner;
      filled = 0;
    };
    loop_.run(b, e, [&](int64_t, const int64_t* at) {
      for (size_t k = 0; k < sources_.size(); ++k)
        if (sources_[k].reach == Reach::kTile)
          load(t, k, at[k], loop_.step[k], filled * inner, inner);
      if (++filled == together) flush();
    });
    if (filled) flush();
  });
}

void Program::run(const Run& r) const {
  if (loop_.rows == 0) return;
  if (loop_.rows > 1 && loop_.inner < kShortRow)
    run_short_rows(r);
  else
    run_long_rows(r);
}

}  // namespace

std::string micro_refuses(const Prepare& p) {
  auto known = [](const TensorType& t) {
    return t.dtype == DType::kFloat || t.dtype == DType::kBool;
  };
  for (int k = 0; k < p.inputs(); ++k)
    if (p.has(k) && !known(p.in(k))) return cat("input ", k, " is ", dtype_name(p.in(k).dtype));
  if (!known(p.out(0))) return cat("the output is ", dtype_name(p.out(0).dtype));
  return {};
}

Kernel micro_kernel(Prepare& p, std::vector<MicroStep> steps) {
  Program program(p, std::move(steps));
  return [program = std::move(program)](const Run& r) { program.run(r); };
}

}  // namespace onnxtrain::ops
