// An engine in a Python process.
#include "cli/engine_process.hpp"

#include <cstdlib>
#include <filesystem>

#include "cli/narration.hpp"
#include "cli/python_process.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::cli {

namespace {

using Json = PythonProcess::Json;
using Named = PythonProcess::Named;

class Process final : public run::Engine {
 public:
  Process(const std::string& spec, int threads)
      : python_("onnxtrain.engines.serve", {spec, "", std::to_string(threads)},
                {cat("the engine '", spec, "'"), "OT1275", "; what was saved before is whole",
                 "go on without it:  onnxtrain train --resume RUN --engine native"}) {
    const Json hello = python_.receive().first;
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
      python_.ask({{"do", "begin"}, {"model", path}, {"step", step}}, {});
    } catch (...) {
      remove();
      throw;
    }
    remove();
  }
  double step(const Feeds& feeds) override {
    Named tensors;
    for (const auto& [name, value] : feeds) {
      const Tensor* t = std::get_if<Tensor>(&value);
      if (!t || t->dtype() == DType::kString)
        data_error("OT2113", cat("input '", name, "' is no tensor of numbers: engines take none"));
      tensors.emplace_back(name, *t);
    }
    const Named got = python_.ask({{"do", "step"}}, tensors).second;
    if (got.size() != 1) python_.gone("sent no loss");
    return got[0].second.to_doubles()[0];
  }
  Named state() override { return python_.ask({{"do", "state"}}, {}).second; }
  bool undo() override { return python_.ask({{"do", "undo"}}, {}).first.value("undone", false); }

 private:
  PythonProcess python_;
};

}  // namespace

std::unique_ptr<run::Engine> start_engine(const std::string& spec, int threads) {
  return std::make_unique<Process>(spec, threads);
}

}  // namespace onnxtrain::cli
