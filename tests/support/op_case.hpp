// One description checks value, gradient and types of an operator:
//
//   TEST(Softmax, LastAxis) {
//     OpCase("Softmax", 13).attr("axis", int64_t(-1)).input(random_tensor({2, 3})).check_grad();
//     OpCase("Relu", 14).input(Tensor::vector<float>({-1, 2})).expect(Tensor::vector<float>({0,
//     2}));
//   }
#pragma once
#include <string>
#include <vector>

#include "op/op.hpp"

namespace onnxtrain::testing {

// Uniform in [low, high), the same for the same seed and shape.
Tensor random_tensor(const Shape& shape, double low = -1, double high = 1, uint64_t seed = 1,
                     DType dtype = DType::kFloat);
Tensor random_ints(const Shape& shape, int64_t low, int64_t high, uint64_t seed = 1);

using Ints = std::vector<int64_t>;
// A vector, or a tensor of this shape.
template <class T>
Tensor tensor_of(const std::vector<T>& v, const Shape& s) {
  Tensor t = Tensor::vector<T>(v);
  return s.empty() ? t : t.reshaped(s);
}
inline Tensor ints(const Ints& v, const Shape& s = {}) { return tensor_of(v, s); }
inline Tensor floats(const std::vector<float>& v, const Shape& s = {}) { return tensor_of(v, s); }
inline Tensor doubles(const std::vector<double>& v, const Shape& s = {}) { return tensor_of(v, s); }
inline Tensor words(const std::vector<std::string>& v, const Shape& s = {}) {
  return tensor_of(v, s);
}
inline Tensor bools(const std::vector<int>& v) {
  Tensor t(DType::kBool, {int64_t(v.size())});
  for (size_t i = 0; i < v.size(); ++i) t.as<bool>()[i] = v[i] != 0;
  return t;
}
// Values of whole graphs: float64 numbers, a flag, a count.
inline Tensor vary(const Shape& s, uint64_t seed) {
  return random_tensor(s, -1, 1, seed, DType::kDouble);
}
inline Tensor flag(bool b) { return Tensor::scalar<bool>(b); }
inline Tensor number(int64_t n) { return Tensor::scalar<int64_t>(n); }

class OpCase {
 public:
  OpCase(std::string op, int version, std::string domain = {});
  OpCase& attr(const std::string& key, Attr value);
  OpCase& input(Tensor t);     // fed at run time
  OpCase& constant(Tensor t);  // an initializer
  OpCase& skip_input();        // an omitted optional input
  OpCase& outputs(int n);      // default 1
  OpCase& skip_output(int i);

  std::vector<Tensor> run() const;
  // Runs and compares output k with tolerance; also in dynamic mode (shapes unknown to the
  // planner).
  OpCase& expect(const Tensor& want, int output = 0, double rtol = 1e-5, double atol = 1e-6);
  // Central finite differences in float64 of <random cotangent, outputs> with respect to every
  // floating-point input (or those in `wrt`), against the graph made by the gradient rule, which is
  // also run in float32. Inputs should keep away from kinks.
  OpCase& check_grad(std::vector<int> wrt = {}, double eps = 1e-5, double tol = 1e-6);

 private:
  struct Operand {
    Tensor value;
    bool present = true, is_constant = false;
  };
  Graph build(const std::vector<Operand>& operands, bool unknown_shapes) const;
  std::vector<Tensor> run_with(const std::vector<Operand>& operands, bool unknown_shapes) const;
  std::vector<Operand> converted(DType to) const;
  std::string op_, domain_;
  int version_, outputs_ = 1;
  std::vector<int> skipped_outputs_;
  Attributes attrs_;
  std::vector<Operand> operands_;
};

}  // namespace onnxtrain::testing
