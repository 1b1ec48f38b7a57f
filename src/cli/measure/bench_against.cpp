// Writes the parts into a folder of its own, lets the Python side run them in turn and reads what
// it measured.
#include "cli/measure/bench_against.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/processes/python_side.hpp"
#include "convert/lower.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "data/arrays/npz_file.hpp"
#include "onnx/onnx.hpp"
#include "op/op.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "onnxtrain-bench-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw Error(ErrorKind::kFailed, "OT4001", "cannot make a temporary folder '" + name + "'",
                  "TMPDIR names another place for it");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

NamedTensors dense(const Feeds& feeds) {
  NamedTensors out;
  for (const auto& [name, v] : feeds) {
    const Tensor* t = std::get_if<Tensor>(&v);
    if (!t)
      usage_error("OT0010", "input '" + name + "' is not a tensor, --against cannot pass it on",
                  "leave --against out");
    out.emplace_back(name, *t);
  }
  return out;
}

// The step as an ordinary inference model, which onnxruntime can run.
json flat_step(const Model& m, const std::string& path) {
  try {
    Model lowered = m.metadata.contains("onnxtrain.lowered") ? m : lower(m, all_ops());
    save_model(flatten_step(lowered), path, all_ops());
    json bindings = json::array();
    for (const auto& [state, output] : lowered.training.at(0).update_binding)
      bindings.push_back({state, output});
    return {{"model", path}, {"bindings", bindings}};
  } catch (const Error& e) {
    return {{"left_out", std::string("this step has no lowered form: ") + e.what()}};
  }
}

}  // namespace

std::vector<std::string> peer_names(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string name; std::getline(in, name, ',');) {
    if (name == "onnxruntime") name = "ort";
    if (name == "pytorch") name = "torch";
    if (name != "torch" && name != "ort")
      usage_error("OT0010", "--against knows torch and ort, not '" + name + "'",
                  "onnxtrain bench model.onnx --against torch,ort");
    out.push_back(name);
  }
  return out;
}

json bench_against(const std::vector<std::string>& peers, const std::vector<BenchPart>& parts,
                   int threads, double seconds) {
  ScratchFolder folder;
  json spec = {{"peers", peers}, {"threads", threads}, {"seconds", seconds}};
  for (const BenchPart& p : parts) {
    const std::string base = folder / p.name;
    save_model(*p.model, base + ".onnx", all_ops());
    write_npz(base + ".npz", dense(p.feeds));
    json& part = spec["parts"][p.name] = {{"model", base + ".onnx"}, {"feeds", base + ".npz"}};
    const bool ort = std::find(peers.begin(), peers.end(), "ort") != peers.end();
    if (ort && !p.model->training.empty()) part["flat"] = flat_step(*p.model, base + ".flat.onnx");
  }
  write_file(folder / "spec.json", spec.dump());
  const int code = run_python("onnxtrain.against", {folder / "spec.json", folder / "result.json"});
  if (code < 0)
    usage_error("OT1731", cat("--against needs Python, and ", missing_python()),
                "install the package beside the frameworks, or name the interpreter in "
                "ONNXTRAIN_PYTHON");
  if (code != 0)
    throw Error(ErrorKind::kFailed, "OT1737", "the comparison with other runtimes failed");
  return json::parse(read_file(folder / "result.json", 1 << 20));
}

void print_against(const json& found) {
  for (const auto& [part, runtimes] : found.items()) {
    std::printf("%-10s %12s %12s %12s %10s\n", part.c_str(), "ms per step", "least", "most",
                "onnxtrain");
    for (const auto& [name, r] : runtimes.items()) {
      if (r.contains("left_out")) {
        std::printf("  %-10s left out: %s\n", name.c_str(),
                    r["left_out"].get<std::string>().c_str());
        continue;
      }
      std::printf("  %-10s %10.4f %12.4f %12.4f", name.c_str(), r["ms"].get<double>(),
                  r["ms_least"].get<double>(), r["ms_most"].get<double>());
      if (r.contains("ratio")) std::printf(" %9.2fx", r["ratio"].get<double>());
      std::printf("\n");
    }
  }
}

}  // namespace onnxtrain::cli
