// Portable steps: only plain operators, and the numbers of the native trainer.
#include "convert/portable/portable.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "convert/portable/manifest.hpp"
#include "convert/prepare.hpp"
#include "convert/testing.hpp"
#include "engine/training.hpp"

namespace onnxtrain {
namespace {

using testing::random_ints;
using testing::random_tensor;
using testing::weights;

Model cnn(const std::string& more = "", const std::string& head = "p") {
  return parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
cnn (float[N,2,8,8] x) => (float[N,3] logits)
<)",
                         weights("w", {4, 2, 3, 3}, 1), ", ", weights("s", {4}, 3, 0.5, 1.5), ", ",
                         weights("o", {4}, 4), ", ", weights("m", {4}, 5), ", ",
                         weights("v", {4}, 6, 0.5, 1.5), ", ", weights("f", {64, 3}, 7), R"(>
{
  c = Conv <pads = [1,1,1,1]> (x, w)
  n = BatchNormalization (c, s, o, m, v)
  r = Relu (n)
  p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r)
)",
                         more, "  t = Flatten (", head, R"()
  logits = MatMul (t, f)
})"),
                     all_ops());
}

Feeds batch(int64_t n) {
  return {{"x", random_tensor({n, 2, 8, 8}, -1, 1, 7)}, {"label", random_ints({n}, 0, 3, 8)}};
}

// Drives the step as another program would: by what its description says.
class Driver {
 public:
  Driver(const StepModel& s, const Model& m) : step_(s) {
    const Model back = load_model_bytes(serialize_model(s.model, all_ops()), "", all_ops());
    session_ = std::make_unique<Session>(std::make_shared<Model>(back));
    for (const auto& [name, t] : portable::initial_state({s}, m)) state_[name] = t.clone();
  }
  double step(const Feeds& data) {
    Feeds all = state_;
    for (const auto& [name, v] : data) all[name] = v;
    double loss = NAN;
    for (auto& [name, v] : session_->run(all)) {
      for (const auto& [from, to] : step_.feedback)
        if (from == name) state_[to] = v;
      for (const StepOutput& o : step_.outputs)
        if (o.name == name && o.role == "loss") loss = std::get<Tensor>(v).to_doubles()[0];
    }
    return loss;
  }
  const Tensor& state(const std::string& name) { return std::get<Tensor>(state_.at(name)); }
  bool has(const std::string& name) const { return state_.count(name) != 0; }

 private:
  const StepModel& step_;
  std::unique_ptr<Session> session_;
  Feeds state_;
};

void same_state(Training& t, Driver& d) {
  for (const std::string& name : t.state().names()) {
    if (!d.has(name)) continue;
    const std::vector<double> want = t.state().get(name).to_doubles(),
                              got = d.state(name).to_doubles();
    ASSERT_EQ(want.size(), got.size());
    for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-4) << name;
  }
}

Recipe recipe(const std::string& optimizer) {
  Recipe r;
  r.optimizer.kind = optimizer;
  return r;
}

void steps_like_the_trainer(const std::string& runtime) {
  for (const char* optimizer : {"sgd", "adamw", "onnx_adam", "rmsprop", "lamb"})
    for (bool fixed : {false, true}) {
      SCOPED_TRACE(cat(optimizer, fixed ? " fixed " : " open ", runtime));
      const Model m = prepare(cnn(), recipe(optimizer), all_ops());
      StepOptions o;
      o.runtime = runtime;
      if (fixed) o.dims["N"] = {5};
      const StepModel s = make_step(m, 0, o, all_ops());
      Training t(std::make_shared<Model>(m), 0);
      Driver d(s, m);
      for (int k = 0; k < 4; ++k) {
        const Feeds f = batch(fixed || k != 2 ? 5 : 3);
        EXPECT_NEAR(d.step(f), t.step(f).loss, 1e-5) << "step " << k;
      }
      same_state(t, d);
    }
}

TEST(Portable, StepsLikeTheTrainer) { steps_like_the_trainer(""); }
TEST(Portable, StepsForOnnxRuntimeLikeTheTrainer) { steps_like_the_trainer("onnxruntime"); }

// Four tensors of three shapes, one formula: written once.
TEST(Portable, SmallUpdatesAreJoinedForOnnxRuntime) {
  const Model m = prepare(cnn(), recipe("adam"), all_ops());
  StepOptions o;
  auto roots = [&] {
    const StepModel s = make_step(m, 0, o, all_ops());
    int n = 0;
    for (const Node& node : s.model.main.nodes) n += node.is("Sqrt") ? 1 : 0;
    return n;
  };
  const int apart = roots();
  o.runtime = "onnxruntime";
  EXPECT_EQ(roots(), apart - 3);
}

