// The forms for ONNX Runtime: the graph computes what it computed, in the operators that were
// wanted.
#include <gtest/gtest.h>

#include "convert/portable/rules.hpp"
#include "convert/portable/stages.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::portable {
namespace {

using testing::random_tensor;

size_t count(const Graph& g, const char* op) {
  return size_t(
      std::count_if(g.nodes.begin(), g.nodes.end(), [&](const Node& n) { return n.is(op); }));
}

Feeds feeds_of(const Model& m) {
  Feeds f;
  uint64_t seed = 5;
  for (ValueId v : m.main.inputs) {
    Shape shape;
    for (const Dim& d : *m.main.value(v).type.shape) shape.push_back(d.known() ? d.value : 3);
    f[m.main.value_name(v)] = random_tensor(shape, -2, 2, ++seed);
  }
  return f;
}

// The graph in the forms for ONNX Runtime; its inputs x and dy hold data.
Model rewritten(const std::shared_ptr<Model>& before) {
  Model after = *before;
  after.unshare_main();
  Graph& g = after.edit_main();
  Context c{all_ops(), 17, {"x", "dy"}, true, true, true};
  run_rules(g, c);
  apply(g, norm_rules(), c);
  share_pools(g);
  simplify(g, c);
  return after;
}

void same_numbers(const std::shared_ptr<Model>& before, const Model& after, const Feeds& feeds) {
  const auto x = Session(before).run(feeds);
  const auto y = Session(std::make_shared<Model>(after)).run(feeds);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const Tensor &p = std::get<Tensor>(x[i].second), &q = std::get<Tensor>(y[i].second);
    ASSERT_EQ(p.shape(), q.shape());
    const std::vector<double> a = p.to_doubles(), b = q.to_doubles();
    for (size_t e = 0; e < a.size(); ++e)
      ASSERT_NEAR(a[e], b[e], 1e-5 * (1 + std::abs(a[e]))) << x[i].first << " element " << e;
  }
}

Model check(const std::string& text) {
  SCOPED_TRACE(text);
  const std::shared_ptr<Model> before = testing::text_model(text.c_str());
  Model after = rewritten(before);
  same_numbers(before, after, feeds_of(*before));
  return after;
}

TEST(FastForms, ConvolutionOfEachChannelOnSmallImages) {
  for (const char* window : {"pads = [1,1,1,1]", "strides = [2,2], pads = [1,0,1,2]",
                             "dilations = [2,1], pads = [2,1,1,1]"}) {
    const Model m = check(std::string("g (float[N,6,5,4] x, float[6,1,3,3] w, float[6] b) => "
                                      "(float[N,6,H,W] y) { y = Conv <group = 6, ") +
                          window + "> (x, w, b) }");
    EXPECT_EQ(count(m.main, "Conv"), 0u);
  }
  EXPECT_EQ(count(check("g (float[N,4,7] x, float[4,1,3] w) => (float[N,4,M] y) "
                        "{ y = Conv <group = 4, auto_pad = \"SAME_UPPER\", strides = [2]> (x, w) }")
                      .main,
                  "Conv"),
            0u);
  for (const char* window :
       {"pads = [1,1,1,1]", "strides = [2,2], pads = [1,1,1,1], output_padding = [1,0]"})
    EXPECT_EQ(
        count(check(std::string("g (float[N,6,3,4] x, float[6,1,3,3] w) => (float[N,6,H,W] y) "
                                "{ y = ConvTranspose <group = 6, ") +
                    window + "> (x, w) }")
                  .main,
              "ConvTranspose"),
        0u);
}

TEST(FastForms, OtherConvolutionsStay) {
  EXPECT_EQ(count(check("g (float[N,4,5,5] x, float[8,1,3,3] w) => (float[N,8,3,3] y) "
                        "{ y = Conv <group = 4> (x, w) }")
                      .main,
                  "Conv"),
            1u);
  EXPECT_EQ(count(check("g (float[N,4,16,16] x, float[4,1,3,3] w) => (float[N,4,14,14] y) "
                        "{ y = Conv <group = 4> (x, w) }")
                      .main,
                  "Conv"),
            1u);
}

// The weight gradient as lowering writes it.
std::string weight_gradient(const std::string& x, const std::string& dy, const std::string& cut,
                            const std::string& folded, const std::string& attrs) {
  return "g (float" + x + " x, float" + dy + " dy) => (float[A,B,C,D] y) <int64[5] cut = {" + cut +
         "}, int64[4] folded = {" + folded +
         "}> { a = Reshape (x, cut) b = Transpose <perm = [2,1,0,3,4]> (a) c = Reshape (b, folded) "
         "d = Transpose <perm = [1,0,2,3]> (dy) e = Conv <" +
         attrs + "> (c, d) y = Transpose <perm = [1,0,2,3]> (e) }";
}

