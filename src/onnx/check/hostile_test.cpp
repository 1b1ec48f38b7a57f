// Damaged files: every mutation and truncation of valid models gives a model or an error with a
// code, never a crash, and in little time. Run under the sanitizers by `make asan`.
#include <chrono>
#include <random>

#include "onnx/testing.hpp"

namespace onnxtrain {
namespace {

using namespace testing_onnx;

std::vector<std::string> seeds() {
  std::vector<std::string> out = {training_model().SerializeAsString()};
  for (const char* text : {
           R"(<ir_version: 10, opset_import: ["" : 20, "my" : 1]>
              g (bool c, float[N,3,8,8] x, float[4,3,3,3] w) => (y, z) <int64[2] s = {0, -1}> {
                a = Conv<strides=[1,1], pads=[1,1,1,1], group=1>(x, w)
                b = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)
                y = Reshape(b, s)
                d = my.f<k=1>(a)
                z = If(c) <then_branch = t () => (p) { p = Relu(d) }, else_branch = e () => (q) { q = Identity(d) }>
              }
              <domain: "my", opset_import: ["" : 20]> f <k> (u) => (v) { v = Softmax<axis: int = @k>(u) })",
           R"(<ir_version: 8, opset_import: ["" : 16]>
              g (int64 n, bool c, float[2] x) => (y, ys, t, u) <float[3,4] k = {1,2,3,4,5,6,7,8,9,10,11,12}, int64[2] idx = {0, 2}> {
                y, ys = Loop(n, c, x) <body = b (int64 i, bool ci, float[2] v) => (co, vo, so) {
                  co = Identity(ci)  vo = Add(v, x)  so = Mul(v, v) }>
                t = Gather<axis=0>(k, idx)
                s = SequenceConstruct(x, x)
                u = ConcatFromSequence<axis=0>(s)
              })",
           R"(<ir_version: 9, opset_import: ["" : 19]>
              g (float[1,2,5] x, float[1,8,2] w, float[1,8,2] r, float[1,1,4,4] im) => (y, q, p, sp, e) {
                y, h = LSTM<hidden_size=2>(x, w, r)
                sc = Constant<value_float=0.1>()  zp = Constant<value = int8 {0}>()
                q = QuantizeLinear(x, sc, zp)
                pads = Constant<value_ints=[0,0,1,1,0,0,1,1]>()
                p = Pad(im, pads)
                parts = Constant<value_ints=[2,3]>()
                sp, sq = Split<axis=2>(x, parts)
                e = Einsum<equation="abc,abc->a">(x, x)
              })"}) {
    out.push_back(parse<onnx::ModelProto>(text).SerializeAsString());
  }
  return out;
}

// Loads with and without the checker; returns the code or "".
std::string try_load(const std::string& bytes) {
  std::string code;
  for (bool check : {true, false}) {
    LoadOptions o;
    o.check = check;
    try {
      const Model m = load_model_bytes(bytes, "", primitives(), o);
      m.main.verify("a damaged file");
      for (const auto& t : m.training) t.algorithm.verify("a damaged file");
      Model copy = m;
      copy.edit_main();
      try {
        serialize_model(copy, primitives());
      } catch (const Error& e) {
        EXPECT_FALSE(e.code().empty());
      }
    } catch (const Error& e) {
      EXPECT_EQ(e.code().substr(0, 2), "OT");
      code = e.code();
    }
  }
  try {
    check_model_bytes(bytes, "", primitives());
  } catch (const Error&) {
  }
  return code;
}

TEST(OnnxHostile, SeedsAreValid) {
  for (const std::string& s : seeds()) EXPECT_EQ(try_load(s), "");
}

TEST(OnnxHostile, Truncated) {
  for (const std::string& s : seeds())
    for (size_t n = 0; n < s.size(); n += 7) try_load(s.substr(0, n));
}

TEST(OnnxHostile, MutatedBytes) {
  std::mt19937 random(1);
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& s : seeds())
    for (int round = 0; round < 600; ++round) {
      std::string t = s;
      for (unsigned k = 0; k < 1 + random() % 4; ++k) {
        const size_t at = random() % t.size();
        switch (random() % 5) {
          case 0:
            t[at] = char(random());
            break;
          case 1:
            t[at] = char(t[at] ^ (1 << random() % 8));
            break;
          case 2:
            t.erase(at, random() % 8);
            break;
          case 3:
            t.insert(at, t.substr(random() % t.size(), random() % 16));
            break;
          default:
            t[at] = char(random() % 2 ? 0xFF : 0);
            break;
        }
        if (t.empty()) t = "x";
      }
      try_load(t);
    }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_LT(seconds, 2.0 * 600 * double(seeds().size()));
}

