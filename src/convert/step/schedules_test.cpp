// Schedules against the learning rates of PyTorch 2.13 at every step.
#include "convert/step/schedules.hpp"

#include <gtest/gtest.h>

#include "engine/training.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {
namespace {

Model line() {
  return parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0.5}> { y = MatMul (x, w) })",
                     all_ops());
}

void check(const ScheduleSpec& s, const std::vector<double>& torch) {
  SCOPED_TRACE(s.kind);
  Recipe r;
  r.optimizer.kind = "sgd";
  r.optimizer.lr = 0.1;
  r.schedule = s;
  Training t(std::make_shared<Model>(prepare(line(), r, all_ops())), 0);
  Feeds f = {{"x", Tensor(DType::kFloat, {1, 1})}, {"label", Tensor(DType::kFloat, {1, 1})}};
  for (auto& [name, v] : f) *std::get<Tensor>(v).as<float>() = 1;
  for (size_t k = 0; k < torch.size(); ++k) {
    EXPECT_NEAR(scheduled_lr(r, int64_t(k)), torch[k], 1e-15) << "step " << k;
    EXPECT_EQ(float(t.lr()), float(torch[k])) << "step " << k;
    t.step(f);
  }
}

TEST(Schedules, ArePyTorchs) {
  check({"step", {{"step_size", 3}, {"gamma", 0.5}}, {}},
        {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125});
  check({"multistep", {{"gamma", 0.3}}, {2, 5, 9}},
        {0.1, 0.1, 0.03, 0.03, 0.03, 0.009, 0.009, 0.009, 0.009, 0.0027});
  check({"exponential", {{"gamma", 0.9}}, {}}, {0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049});
  check({"cosine", {{"total_steps", 10}, {"min_lr", 0.01}}, {}},
        {0.1, 0.097797543233281922, 0.091405764746872634, 0.08145033635316129, 0.068905764746872641,
         0.055, 0.041094235253127373, 0.028549663646838717, 0.01859423525312737,
         0.012202456766718092, 0.01, 0.012202456766718092});
  check({"linear", {{"total_steps", 8}, {"start_factor", 0.25}, {"end_factor", 0.75}}, {}},
        {0.025, 0.03125, 0.0375, 0.04375, 0.05, 0.05625, 0.0625, 0.06875, 0.075, 0.075});
  check({"polynomial", {{"total_steps", 10}, {"power", 2}}, {}},
        {0.1, 0.081, 0.064, 0.049, 0.036, 0.025, 0.016, 0.009, 0.004, 0.001, 0, 0});
  check({"onecycle", {{"total_steps", 13}}, {}},
        {0.0040000000000000036, 0.029516394846410082, 0.07893697913739435, 0.099970207146725415,
         0.096437826255017095, 0.087425587706405419, 0.073996977910493741, 0.057736635793647115,
         0.04056335797487326, 0.024503671767014099, 0.011452695450885978, 0.0029505054314122557});
  check({"onecycle",
         {{"total_steps", 13}, {"three_phase", 1}, {"anneal_linear", 1}, {"pct_start", 0.4}},
         {}},
        {0.004, 0.026857142857142857, 0.049714285714285711, 0.072571428571428578,
         0.095428571428571432, 0.081714285714285725, 0.058857142857142872, 0.036,
         0.013142857142857151, 0.0033334, 0.0022224, 0.0011114});
  check({"cosine",
         {{"total_steps", 12}, {"min_lr", 0.01}, {"warmup_steps", 4}, {"warmup_start", 0.1}},
         {}},
        {0.01, 0.0325, 0.055, 0.0775, 0.1, 0.096574578963007904, 0.08681980515339463,
         0.072220754456429045, 0.055, 0.037779245543570962, 0.023180194846605363,
         0.013425421036992097});
}

