// Sequences that are only taken apart: what becomes of them, and gradients through them.
#include "autodiff/sequences.hpp"

#include <gtest/gtest.h>

#include "engine/session.hpp"
#include "onnx/onnx.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain {
namespace {

Model model(const std::string& nodes, const std::string& out = "float[N] y") {
  return parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
seq (float[6,2] x, int64 i) => ()",
                         out, R"()
<int64 zero = {0}, int64 last = {-1}, int64[2] parts = {2, 4}, int64 four = {4}>
{ )",
                         nodes, " }"),
                     all_ops());
}

int sequences(const Graph& g) {
  int n = 0;
  for (const Node& k : g.nodes) n += k.op.find("Sequence") != std::string::npos;
  return n;
}

TEST(OpenSequences, SplitAndTakeApart) {
  for (const char* split :
       {"s = SplitToSequence <axis = 0> (x, parts)", "s = SplitToSequence <axis = -2> (x, four)",
        "s = SplitToSequence <axis = 0, keepdims = 0> (x)"}) {
    SCOPED_TRACE(split);
    std::string take =
        "a = SequenceAt (s, zero) b = SequenceAt (s, last) c = ReduceSum (a) "
        "d = ReduceSum (b) n = SequenceLength (s) m = Cast <to = 1> (n) "
        "e = Add (c, m) y = Sub (e, d)";
    Model m = model(cat(split, " ", take), "float[a,b] y");
    Feeds f = {{"x", testing::random_tensor({6, 2}, -1, 1, 3)}, {"i", Tensor::scalar<int64_t>(0)}};
    Model opened = m;
    opened.unshare_main();
    EXPECT_TRUE(open_sequences(opened.edit_main(), all_ops()));
    EXPECT_EQ(sequences(opened.main), 0);
    opened.main.verify("open_sequences");
    Session s(std::make_shared<Model>(m)), t(std::make_shared<Model>(opened));
    EXPECT_EQ(std::get<Tensor>(s.run(f)[0].second).to_doubles(),
              std::get<Tensor>(t.run(f)[0].second).to_doubles());
  }
}

TEST(OpenSequences, OnesThatAreReallySequencesStay) {
  // a position from outside, a sequence that leaves, unknown pieces
  Model m = model("s = SplitToSequence (x, parts) y = SequenceAt (s, i)", "float[a,b] y");
  EXPECT_FALSE(open_sequences(m.edit_main(), all_ops()));
  m = model("y = SplitToSequence (x, parts)", "seq(float[a,b]) y");
  EXPECT_FALSE(open_sequences(m.edit_main(), all_ops()));
  m = model("s = SplitToSequence (x, i) y = SequenceAt (s, zero)", "float[a,b] y");
  EXPECT_FALSE(open_sequences(m.edit_main(), all_ops()));
  EXPECT_EQ(sequences(m.main), 2);
}

TEST(OpenSequences, ConstructedOnes) {
  Model m =
      model("s = SequenceConstruct (x, x) y = ConcatFromSequence <axis = 1> (s)", "float[a,b] y");
  EXPECT_TRUE(open_sequences(m.edit_main(), all_ops()));
  EXPECT_EQ(sequences(m.main), 0);
  EXPECT_EQ(m.main.nodes.back().op, "Concat");
}

}  // namespace
}  // namespace onnxtrain
