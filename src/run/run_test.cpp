// Runs from their beginning to their report: described by files, and on data that is handed over.
#include "run/run.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "convert/testing.hpp"
#include "core/file.hpp"
#include "onnx/onnx.hpp"
#include "run/given.hpp"
#include "run/predict.hpp"
#include "run/resumed_settings.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::run {
namespace {

namespace fs = std::filesystem;

Model plain_model() {
  return parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
line (float[N,4] x) => (float[N,3] logits) <)",
                         testing::weights("w", {4, 3}, 1), R"(>
{ logits = MatMul (x, w) })"),
                     all_ops());
}

// Notes and warnings in the order they came.
struct Heard : Observer {
  void on_note(const std::string& label, const std::string& text) override {
    notes.push_back(label + ": " + text);
  }
  bool has(const std::string& part) const {
    return std::any_of(notes.begin(), notes.end(),
                       [&](const auto& n) { return n.find(part) != std::string::npos; });
  }
  std::vector<std::string> notes;
};

class WholeRun : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / cat("onnxtrain_run_", ::getpid());
    fs::create_directories(root_);
    save_model(plain_model(), at("model.onnx"), all_ops());
    write_npz(at("d.npz"), {{"x", x_}, {"y", y_}});
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string at(const std::string& name) const { return (root_ / name).string(); }

  Request request(const std::string& out, int64_t epochs) const {
    Request q;
    q.model = at("model.onnx");
    q.out = at(out);
    q.data.data = at("d.npz");
    q.fit.epochs = epochs;
    q.fit.batch = 8;
    q.seed = 7;
    q.recipe = [] {
      Recipe r;
      r.schedule.kind = "cosine";
      r.optimizer.lr = 0.1;
      return r;
    };
    return q;
  }
  // The settings that a run of these tests has; those that it is resumed with come from its folder.
  static Settings settings(const Request& q) {
    Settings s;
    for (const char* name : {"epochs", "batch", "lr"})
      s.add({name, Settings::Kind::kNumber, false, "", {}});
    for (const char* name : {"data",       "valid",           "schedule",     "schedule-arg",
                             "loss",       "optimizer",       "weight-decay", "momentum",
                             "clip",       "clip-value",      "freeze",       "only",
                             "accumulate", "label-smoothing", "ignore-index", "label",
                             "loss-input", "as-is",           "bn-variance",  "reset",
                             "seed"})
      s.add({name, Settings::Kind::kText, false, "", {}});
    s.set("batch", {std::to_string(q.fit.batch)}, "flag");
    return s;
  }
  FitResult train(const Request& q, Heard& heard) {
    run::Run run(q, settings(q), heard);
    run.open_folder(heard);
    return run.fit(stop_, false, heard);
  }
  static std::vector<std::string> names(const fs::path& folder) {
    std::vector<std::string> all;
    for (const auto& e : fs::directory_iterator(folder)) all.push_back(e.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }
  static std::map<std::string, std::vector<double>> state(const std::string& checkpoint) {
    Position ignored;
    const Model m = load_checkpoint(checkpoint, ignored);
    std::map<std::string, std::vector<double>> all;
    for (const std::string& name : m.state_names()) all[name] = m.initializer(name)->to_doubles();
    return all;
  }

  fs::path root_;
  Tensor x_ = testing::random_tensor({50, 4}, -1, 1, 5), y_ = testing::random_ints({50}, 0, 3, 6);
  std::atomic<int> stop_{0};
};

TEST_F(WholeRun, EveryFileIsThere) {
  Heard heard;
  Request q = request("run", 2);
  q.command = "onnxtrain train model.onnx";
  train(q, heard);
  EXPECT_TRUE(heard.has("loss: cross_entropy, because"));
  EXPECT_TRUE(heard.has("split: 45 train   5 valid"));
  std::vector<std::string> there = names(at("run"));
  std::erase_if(there, [](const auto& n) { return n.starts_with("events.out"); });
  EXPECT_EQ(there, (std::vector<std::string>{"checkpoints", "command.txt", "config.toml",
                                             "confusion.json", "data.json", "env.json",
                                             "metrics.csv", "metrics.jsonl", "model.onnx",
                                             "operators.json", "predictions.json", "report.html"}));
  EXPECT_NE(read_file(at("run/env.json"), 1 << 20).find("peak_process_bytes"), std::string::npos);
}

// Settings and state of a checkpoint without config.toml come from one reading.
TEST_F(WholeRun, ACheckpointIsReadOnce) {
  Heard heard;
  train(request("run", 1), heard);
  fs::copy_file(at("run/checkpoints/last.train.onnx"), at("alone.train.onnx"));
  Request q = request("other", 2);
  q.model.clear();
  q.resume = at("alone.train.onnx");
  Settings s = settings(q);
  q.start = settings_of_run(q.resume, s, heard);
  ASSERT_NE(q.start, nullptr);
  EXPECT_EQ(s.value("batch"), "8");
  fs::remove(q.resume);
  run::Run run(q, s, heard);
  EXPECT_EQ(run.at().epoch, 1);
  run.open_folder(heard);
  EXPECT_EQ(run.fit(stop_, false, heard).at.epoch, 2);
  EXPECT_EQ(settings_of_run(at("run"), s, heard), nullptr);  // its config.toml has all
}

