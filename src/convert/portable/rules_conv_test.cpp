// Transposed convolutions in groups, and sums of products, in forms that every runtime has.
#include <algorithm>

#include "tests/support/rule_case.hpp"

namespace onnxtrain::portable {
namespace {

TEST(PortableRules, TransposedConvolutionsOfOnesChannelByChannel) {
  const Model after = check_rule(
      {"None",
       "g (float[N,3,4,5] x) => (float[N,3,8,10] y) <float one = {1.0}, int64[4] s = {3, 1, 2, 2}> "
       "{ w = Expand (one, s) y = ConvTranspose <group = 3, strides = [2, 2]> (x, w) }"});
  for (const Node& n : after.main.nodes)
    EXPECT_TRUE(!n.is("ConvTranspose") || n.i("group", 1) == 1) << n.label();
}

TEST(PortableRules, TransposedConvolutionsOfOneKernelPerChannel) {
  struct Form {
    const char *kernel, *to, *attrs;
  };
  for (const Form& f : std::initializer_list<Form>{
           {"3,1,3,3", "4,5", "pads = [1, 1, 1, 1]"},
           {"3,1,3,3", "8,10", "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]"},
           {"3,1,3,2", "7,10", "strides = [2, 2], pads = [1, 0, 1, 0]"},
           {"3,1,2,5", "13,9", "strides = [4, 1], pads = [0, 0, 1, 0]"},
           {"3,1,3,1", "6,5", "dilations = [2, 1], pads = [1, 0, 1, 0]"},
           {"3,1,1,1", "4,5", "strides = [1, 1]"}}) {
    const std::string graph = std::string("g (float[N,3,4,5] x, float[") + f.kernel +
                              "] w, float[3] b) => (float[N,3," + f.to +
                              "] y) { y = ConvTranspose <group = 3, " + f.attrs + "> (x, w, b) }";
    const Model after = check_rule({"ConvTranspose", graph.c_str()});
    const auto& nodes = after.main.nodes;
    EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), [](const Node& n) { return n.is("Conv"); }),
              1)
        << graph;
  }
  check_rule({"ConvTranspose",
              "g (float[N,2,1] x, float[2,1,3] w) => (float[N,2,3] y) "
              "{ y = ConvTranspose <group = 2, strides = [2]> (x, w) }"});
  // more cut away than the kernel reaches: stays a transposed convolution
  check_rule({"None",
              "g (float[N,2,6] x, float[2,1,2] w) => (float[N,2,3] y) "
              "{ y = ConvTranspose <group = 2, pads = [2, 2]> (x, w) }"});
}

// A product with a factor that is repeated along one of the axes: one axis at a time.
TEST(PortableRules, SumsOfPartlyRepeatedFactors) {
  const auto sums = [](const char* factor, const char* product) {
    const std::string graph = std::string("g (float[") + factor +
                              "] a, float[6,4,12] b) => (float[1,1,12] y) "
                              "<int64[2] axes = {0, 1}, int64[3] all = {6, 4, 12}> { " +
                              product + " y = ReduceSum (p, axes) }";
    const Model after = check_rule({"None", graph.c_str()});
    const auto& nodes = after.main.nodes;
    return std::count_if(nodes.begin(), nodes.end(),
                         [](const Node& n) { return n.is("ReduceSum"); });
  };
  EXPECT_EQ(sums("6,1,12", "p = Mul (a, b)"), 2);
  EXPECT_EQ(sums("4,12", "p = Mul (b, a)"), 2);
  EXPECT_EQ(sums("6,1,12", "e = Expand (a, all) p = Mul (e, b)"), 2);
  EXPECT_EQ(sums("6,4,12", "p = Mul (a, b)"), 1);
  EXPECT_EQ(sums("12", "p = Mul (a, b)"), 1);
  EXPECT_EQ(sums("6,4,1", "p = Mul (a, b)"), 1);
  EXPECT_EQ(sums("6,1,12", "p = Add (a, b)"), 1);
}

}  // namespace
}  // namespace onnxtrain::portable
