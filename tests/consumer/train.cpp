// A program over the installed C++ header: trains a plain ONNX file, saves, resumes, exports, runs.
#include <cstdio>
#include <string>

#include <onnxtrain/onnxtrain.hpp>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::string folder = argv[2];
  ot::Model model = ot::Model::load(argv[1]);
  ot::Dataset data = ot::Dataset::open(folder + "/d.npz");
  ot::Trainer trainer(model, {.loss = "cross_entropy", .optimizer = ot::AdamW{.lr = 1e-2f}});
  auto history =
      trainer.fit(data, {.epochs = 40, .batch = 16, .valid = 0.2, .out = folder + "/run"});
  if (history.size() != 40 || history[39].at("loss") >= history[0].at("loss")) return 3;
  if (!history[39].count("valid_accuracy")) return 4;
  double accuracy = trainer.evaluate(data).at("accuracy");  // the steps below spoil it

  std::vector<float> x(4 * 4, 0.5f);
  std::vector<int64_t> y(4, 1);
  ot::Value xv = ot::Value::tensor<float>({4, 4}, x), yv = ot::Value::tensor<int64_t>({4}, y);
  double first = trainer.step({{"x", &xv}, {"label", &yv}});
  for (int k = 0; k < 20; ++k) trainer.step({{"x", &xv}, {"label", &yv}});
  if (trainer.step({{"x", &xv}, {"label", &yv}}) >= first) return 5;

  trainer.save(folder + "/last.train.onnx");
  ot::Model kept = ot::Model::load(folder + "/last.train.onnx");
  ot::Trainer copied(kept), taken(ot::Model::load(folder + "/last.train.onnx"));
  for (int k = 0; k < 3; ++k)
    if (copied.step({{"x", &xv}, {"label", &yv}}) != taken.step({{"x", &xv}, {"label", &yv}}))
      return 11;
  ot::Trainer again = ot::Trainer::resume(folder + "/last.train.onnx");
  if (again.step_count() != trainer.step_count()) return 6;
  if (again.step({{"x", &xv}, {"label", &yv}}) != trainer.step({{"x", &xv}, {"label", &yv}}))
    return 7;

  trainer.export_inference(folder + "/trained.onnx");
  ot::Session session(ot::Model::load(folder + "/trained.onnx"));
  auto out = session.run({{"x", &xv}});
  if (out.at("logits").shape() != std::vector<int64_t>{4, 3}) return 8;

  try {
    ot::Dataset::open(folder + "/nothing.npz");
    return 9;
  } catch (const ot::Error& e) {
    if (e.status() != OT_DATA || e.code() != "OT4001") return 10;
  }
  std::printf("%.4f\n", accuracy);
  return 0;
}
