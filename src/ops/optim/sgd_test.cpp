// Sgd against PyTorch 2.13 and its function body.
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(Sgd, IsTorchsAndItsBody) {
  check_optimizer({"Sgd", 0.1, {{"decay", 0.05}}, 0, false},
                  {0.379600137, -0.863707781, 1.83767247, 0.209376022, -0.108638473});
}

}  // namespace
}  // namespace onnxtrain
