// An engine in a Python process.
#include "cli/processes/engine_process.hpp"

#include <cstdlib>
#include <filesystem>

#include "cli/common/narration.hpp"
#include "cli/processes/python_process.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::cli {

namespace {

using Json = PythonProcess::Json;
using Named = PythonProcess::Named;

class EngineProcess final : public run::Engine {
 public:
  EngineProcess(const std::string& spec, int threads)
      : python_("onnxtrain.engines.serve", {spec, "", std::to_string(threads)},
                {cat("the engine '", spec, "'"), "OT1275", " before it had started",
                 cat("it runs in Python and needs the packages onnxtrain and ",
                     spec.substr(0, spec.find(':')), ":  pip install   or leave --engine out")}) {
    const Json hello = python_.receive().first;
    python_.set_failure({cat("the engine '", spec, "'"), "OT1275",
                         "; what was saved before is whole",
                         "go on without it:  onnxtrain train --resume RUN --engine native"});
    say("engine", cat(hello.value("engine", spec), " on ", hello.value("device", "")));
  }

  void begin(const Model& training, uint64_t step) override {
    namespace fs = std::filesystem;
    std::string folder = (fs::temp_directory_path() / "onnxtrain-XXXXXX").string();
    if (!mkdtemp(folder.data()))
      throw Error(ErrorKind::kFailed, "OT1275", cat("cannot make a folder in ", folder));
    const std::string path = folder + "/training.onnx";
    auto remove = [&] {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    };
    try {
      save_model(training, path, all_ops());
      ask({{"do", "begin"}, {"model", path}, {"step", step}});
    } catch (...) {
      remove();
      throw;
    }
    remove();
  }
  double step(const Feeds& feeds) override {
    const Named got = ask({{"do", "step"}}, tensors_of(feeds)).second;
    if (got.size() != 1) python_.gone("sent no loss");
    return got[0].second.to_doubles()[0];
  }
  Named state() override { return ask({{"do", "state"}}).second; }
  bool undo() override { return ask({{"do", "undo"}}).first.value("undone", false); }

  run::Evaluated evaluate(const Feeds& feeds) override {
    const auto [said, values] = ask({{"do", "evaluate"}}, tensors_of(feeds));
    if (said.contains("refused")) return {{}, {}, said.value("refused", "")};
    return run::evaluated(values);
  }

 private:
  PythonProcess::Message ask(Json message, const Named& tensors = {}) {
    PythonProcess::Message reply = python_.ask(std::move(message), tensors);
    for (const Json& note : reply.first.value("notes", Json::array()))
      warn(note.at(0).get<std::string>(), note.at(1).get<std::string>());
    return reply;
  }
  static Named tensors_of(const Feeds& feeds) {
    Named tensors;
    for (const auto& [name, value] : feeds) {
      const Tensor* t = std::get_if<Tensor>(&value);
      if (!t || t->dtype() == DType::kString)
        data_error("OT2113", cat("input '", name, "' is no tensor of numbers: engines take none"),
                   "leave --engine out");
      tensors.emplace_back(name, *t);
    }
    return tensors;
  }
  PythonProcess python_;
};

}  // namespace

std::unique_ptr<run::Engine> start_engine(const std::string& spec, int threads) {
  return std::make_unique<EngineProcess>(spec, threads);
}

}  // namespace onnxtrain::cli