// The data gradient of a grouped convolution, group by group, and a Slice of everything.
TEST(Portable, GroupedConvolutionsAndIdleSlices) {
  const Model net =
      parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[N,4,6,6] x) => (float[N,3] logits)
<int64[1] from = {0}, int64[1] to = {9}, int64[1] axis = {2}, )",
                      weights("w", {6, 4, 3, 3}, 1), ", ", weights("v", {4, 3, 3, 3}, 2), ", ",
                      weights("f", {16, 3}, 7), R"(>
{
  c = Conv (x, w)
  r = Relu (c)
  d = Conv <group = 2> (r, v)
  s = Slice (d, from, to, axis)
  t = Flatten (s)
  logits = MatMul (t, f)
})"),
                  all_ops());
  const Model m = prepare(net, recipe("sgd"), all_ops());
  const StepModel s = make_step(m, 0, {}, all_ops());
  for (const Node& n : s.model.main.nodes)
    EXPECT_FALSE(n.is("ConvTranspose") && n.i("group", 1) > 1) << n.label();
  Training t(std::make_shared<Model>(m), 0);
  Driver d(s, m);
  for (int k = 0; k < 3; ++k) {
    const Feeds f{{"x", random_tensor({3, 4, 6, 6}, -1, 1, 20 + k)},
                  {"label", random_ints({3}, 0, 3, 30 + k)}};
    EXPECT_NEAR(d.step(f), t.step(f).loss, 1e-5) << "step " << k;
  }
  same_state(t, d);
}

// A dimension of an input that has no name can be fixed by the input's whole shape.
TEST(Portable, ShapesOfInputsFixDimensionsWithoutAName) {
  Recipe r = recipe("sgd");
  r.losses.resize(1);
  r.losses[0].kind = "mse";
  const Model m = prepare(parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[N,2,?,?] x) => (float[N,4,?,?] y) <)",
                                          weights("w", {4, 2, 3, 3}, 1), R"(>
{ y = Conv <pads = [1,1,1,1]> (x, w) })"),
                                      all_ops()),
                          r, all_ops());
  StepOptions o;
  o.dims = {{"x", {2, 2, 5, 6}}};
  const StepModel s = make_step(m, 0, o, all_ops());
  for (const StepInput& i : s.inputs)
    if (i.name == "x") {
      EXPECT_EQ(i.type.concrete_shape(), (Shape{2, 2, 5, 6}));
    }
}

TEST(Portable, OnlyPlainOperatorsInFloat32) {
  const Model m = prepare(cnn(), recipe("adamw"), all_ops());
  const StepModel s = make_step(m, 0, {}, all_ops());
  std::set<std::string> names;
  for (const Node& n : s.model.main.nodes) {
    EXPECT_EQ(n.domain, "") << n.label();
    EXPECT_EQ(n.version, 17) << n.label();
    EXPECT_TRUE(names.insert(n.name).second) << "two nodes are called " << n.name;
    for (const char* op : {"ScatterElements", "ScatterND", "OneHot", "SoftmaxCrossEntropyLoss",
                           "CastLike", "Greater", "Size", "ReduceSumSquare", "Range"})
      EXPECT_FALSE(n.is(op)) << n.label();
    EXPECT_FALSE(n.is("MaxPool") && n.outputs.size() > 1);
    for (ValueId v : n.outputs) {
      EXPECT_TRUE(v == kNone || s.model.main.value(v).type.elem != DType::kDouble) << n.label();
    }
  }
  EXPECT_TRUE(s.warnings.empty());
}

TEST(Portable, LoweredFilesToo) {
  Recipe r = recipe("adam");
  const StepModel a = make_step(prepare(cnn(), r, all_ops()), 0, {}, all_ops());
  r.lowered = true;
  const Model low = prepare(cnn(), r, all_ops());
  const Model read = load_model_bytes(serialize_model(low, all_ops()), "", all_ops());
  const StepModel b = make_step(read, 0, {}, all_ops());
  EXPECT_EQ(a.model.main.nodes.size(), b.model.main.nodes.size());
}

