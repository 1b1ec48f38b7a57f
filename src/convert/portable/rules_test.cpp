// Every rule: what the graph computes before is what it computes after, and the operator is gone.
#include "convert/portable/rules.hpp"

#include <gtest/gtest.h>

#include "tests/support/rule_case.hpp"

namespace onnxtrain::portable {
namespace {

using testing::random_tensor;

TEST(PortableRules, Math) {
  for (const Case& k : std::initializer_list<Case>{
           {"Greater", "g (float[3,4] a, float[4] b) => (bool[3,4] y) { y = Greater (a, b) }"},
           {"GreaterOrEqual",
            "g (int64[3,4] a, int64[4] b) => (bool[3,4] y) { y = GreaterOrEqual (a, b) }"},
           {"LessOrEqual",
            "g (int64[3,4] a, int64[4] b) => (bool[3,4] y) { y = LessOrEqual (a, b) }"},
           {"Sum",
            "g (float[N,2] a, float[2] b, float[N,1] c) => (float[N,2] y) { y = Sum (a, b, c) }"},
           {"Mean",
            "g (float[N,2] a, float[2] b, float[N,1] c) => (float[N,2] y) { y = Mean (a, b, c) }"},
           {"Clip",
            "g (float[N,5] x) => (float[N,5] y) <float l = {-0.5}, float h = {1.0}> "
            "{ y = Clip (x, l, h) }"},
           {"Mod", "g (int64[7] x) => (int64[7] y) <int64 n = {3}> { y = Mod (x, n) }", 100},
           {"Softsign", "g (float[N,5] x) => (float[N,5] y) { y = Softsign (x) }"},
           {"HardSigmoid", "g (float[N,5] x) => (float[N,5] y) { y = HardSigmoid (x) }"},
           {"HardSwish", "g (float[N,5] x) => (float[N,5] y) { y = HardSwish (x) }"},
           {"Softplus", "g (float[N,5] x) => (float[N,5] y) { y = Softplus (x) }"},
           {"Mish", "g (float[N,5] x) => (float[N,5] y) { y = Mish (x) }"},
           {"PRelu", "g (float[N,5] x, float[5] s) => (float[N,5] y) { y = PRelu (x, s) }"},
           {"Elu", "g (float[N,5] x) => (float[N,5] y) { y = Elu <alpha = 0.7> (x) }"},
           {"Selu", "g (float[N,5] x) => (float[N,5] y) { y = Selu (x) }"},
           {"ThresholdedRelu",
            "g (float[N,5] x) => (float[N,5] y) { y = ThresholdedRelu <alpha = 0.3> (x) }"}})
    check_rule(k);
}

TEST(PortableRules, SumsOfPowers) {
  for (const Case& k : std::initializer_list<Case>{
           {"LpPool",
            "g (float[N,2,7] x) => (float[N,2,4] y) "
            "{ y = LpPool <kernel_shape = [3], strides = [2], pads = [1, 1]> (x) }"},
           {"LpPool",
            "g (float[N,2,5,6] x) => (float[N,2,4,5] y) "
            "{ y = LpPool <kernel_shape = [2, 2], p = 3> (x) }"},
           {"GlobalLpPool",
            "g (float[N,2,5,6] x) => (float[N,2,1,1] y) { y = GlobalLpPool <p = 1> (x) }"},
           {"LpNormalization",
            "g (float[N,5] x) => (float[N,5] y) { y = LpNormalization <axis = 1, p = 1> (x) }"},
           {"LpNormalization",
            "g (float[N,5] x) => (float[N,5] y) <float z = {0.0}> "
            "{ n = Mul (x, z) a = LpNormalization (n) b = LpNormalization (x) y = Add (a, b) }"}})
    check_rule(k);
}

TEST(PortableRules, QuantisedAndBack) {
  for (const char* zero : {"int8 z = {3}", "uint8 z = {128}", "int16 z = {-700}"}) {
    const std::string graph =
        std::string("g (float[N,5] x) => (float[N,5] y) <float s = {0.01}, ") + zero +
        "> { q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z) }";
    check_rule({"QuantizeLinear", graph.c_str()});
    check_rule({"DequantizeLinear", graph.c_str()});
  }
  check_rule({"QuantizeLinear",
              "g (float[N,3,2] x) => (float[N,3,2] y) <float[3] s = {0.01, 0.02, 0.005}> "
              "{ q = QuantizeLinear <axis = 1> (x, s) y = DequantizeLinear <axis = -2> (q, s) }"});
}

TEST(PortableRules, AsManyClassesAsRows) {
  check_rule({"SoftmaxCrossEntropyLoss",
              "g (float[N,4] x, int64[N] t) => (float y) { z = Transpose (x) s = MatMul (x, z) y = "
              "SoftmaxCrossEntropyLoss <ignore_index = 1> (s, t) }",
              3});
}

TEST(PortableRules, SizesOfSomeDimensionsBeforeOpset15) {
  for (const char* some : {"start = 1", "end = -1", "start = -2, end = 2", "start = 2, end = 1"}) {
    const auto before = testing::text_model(
        (std::string("g (float[N,3,M] x) => (int64[K] y) { y = Shape <") + some + "> (x) }")
            .c_str());
    Model after = *before;
    after.unshare_main();
    run_rules(after.edit_main(), Context{all_ops(), 13});
    for (const Node& n : after.main.nodes) EXPECT_FALSE(n.has("start") || n.has("end"));
    const Feeds feeds{{"x", random_tensor({2, 3, 5}, -1, 1, 1)}};
    const auto x = Session(before).run(feeds);
    const auto y = Session(std::make_shared<Model>(after)).run(feeds);
    EXPECT_EQ(std::get<Tensor>(x[0].second).to_ints(), std::get<Tensor>(y[0].second).to_ints())
        << some;
  }
}

TEST(PortableRules, RowsAddedToATableOfOpenLength) {
  for (const char* width : {"", ",2", ",2,3"})
    check_rule(
        {"ScatterND",
         (std::string("g (float[N") + width + "] d, int64[6,1] i, float[6" + width +
          "] u) => (float[N" + width + "] y) { y = ScatterND <reduction = \"add\"> (d, i, u) }")
             .c_str(),
         3});
}

TEST(PortableRules, ErfOfAQuotient) {
  check_rule(
      {"Div",
       "g (float[N,5] x) => (float[N,5] y) <float r = {1.4142135}> { q = Div (x, r) y = Erf (q) "
       "}"});
}

TEST(PortableRules, Reductions) {
  for (const Case& k : std::initializer_list<Case>{
           {"ReduceSumSquare",
            "g (float[N,3,4] x) => (float[N] y) <int64[2] a = {1, 2}> "
            "{ y = ReduceSumSquare <keepdims = 0> (x, a) }"},
           {"ReduceL2",
            "g (float[N,3,4] x) => (float[1,3,1] y) <int64[2] a = {0, 2}> "
            "{ y = ReduceL2 (x, a) }"},
           {"ReduceL1", "g (float[N,3,4] x) => (float y) { y = ReduceL1 <keepdims = 0> (x) }"},
           {"ReduceLogSumExp",
            "g (float[N,3,4] x) => (float[3] y) <int64[2] a = {0, -1}> "
            "{ y = ReduceLogSumExp <keepdims = 0> (x, a) }"}})
    check_rule(k);
  const std::shared_ptr<Model> m = testing::text_model(
      "g (float[2,3,4,5] x) => (float[3] y) <int64[3] a = {0, 2, 3}> "
      "{ y = ReduceSum <keepdims = 0> (x, a) }");
  Graph g = m->main.clone();
  run_rules(g, Context{all_ops(), 17});
  EXPECT_EQ(std::count_if(g.nodes.begin(), g.nodes.end(),
                          [](const Node& n) { return n.is("ReduceSum"); }),
            2)
      << "axes 2 and 3, then axis 0";
}

TEST(PortableRules, Losses) {
  const char* const scores = "g (float[N,4,3] x, int64[N,3] l) => ";
  for (const char* form :
       {"(float y) { y = SoftmaxCrossEntropyLoss (x, l) }",
        "(float y) { y = SoftmaxCrossEntropyLoss <ignore_index = 1> (x, l) }",
        "(float y) <float[4] w = {0.5, 1.0, 2.0, 0.1}> "
        "{ y = SoftmaxCrossEntropyLoss <ignore_index = 0> (x, l, w) }",
        "(float[N,3] y) { y = SoftmaxCrossEntropyLoss <reduction = \"none\"> (x, l) }",
        "(float y, float[N,4,3] p) { y, p = SoftmaxCrossEntropyLoss <reduction = \"sum\"> (x, l) "
        "}"})
    check_rule({"SoftmaxCrossEntropyLoss", std::string(std::string(scores) + form).c_str()});
  check_rule(
      {"NegativeLogLikelihoodLoss",
       "g (float[N,4] x, int64[N] l) => (float y) { y = NegativeLogLikelihoodLoss (x, l) }"});
  check_rule({"OneHot",
              "g (int64[N] i) => (float[N,4] y) <int64 d = {4}, float[2] v = {-1.0, 3.0}> "
              "{ y = OneHot (i, d, v) }"});
  check_rule({"OneHot",
              "g (int64[N,2] i) => (float[N,4,2] y) <int64 d = {4}, float[2] v = {0.0, 1.0}> "
              "{ y = OneHot <axis = 1> (i, d, v) }"});
}

TEST(PortableRules, Pickers) {
  for (const Case& k : std::initializer_list<Case>{
           {"GatherND",
            "g (float[4,4,2] x, int64[5,2] i) => (float[5,2] y) { y = GatherND (x, i) }"},
           {"GatherElements",
            "g (float[3,4] x, int64[3,2] i) => (float[3,2] y) { y = GatherElements <axis = 1> (x, "
            "i) }"},
           {"ScatterND",
            "g (float[4,2] x, int64[5,1] i, float[5,2] u) => (float[4,2] y) "
            "{ y = ScatterND <reduction = \"add\"> (x, i, u) }"},
           {"ScatterElements",
            "g (float[3,4] x, int64[3,6] i, float[3,6] u) => (float[3,4] y) "
            "{ y = ScatterElements <axis = 1, reduction = \"add\"> (x, i, u) }"},
           {"DepthToSpace",
            "g (float[N,8,2,3] x) => (float[N,2,4,6] y) "
            "{ y = DepthToSpace <blocksize = 2, mode = \"CRD\"> (x) }"},
           {"DepthToSpace",
            "g (float[N,8,2,3] x) => (float[N,2,4,6] y) { y = DepthToSpace <blocksize = 2> (x) }"},
           {"SpaceToDepth",
            "g (float[N,2,4,6] x) => (float[N,8,2,3] y) { y = SpaceToDepth <blocksize = 2> (x) }"},
           {"Split",
            "g (float[N,7] x) => (float[N,3] a, float[N,4] b) <int64[2] s = {3, 4}> "
            "{ a, b = Split <axis = 1> (x, s) }"},
           {"Trilu", "g (float[N,4,5] x) => (float[N,4,5] y) { y = Trilu <upper = 0> (x) }"},
           {"SplitToSequence",
            "g (float[N,6] x) => (float[N,2] y) <int64 s = {2}, int64 k = {1}> "
            "{ q = SplitToSequence <axis = 1> (x, s) y = SequenceAt (q, k) }"},
           {"InstanceNormalization",
            "g (float[N,3,4,4] x, float[3] s, float[3] b) => (float[N,3,4,4] y) "
            "{ y = InstanceNormalization (x, s, b) }"}})
    check_rule(k);
}

TEST(PortableRules, PadsThatOnlyCutAreSlices) {
  check_rule({"Pad",
              "g (float[N,5,6] x) => (float[N,2,5] y) <int64[6] p = {0, -1, 0, 0, -2, -1}> "
              "{ y = Pad (x, p) }"});
}

TEST(PortableRules, PadsThatCutAndFill) {
  const char* text =
      "g (float[N,5] x) => (float[M,6] y) <int64[4] p = {1, -1, 0, 2}, float v = {0.5}> "
      "{ y = Pad (x, p, v) }";
  check_rule({"None", text});
  Model after = *testing::text_model(text);
  after.unshare_main();
  Context c{all_ops(), 17};
  run_rules(after.edit_main(), c);
  for (const Node& n : after.main.nodes) {
    if (!n.is("Pad")) continue;
    for (int64_t p : after.main.value(n.inputs[1]).constant.to_ints()) EXPECT_GE(p, 0);
  }
}

TEST(PortableRules, LinearMaps) {
  for (const char* form :
       {"g (float[N,3,4] a, float[N,4,5] b) => (float[N,3,5] y) "
        "{ y = Einsum <equation = \"bij,bjk->bik\"> (a, b) }",
        "g (float[3,4] a, float[4,2,5] b) => (float[2,3] y) "
        "{ y = Einsum <equation = \"ij,jkl->ki\"> (a, b) }",
        "g (float[3,4] a, float[3] b) => (float[3,4] y) { y = Einsum <equation = \"ij,i->ij\"> (a, "
        "b) }",
        "g (float[3,4] a) => (float[4] y) { y = Einsum <equation = \"ij->j\"> (a) }"})
    check_rule({"Einsum", form});
  for (const char* form :
       {"<float[4] s = {1.0, 1.0, 2.0, 1.5}> { y = Resize <mode = \"nearest\"> (x, , s) }",
        "<float[4] s = {1.0, 1.0, 2.0, 1.5}> { y = Resize <mode = \"linear\"> (x, , s) }",
        "<float[4] s = {1.0, 1.0, 2.0, 1.5}> { y = Resize <mode = \"cubic\", "
        "coordinate_transformation_mode = \"align_corners\"> (x, , s) }"})
    check_rule(
        {"Resize", (std::string("g (float[N,2,3,4] x) => (float[N,2,6,6] y) ") + form).c_str()});
}

TEST(PortableRules, ResizeWithNamedAxesAndPolicies) {
  for (const char* form :
       {"sizes, antialias = 1, exclude_outside = 1", "sizes, antialias = 1",
        "sizes, mode = \"cubic\"", "sizes, keep_aspect_ratio_policy = \"not_larger\"",
        "sizes, keep_aspect_ratio_policy = \"not_smaller\", antialias = 1", "scales, antialias = 1",
        "scales, coordinate_transformation_mode = \"half_pixel_symmetric\""}) {
    const std::string text = form;
    const std::string by = text.substr(0, text.find(',')), rest = text.substr(text.find(','));
    for (const char* shape : {"N,2,7,4", "N,2,h,w"}) {
      const bool open = std::string(shape).find('h') != std::string::npos;
      if (open && rest.find("symmetric") != std::string::npos) continue;  // stays
      const std::string mode =
          rest.find("mode = \"cubic") == std::string::npos ? "mode = \"linear\"" : "";
      check_rule(
          {"Resize",
           ("g (float[" + std::string(shape) +
            "] x) => (float[N,2,a,b] y) <int64[2] sizes = {5, 2}, float[2] scales = {0.6, 1.7}> "
            "{ y = Resize <axes = [2, 3], " +
            mode + (mode.empty() ? rest.substr(2) : rest) + "> (x, , " +
            (by == "sizes" ? ", sizes" : "scales") + ") }")
               .c_str()});
    }
  }
}

TEST(PortableRules, ResizeToWholePixelsWithOpenSizes) {
  for (const char* how : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
    for (const char* place : {"half_pixel", "asymmetric", "align_corners"})
      check_rule({"Resize",
                  (std::string("g (int64[N,2,h,w] x) => (int64[N,2,5,2] y) <int64[2] s = {5, 2}> "
                               "{ y = Resize <axes = [2, 3], nearest_mode = \"") +
                   how + "\", coordinate_transformation_mode = \"" + place + "\"> (x, , , s) }")
                      .c_str()});
}

TEST(PortableRules, ResizeThatCropsBeyondTheEdge) {
  check_rule(
      {"Resize",
       "g (float[3,2,6,5] x) => (float[3,2,4,3] y) <float[8] r = {0.0, 0.0, 0.2, -0.3, 1.0, 1.0, "
       "1.4, 0.9}, int64[4] s = {3, 2, 4, 3}> { y = Resize <mode = \"linear\", "
       "extrapolation_value = 7.5, "
       "coordinate_transformation_mode = \"tf_crop_and_resize\"> (x, r, , s) }"});
}

TEST(PortableRules, SingleNumbersKeepTheirAxesWhileTheyAreReduced) {
  Model after =
      check_rule({"None",
                  "g (float[N,3] x) => (float y, float z) "
                  "{ y = ReduceSum <keepdims = 0> (x) z = ReduceMax <keepdims = 0> (x) }"});
  for (const Node& n : after.main.nodes)
    EXPECT_FALSE(n.op.starts_with("Reduce") && n.i("keepdims", 1) == 0) << n.label();
}

TEST(PortableRules, AtMostTwoAxesAtATimeBesideAnother) {
  Model after = check_rule({"None",
                            "g (float[N,3,4,5] x) => (float[5] y) <int64[3] a = {0, 1, 2}> "
                            "{ y = ReduceSum <keepdims = 0> (x, a) }"});
  int sums = 0;
  for (const Node& n : after.main.nodes) sums += n.is("ReduceSum");
  EXPECT_EQ(sums, 2);
}

TEST(PortableRules, NormalisationOverChannels) {
  for (const char* size : {"2", "3", "5"})
    check_rule(
        {"LRN", (std::string("g (float[N,6,3,4] x) => (float[N,6,3,4] y) { y = LRN <alpha = 0.3, "
                             "beta = 0.6, bias = 1.5, size = ") +
                 size + "> (x) }")
                    .c_str()});
}

TEST(PortableRules, RecurrentLayers) {
  check_rule({"LSTM",
              "g (float[5,N,3] x, float[1,8,3] w, float[1,8,2] r) => (float[5,1,N,2] y) "
              "{ y = LSTM <hidden_size = 2> (x, w, r) }"});
  check_rule({"GRU",
              "g (float[4,N,3] x, float[2,6,3] w, float[2,6,2] r, float[2,12] b) => "
              "(float[4,2,N,2] y, float[2,N,2] h) "
              "{ y, h = GRU <hidden_size = 2, direction = \"bidirectional\"> (x, w, r, b) }"});
  check_rule({"RNN",
              "g (float[4,2,3] x, float[1,2,3] w, float[1,2,2] r) => (float[1,2,2] h) "
              "{ y, h = RNN <hidden_size = 2> (x, w, r) }"});
}

}  // namespace
}  // namespace onnxtrain::portable