// Runs so short that a phase begins before the first step, or two ends fall together.
TEST(Schedules, OneCycleWithPhasesOfNoSteps) {
  auto cycle = [](double total, double pct, double three) {
    return ScheduleSpec{
        "onecycle", {{"total_steps", total}, {"pct_start", pct}, {"three_phase", three}}, {}};
  };
  check(cycle(1, 0.3, 0), {4e-07});
  check(cycle(2, 0.3, 0), {0.0811745653949763, 4e-07});
  check(cycle(3, 0.3, 0), {0.09944154354509119, 0.046263710266697504, 4e-07});
  check(cycle(5, 0, 0),
        {0.0904508879153485, 0.0654509879153485, 0.03454941208465151, 0.009549512084651508, 4e-07});
  check(cycle(4, 0.5, 1), {0.0040000000000000036, 0.1, 0.004, 4e-07});
  check(cycle(5, 0.5, 1), {0.0040000000000000036, 0.076, 0.07600000000000001, 0.004, 4e-07});
  // PyTorch divides by zero here; the learning rate is that of the end of the phase
  check(cycle(5, 0.2, 0), {0.1, 0.08535539763797113, 0.0500002, 0.014645002362028864, 4e-07});
  check(cycle(5, 1, 0), {0.0040000000000000036, 0.018058874503045733, 0.052000000000000005,
                         0.08594112549695429, 0.1});
}

// Rates of twelve steps from here on.
std::vector<double> learning_rates(Model m, int steps = 12) {
  Training t(std::make_shared<Model>(std::move(m)), 0);
  Feeds f = {{"x", Tensor(DType::kFloat, {1, 1})}, {"label", Tensor(DType::kFloat, {1, 1})}};
  for (auto& [name, v] : f) *std::get<Tensor>(v).as<float>() = 1;
  std::vector<double> all;
  for (int k = 0; k < steps; ++k) {
    all.push_back(t.lr());
    t.step(f);
  }
  return all;
}

Recipe with(const std::string& kind, double total, int accumulate) {
  Recipe r;
  r.optimizer.lr = 0.1;
  r.accumulate = accumulate;
  r.schedule.kind = kind;
  if (total > 0) r.schedule.numbers["total_steps"] = total;
  return r;
}

TEST(Schedules, GivenLaterAreTheSame) {
  for (const char* kind : {"cosine", "linear", "onecycle", "polynomial", "exponential"})
    for (int accumulate : {1, 3}) {
      SCOPED_TRACE(cat(kind, " ", accumulate));
      const Recipe wanted = with(kind, 9, accumulate);
      const std::vector<double> direct = learning_rates(prepare(line(), wanted, all_ops()));
      Model later = prepare(line(), with("constant", 0, accumulate), all_ops());
      set_schedule(later, wanted, 0, all_ops());
      EXPECT_EQ(learning_rates(later), direct);
      // from a file, in place of another one
      Model other = prepare(line(), with("linear", 30, accumulate), all_ops());
      other = load_model_bytes(serialize_model(other, all_ops()), "", all_ops());
      set_schedule(other, wanted, 0, all_ops());
      EXPECT_EQ(learning_rates(other), direct);
      EXPECT_EQ(learning_rates(load_model_bytes(serialize_model(other, all_ops()), "", all_ops())),
                direct);
      EXPECT_TRUE(check_model_bytes(serialize_model(other, all_ops()), "", all_ops()).empty());
      // nothing of the first one is left
      EXPECT_EQ(other.training[0].algorithm.nodes.size(), later.training[0].algorithm.nodes.size());
    }
}

TEST(Schedules, CanBeTakenAway) {
  Model m = prepare(line(), with("cosine", 9, 1), all_ops());
  set_schedule(m, with("constant", 0, 1), 4, all_ops());
  for (double lr : learning_rates(m)) EXPECT_EQ(float(lr), 0.1f);
  Model half = prepare(line(), with("constant", 0, 1), all_ops());
  set_schedule(half, with("linear", 10, 1), 5, all_ops());
  EXPECT_NEAR(learning_rates(half, 1)[0], 0.05, 1e-8);
}

TEST(Schedules, OnlyOfTrainingsThatWereMadeHere) {
  Model m = prepare(line(), with("constant", 0, 1), all_ops());
  m.metadata.erase("onnxtrain.rate");
  EXPECT_THROW(set_schedule(m, with("linear", 10, 1), 0, all_ops()), Error);
}

TEST(Schedules, NeedTheirNumbers) {
  Recipe r;
  r.schedule.kind = "cosine";
  EXPECT_THROW(prepare(line(), r, all_ops()), Error);
}

}  // namespace
}  // namespace onnxtrain