TEST(Portable, EveryOpset) {
  const Model m = prepare(cnn(), recipe("adamw"), all_ops());
  for (int opset : {13, 15, 18, 22}) {
    SCOPED_TRACE(opset);
    StepOptions o;
    o.opset = opset;
    const StepModel s = make_step(m, 0, o, all_ops());
    EXPECT_EQ(s.model.opsets.at(""), opset);
    Training t(std::make_shared<Model>(m), 0);
    Driver d(s, m);
    EXPECT_NEAR(d.step(batch(4)), t.step(batch(4)).loss, 1e-5);
    same_state(t, d);
  }
}

TEST(Portable, IndicesInInt32) {
  const Model m = prepare(cnn(), recipe("adamw"), all_ops());
  StepOptions o;
  o.indices = "int32";
  const StepModel s = make_step(m, 0, o, all_ops());
  for (const StepInput& i : s.inputs) EXPECT_NE(i.type.elem, DType::kInt64) << i.name;
  Training t(std::make_shared<Model>(m), 0);
  Driver d(s, m);
  Feeds f = batch(4), small = f;
  Tensor labels(DType::kInt32, {4});
  const std::vector<int64_t> given = std::get<Tensor>(f.at("label")).to_ints();
  for (size_t k = 0; k < 4; ++k) labels.as<int32_t>()[k] = int32_t(given[k]);
  small["label"] = labels;
  EXPECT_NEAR(d.step(small), t.step(f).loss, 1e-5);
}

TEST(Portable, DropoutByACounter) {
  const Model m =
      prepare(cnn("  ratio = Constant <value_float = 0.5> ()\n  d = Dropout (p, ratio)\n", "d"),
              recipe("sgd"), all_ops());
  for (bool fixed : {false, true}) {
    StepOptions o;
    if (fixed) o.dims["N"] = {64};
    const StepModel s = make_step(m, 0, o, all_ops());
    bool counter = false;
    for (const StepInput& i : s.inputs) counter |= i.role == "counter";
    ASSERT_TRUE(counter);
    Driver d(s, m), again(s, m);
    double last = 0;
    for (int k = 0; k < 3; ++k) {
      const double loss = d.step(batch(64));
      EXPECT_EQ(loss, again.step(batch(64)));  // the same numbers every time
      EXPECT_NE(loss, last);
      last = loss;
    }
    EXPECT_EQ(d.state(s.added_state.at(0).first).to_doubles()[0], 3);
  }
  StepOptions o;
  o.random = "input";
  const StepModel s = make_step(m, 0, o, all_ops());
  int fed = 0;
  for (const StepInput& i : s.inputs) fed += i.role == "random";
  EXPECT_EQ(fed, 1);
}

std::string refusal(const Model& m, const StepOptions& o, int which = 0) {
  try {
    make_step(m, which, o, all_ops());
  } catch (const Error& e) {
    return cat(e.code(), ": ", e.message());
  }
  return "";
}

TEST(Portable, RefusalsNameWhatIsWrong) {
  const Model m = prepare(cnn(), recipe("sgd"), all_ops());
  StepOptions o;
  EXPECT_NE(refusal(m, o, 1).find("there is no section 1"), std::string::npos);
  o.opset = 9;
  EXPECT_NE(refusal(m, o).find("OT1262"), std::string::npos);
  o = {};
  o.dims["rows"] = {4};
  EXPECT_NE(refusal(m, o).find("no open dimension and no input 'rows'"), std::string::npos);
  o = {};
  o.runtime = "abacus";
  EXPECT_NE(refusal(m, o).find("'abacus'; known: onnxruntime"), std::string::npos);
  EXPECT_THROW(step_options_from_json(R"({"opsets": 3})"), Error);
  EXPECT_THROW(step_options_from_json(R"({"opset": "x"})"), Error);
}

TEST(Portable, ManifestSaysHowToDriveIt) {
  const Model m = prepare(cnn(), recipe("adamw"), all_ops());
  std::vector<StepModel> s;
  s.push_back(make_step(m, 0, {}, all_ops()));
  const std::string text = portable::manifest(s, {"step.onnx"}, m, {}, "step.state.safetensors");
  for (const char* part : {R"("format": "onnxtrain.step")", R"("role": "learning_rate")",
                           R"("role": "target")", R"("kind": "cross_entropy")"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  for (const StepInput& i : s[0].inputs) {
    const bool fed = std::any_of(s[0].feedback.begin(), s[0].feedback.end(),
                                 [&](const auto& f) { return f.second == i.name; });
    EXPECT_EQ(fed, i.role == "state") << i.name;
  }
}

}  // namespace
}  // namespace onnxtrain
