// The kernels of Conv, ConvTranspose and their gradient operators: one list, fastest first, for
// every operator that says which convolution it is.
#pragma once
#include "kernels/conv/conv_pass.hpp"
#include "kernels/conv/conv_ref.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/nn/conv_shape.hpp"

namespace onnxtrain::ops {

// Numbers of a node's inputs, or -1; they are those of ConvGradX(dy, w, shape), ConvGradW(dy, x,
// shape).
struct ConvOperands {
  int x = -1, w = -1, dy = -1, bias = -1;
};
struct ConvProblem {
  kernels::ConvShape shape;
  ConvPass kind;
  ConvOperands operands;
};

// The ways to compute it; `why_not` gives "" when one applies.
struct ConvWay {
  const char* name;
  std::string (*why_not)(const Prepare& p, const ConvProblem& c);
  Kernel (*make)(Prepare& p, const ConvProblem& c);
};
// Winograd, columns, GEMMs, groups of few channels, our weight gradient; then any shape (oneDNN).
inline constexpr int kConvWays = 6;
const ConvWay& conv_way(int k);

// The loops of the definition, for float and double; with channels last through copies in ONNX's
// order.
template <class T>
Kernel conv_by_definition(Prepare& p, const ConvProblem& c);

// problem: ConvProblem(const Prepare&), what the node computes.
template <auto problem>
struct ConvKernels {
  template <int way>
  static std::string refuses(const Prepare& p) {
    return conv_way(way).why_not(p, problem(p));
  }
  template <int way>
  static Kernel make_float(Prepare& p) {
    return conv_way(way).make(p, problem(p));
  }
  template <int way>
  static Kernel make(Prepare& p) {
    return is_16bit_float(p.in(0).dtype) ? in_float(p, make_float<way>) : make_float<way>(p);
  }
  struct ByDefinition {
    template <class T>
    static Kernel make(Prepare& p) {
      return conv_by_definition<T>(p, problem(p));
    }
  };
  template <int... way>
  static std::vector<Impl> all(std::integer_sequence<int, way...>) {
    std::vector<Impl> list{{conv_way(way).name, refuses<way>, make<way>}...};
    list.push_back({"ref", nullptr, float_or_double<ByDefinition>});
    return list;
  }
  static std::vector<Impl> all() { return all(std::make_integer_sequence<int, kConvWays>()); }
};

}  // namespace onnxtrain::ops