// What the data says about the loss changes the training, not the file that it was made from.
TEST_F(WholeRun, TheModelFileIsReadOnce) {
  struct Removes : Heard {
    void on_note(const std::string& label, const std::string& text) override {
      Heard::on_note(label, text);
      if (label == "data") fs::remove(path);
    }
    std::string path;
  } heard;
  heard.path = at("one.onnx");
  save_model(parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
line (float[N,4] x) => (float[N,1] score) <)",
                             testing::weights("w", {4, 1}, 1), R"(>
{ score = MatMul (x, w) })"),
                         all_ops()),
             heard.path, all_ops());
  write_npz(at("two.npz"), {{"x", x_}, {"y", testing::random_ints({50}, 0, 2, 6)}});
  Request q = request("run", 1);
  q.model = heard.path;
  q.data.data = at("two.npz");
  train(q, heard);
  EXPECT_FALSE(fs::exists(heard.path));
  EXPECT_TRUE(heard.has("loss: bce_logits, because target 'y' has two values"));
  EXPECT_FALSE(heard.has("loss: mse"));
}

TEST_F(WholeRun, ResumedIsUninterrupted) {
  Heard heard;
  train(request("whole", 4), heard);
  Request part = request("part", 4);
  part.fit.max_steps = 9;  // inside the second epoch; the schedule is that of the whole run
  part.recipe = [] {
    Recipe r;
    r.schedule.kind = "cosine";
    r.schedule.numbers["total_steps"] = 24;  // 45 rows in batches of 8, four times
    r.optimizer.lr = 0.1;
    return r;
  };
  train(part, heard);
  part.resume = part.out;
  part.fit.max_steps = 0;
  const FitResult r = train(part, heard);
  EXPECT_EQ(r.at.step, 24u);
  EXPECT_EQ(state(at("part/checkpoints/last.train.onnx")),
            state(at("whole/checkpoints/last.train.onnx")));
}

TEST_F(WholeRun, AScheduleIsStretchedOverMoreEpochs) {
  Heard heard;
  train(request("run", 2), heard);
  EXPECT_FALSE(heard.has("schedule:"));
  Request more = request("run", 4);
  more.resume = more.out;
  const FitResult r = train(more, heard);
  EXPECT_TRUE(heard.has("schedule: cosine over 24 updates now"));
  EXPECT_NEAR(r.epochs[0].lr, 0.1 * (1 + std::cos(0.75 * M_PI)) / 2, 1e-7);
  EXPECT_NEAR(r.epochs[1].lr, 0, 1e-7);
}

TEST_F(WholeRun, ACheckpointAsModelGoesOn) {
  Heard heard;
  train(request("run", 2), heard);
  Request again = request("run", 3);
  again.model = at("run/checkpoints/last.train.onnx");
  const FitResult r = train(again, heard);
  ASSERT_EQ(r.epochs.size(), 1u);
  EXPECT_EQ(r.epochs[0].epoch, 3);
  EXPECT_FALSE(fs::exists(at("run/earlier-001")));
  train(request("run", 1), heard);  // another run: that one is set aside
  EXPECT_TRUE(heard.has("kept: the run that was in"));
  EXPECT_TRUE(fs::exists(at("run/earlier-001/checkpoints/last.train.onnx")));
}

TEST_F(WholeRun, EvaluateAndPredict) {
  Heard heard;
  train(request("run", 2), heard);
  DataRequest d;
  d.data = at("d.npz");
  Observer silent;
  const Predictions p = predict(at("run"), d, 7, {}, silent);
  ASSERT_EQ(p.outputs.size(), 1u);
  ASSERT_EQ(p.outputs[0].rows.shape(), (Shape{50, 3}));
  EXPECT_TRUE(p.outputs[0].has_classes);
  const std::vector<double> scores = p.outputs[0].rows.to_doubles();
  const std::vector<int64_t> labels = y_.to_ints();
  double right = 0;
  for (size_t i = 0; i < 50; ++i) {
    const auto row = scores.begin() + std::ptrdiff_t(3 * i);
    right += std::max_element(row, row + 3) - row == labels[i];
  }
  const Evaluation e = evaluate(at("run"), "best", d, DataPart::kTrain, 16, {}, heard);
  EXPECT_EQ(e.rows, 50);
  ASSERT_EQ(e.metrics.values()[0].first, "accuracy");
  EXPECT_DOUBLE_EQ(e.metrics.values()[0].second, right / 50);
}

// ---- data that is handed over

class GivenRun : public WholeRun {
 protected:
  run::Run begin() {
    Recipe r;
    r.optimizer.lr = 0.1;
    auto m = std::make_shared<const Model>(prepare(plain_model(), r, all_ops()));
    return run::Run(std::make_unique<Training>(std::move(m), 7), 7);
  }
  FitCall call(const std::string& out, int64_t epochs) const {
    FitCall c;
    c.fit.epochs = epochs;
    c.fit.batch = 16;
    c.valid = 0.2;
    c.given = {"epochs", "batch", "valid", "out"};
    if (!out.empty()) c.out = at(out);
    c.keep_bytes = 1 << 20;
    return c;
  }
  Given given() const {
    Given g;
    g.data = &data_;
    return g;
  }
  Dataset data_ = Dataset::from_tensors({{"x", x_}, {"y", y_}});
  Observer silent_;
};