// Mutations of the message instead of its bytes reach deeper: the file always parses.
void mutate(google::protobuf::Message& m, std::mt19937& random, int depth) {
  const auto* r = m.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  r->ListFields(m, &fields);
  if (fields.empty()) return;
  const auto* f = fields[random() % fields.size()];
  using F = google::protobuf::FieldDescriptor;
  const int64_t numbers[] = {
      0, -1, 1, 2, 63, 64, 65, 1 << 20, int64_t(1) << 31, int64_t(1) << 40, INT64_MAX, INT64_MIN};
  const int64_t number = numbers[random() % 12];
  const std::string text = random() % 3 == 0 ? std::string() : random() % 2 ? "x" : "y";
  if (f->is_repeated()) {
    const int n = r->FieldSize(m, f), k = int(random() % unsigned(n));
    if (random() % 6 == 0) return r->RemoveLast(&m, f);
    if (random() % 6 == 0) return r->SwapElements(&m, f, k, n - 1);
    if (f->cpp_type() == F::CPPTYPE_MESSAGE) {
      if (random() % 8 == 0) return r->AddMessage(&m, f)->CopyFrom(r->GetRepeatedMessage(m, f, 0));
      return mutate(*r->MutableRepeatedMessage(&m, f, k), random, depth + 1);
    }
    if (f->cpp_type() == F::CPPTYPE_STRING) return r->SetRepeatedString(&m, f, k, text);
    if (f->cpp_type() == F::CPPTYPE_INT64) return r->SetRepeatedInt64(&m, f, k, number);
    return;
  }
  switch (f->cpp_type()) {
    case F::CPPTYPE_MESSAGE:
      if (random() % 12 == 0) return r->ClearField(&m, f);
      return mutate(*r->MutableMessage(&m, f), random, depth + 1);
    case F::CPPTYPE_STRING:
      return r->SetString(&m, f, text);
    case F::CPPTYPE_INT64:
      return r->SetInt64(&m, f, number);
    case F::CPPTYPE_INT32:
      return r->SetInt32(&m, f, int(random() % 40));
    case F::CPPTYPE_FLOAT:
      return r->SetFloat(&m, f, random() % 2 ? 1e30f : -1.0f);
    default:
      return r->ClearField(&m, f);
  }
}

TEST(OnnxHostile, MutatedMessages) {
  std::mt19937 random(2);
  for (const std::string& s : seeds())
    for (int round = 0; round < 1500; ++round) {
      onnx::ModelProto m;
      ASSERT_TRUE(m.ParseFromString(s));
      for (unsigned k = 0; k < 1 + random() % 3; ++k) mutate(m, random, 0);
      try_load(m.SerializeAsString());
    }
}

TEST(OnnxHostile, OldBroadcastWithoutOperand) {
  onnx::ModelProto m = parse<onnx::ModelProto>(
      R"(<ir_version: 3, opset_import: ["" : 6]> g (float[2,3] x, float[3] b) => (y) {
           y = Add<broadcast=1, axis=1>(x, b) })");
  LoadOptions unchecked;
  unchecked.check = false;
  for (int k : {0, 1}) {
    onnx::ModelProto bad = m;
    bad.mutable_graph()->mutable_node(0)->set_input(k, "");
    // not checked: the node stays as it is
    load_model_bytes(bad.SerializeAsString(), "", primitives(), unchecked).main.verify("loading");
    EXPECT_THROW(load_model_bytes(bad.SerializeAsString(), "", primitives(), {}), Error);
  }
  m.mutable_graph()->mutable_node(0)->mutable_attribute(1)->set_i(INT64_MAX);
  EXPECT_THROW(load_model_bytes(m.SerializeAsString(), "", primitives(), unchecked), Error);
}

TEST(OnnxHostile, DeepNestingIsAnError) {
  auto m =
      parse<onnx::ModelProto>("<ir_version: 8, opset_import: [\"\" : 17]> g (bool c) => (c) { }");
  onnx::GraphProto* g = m.mutable_graph();
  for (int k = 0; k < 200; ++k) {
    auto* n = g->add_node();
    n->set_op_type("If");
    n->add_input("c");
    n->add_output(cat("y", k));
    auto* a = n->add_attribute();
    a->set_name("then_branch");
    a->set_type(onnx::AttributeProto::GRAPH);
    g = a->mutable_g();
  }
  EXPECT_NE(load_error(m), "");
}

TEST(OnnxHostile, LongChainOfFunctionsIsAnError) {
  std::string text =
      "<ir_version: 10, opset_import: [\"\" : 17, \"my\" : 1]> g (float x) => (y) { y = my.f0(x) "
      "}\n";
  for (int k = 0; k < 3000; ++k)
    text += cat("<domain: \"my\", opset_import: [\"\" : 17, \"my\" : 1]> f", k,
                " (a) => (b) { b = my.f", k + 1, "(a) }\n");
  EXPECT_NE(load_error(parse<onnx::ModelProto>(text)), "");
}

}  // namespace
}  // namespace onnxtrain