TEST(FastForms, WeightGradients) {
  // small images: what taps see by a matrix
  const Model small = check(weight_gradient("[N,3,5,5]", "[N,4,5,5]", "-1, 1, 3, 5, 5",
                                            "3, -1, 5, 5", "pads = [1,1,1,1]"));
  EXPECT_EQ(count(small.main, "Conv"), 0u);
  // larger ones: by a Conv of each channel
  const Model large = check(weight_gradient("[2,3,14,14]", "[2,4,7,7]", "2, 1, 3, 14, 14",
                                            "3, 2, 14, 14", "pads = [1,1,0,0], dilations = [2,2]"));
  EXPECT_EQ(count(large.main, "Conv"), 1u);
  EXPECT_EQ(count(large.main, "MatMul"), 1u);
  // fewer kernels than channels: what taps see of dy, by a matrix and by a Conv
  for (const char* size : {"5, 5", "12, 12"}) {
    std::string image = size, in = std::string("-1, 1, 6, ") + size,
                to = std::string("6, -1, ") + size;
    const Model few = check(
        weight_gradient("[N,6," + image + "]", "[N,2," + image + "]", in, to, "pads = [2,1,0,1]"));
    EXPECT_EQ(count(few.main, "MatMul"), image == "5, 5" ? 2u : 1u);
    EXPECT_EQ(count(few.main, "Transpose"), 2u) << "of dy's view, and of the result";
  }
  // many channels on few places: one multiplication for all images
  const Model many = check(weight_gradient("[N,40,3,3]", "[N,40,3,3]", "-1, 1, 40, 3, 3",
                                           "40, -1, 3, 3", "pads = [1,1,1,1]"));
  EXPECT_EQ(count(many.main, "ReduceSum"), 0u);
  // large kernels: as it is
  const Model kernel = check(
      weight_gradient("[2,3,9,9]", "[2,4,5,5]", "2, 1, 3, 9, 9", "3, 2, 9, 9", "pads = [0,0,0,0]"));
  EXPECT_EQ(count(kernel.main, "MatMul"), 0u);
  // one kernel per channel
  const Model depth =
      check(weight_gradient("[N,5,4,4]", "[N,5,2,2]", "-1, 5, 1, 4, 4", "1, -1, 4, 4",
                            "group = 5, pads = [1,1,0,0], dilations = [2,2]"));
  EXPECT_EQ(count(depth.main, "Conv"), 0u);
}

TEST(FastForms, BatchNormalization) {
  const char* const statistics =
      "n = Size (x) m = Cast <to = 1> (n) c = Div (m, three) s = ReduceSum (x, axes) "
      "mean = Div (s, c) v = Sub (x, mean) q = Mul (v, v) r = ReduceSum (q, axes) "
      "var = Div (r, c) e = Add (var, eps) sd = Sqrt (e) gu = Unsqueeze (g, behind) ";
  const std::string head =
      "n (float[N,3,4,5] x, float[N,3,4,5] dy, float[3] g, float[3] b) => (float[N,3,4,5] y%) "
      "<float three = {3}, float eps = {0.001}, float one = {1}, int64[3] axes = {0, 2, 3}, "
      "int64[2] behind = {1, 2}> { ";
  const std::string forward =
      "h = Div (v, sd) hg = Mul (h, gu) bu = Unsqueeze (b, behind) y = Add (hg, bu) ";
  const std::string backward =
      "inv = Div (one, sd) a = Mul (gu, inv) h2 = Mul (v, inv) db = ReduceSum (dy, axes) "
      "p = Mul (dy, h2) ds = ReduceSum (p, axes) dbn = Div (db, c) dsn = Div (ds, c) "
      "t = Mul (h2, dsn) u = Sub (dy, dbn) w = Sub (u, t) dx = Mul (a, w) ";
  auto with = [&](const std::string& outputs, const std::string& nodes) {
    std::string text = head;
    text.replace(text.find('%'), 1, outputs);
    return text + statistics + nodes + "}";
  };
  EXPECT_EQ(count(check(with("", forward)).main, "BatchNormalization"), 1u);
  const Model both = check(with(", float[N,3,4,5] dx, float[1,3,1,1] ds", forward + backward));
  EXPECT_EQ(count(both.main, "BatchNormalization"), 2u);
  EXPECT_EQ(count(both.main, "Sub"), 2u) << "the mean, and the second term of the gradient";
}

TEST(FastForms, MaxPoolOverHalves) {
  const char* const pools =
      "g (float[N,8,8,8] x, float[N,8,4,4] dy) => (float[N,8,4,4] y, float[N,8,8,8] dx) "
      "<int64[1] all = {-1}> { y = MaxPool <kernel_shape = [2,2], strides = [2,2]> (x) "
      "z, i = MaxPool <kernel_shape = [2,2], strides = [2,2]> (x) "
      "shape = Shape (x) none = ConstantOfShape (shape) f = Reshape (none, all) "
      "at = Reshape (i, all) d = Reshape (dy, all) "
      "s = ScatterElements <reduction = \"add\"> (f, at, d) dx = Reshape (s, shape) }";
  const std::shared_ptr<Model> before = testing::text_model(pools);
  const Model after = rewritten(before);
  EXPECT_EQ(count(after.main, "ScatterElements"), 0u);
  Feeds feeds = feeds_of(*before);
  same_numbers(before, after, feeds);
  Tensor ties = random_tensor({3, 8, 8, 8}, -2, 2, 9);  // the first of equal ones gets it
  for (int64_t k = 0; k < ties.size(); ++k)
    ties.as<float>()[k] = std::max(0.0F, std::round(ties.as<float>()[k]));
  feeds["x"] = ties;
  same_numbers(before, after, feeds);
}

TEST(FastForms, IndicesOfFewPixelsStayAndTheValuesComeWithThem) {
  const Model m = check(
      "g (float[2,3,7,6] x) => (float[2,3,4,3] y, int64[2,3,4,3] i) { "
      "a = MaxPool <kernel_shape = [2,2], strides = [2,2], ceil_mode = 1> (x) y = Neg (a) "
      "z, i = MaxPool <kernel_shape = [2,2], strides = [2,2], ceil_mode = 1> (x) }");
  EXPECT_EQ(count(m.main, "MaxPool"), 1u);
}

}  // namespace
}  // namespace onnxtrain::portable