TEST_F(GivenRun, AResumedRunKnowsDataAndSettings) {
  run::Run first = begin();
  first.fit(given(), call("run", 2), stop_, silent_);
  run::Run resumed(at("run"), {});
  FitCall more;
  more.fit.epochs = 4;
  more.given = {"epochs"};
  more.out = at("run");
  more.keep_bytes = 1 << 20;
  const FitResult r = resumed.fit({}, more, stop_, silent_);
  EXPECT_EQ(r.epochs.size(), 2u);
  run::Run whole = begin();
  whole.fit(given(), call("", 4), stop_, silent_);
  for (const std::string& name : whole.training().state().names())
    EXPECT_EQ(whole.training().state().get(name).to_doubles(),
              resumed.training().state().get(name).to_doubles())
        << name;
  const std::string config = read_file(at("run/config.toml"), 1 << 20);
  EXPECT_NE(config.find("batch = 16"), std::string::npos);
  EXPECT_NE(config.find("# run"), std::string::npos);
}

TEST_F(GivenRun, RunsOfOlderVersionsAreRead) {
  run::Run first = begin();
  first.fit(given(), call("run", 1), stop_, silent_);
  fs::remove(at("run/config.toml"));
  write_file(at("run/fit.json"), R"({"batch_size": 5, "valid": 0.25, "shuffle": false})");
  FitCall c;
  std::string file;
  recall(Folder(at("run")), c, file);
  EXPECT_EQ(c.fit.batch, 5);
  EXPECT_EQ(c.valid, 0.25);
  EXPECT_FALSE(c.fit.shuffle);
  write_file(at("run/fit.json"), "{");
  try {
    recall(Folder(at("run")), c, file);
    ADD_FAILURE() << "a damaged file was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT4202");
  }
}

TEST_F(GivenRun, LargeDataIsNotKept) {
  FitCall c = call("run", 1);
  c.keep_bytes = 100;
  run::Run first = begin();
  first.fit(given(), c, stop_, silent_);
  EXPECT_FALSE(fs::exists(at("run/data.npz")));
  run::Run resumed(at("run"), {});
  try {
    resumed.fit({}, c, stop_, silent_);
    ADD_FAILURE() << "there is no data";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1155");
  }
}

TEST_F(GivenRun, FitAgainGoesOnInItsFolderAndLeavesOthersAlone) {
  run::Run one = begin();
  one.fit(given(), call("run", 1), stop_, silent_);
  const FitResult r = one.fit(given(), call("run", 1), stop_, silent_);
  EXPECT_EQ(r.epochs[0].epoch, 2);
  EXPECT_FALSE(fs::exists(at("run/earlier-001")));
  begin().fit(given(), call("run", 1), stop_, silent_);
  EXPECT_TRUE(fs::exists(at("run/earlier-001/data.npz")));
  // data that does not fit is refused before anything is moved
  const Dataset wrong = Dataset::from_tensors({{"x", x_}});
  Given bad;
  bad.data = &wrong;
  EXPECT_THROW(begin().fit(bad, call("run", 1), stop_, silent_), Error);
  EXPECT_FALSE(fs::exists(at("run/earlier-002")));
}

// Two batches, then an end.
class TwoBatches : public BatchStream {
 public:
  TwoBatches(const Tensor& x, const Tensor& y) : x_(x), y_(y) {}
  void begin(int64_t) override { left_ = 2; }
  bool next(Values& out) override {
    out = {{"x", x_}, {"label", y_}};
    return left_-- > 0;
  }

 private:
  Tensor x_, y_;
  int left_ = 0;
};

TEST_F(GivenRun, AStreamIsARunAsAnyOther) {
  TwoBatches stream(x_, y_);
  Given g;
  g.stream = &stream;
  const Dataset valid = Dataset::from_tensors({{"x", x_}, {"y", y_}});
  g.valid = &valid;
  FitCall c = call("run", 2);
  c.valid = 0;
  run::Run run = begin();
  FitResult r = run.fit(g, c, stop_, silent_);
  EXPECT_EQ(r.at.step, 4u);
  EXPECT_TRUE(r.epochs[1].has_valid);
  EXPECT_TRUE(fs::exists(at("run/report.html")) && fs::exists(at("run/model.onnx")));
  EXPECT_FALSE(fs::exists(at("run/data.npz")));
  run::Run resumed(at("run"), {});  // epochs of a stream are on top
  r = resumed.fit(g, c, stop_, silent_);
  EXPECT_EQ(r.epochs.back().epoch, 4);
  EXPECT_EQ(Folder(at("run")).logged_epochs(), 4);
  c.valid = 0.1;
  g.valid = nullptr;
  EXPECT_THROW(resumed.fit(g, c, stop_, silent_), Error);
}

}  // namespace
}  // namespace onnxtrain::run
