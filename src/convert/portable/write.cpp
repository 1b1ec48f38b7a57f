// The files of a step: models, manifest, initial state.
#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "convert/portable/manifest.hpp"
#include "core/file.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {

namespace {

namespace fs = std::filesystem;

const char* kManifestKey = "onnxtrain.step_manifest";

// Values as initializers beside the inputs: a runtime uses them when nothing is fed.
void embed(Model& m, const std::vector<std::pair<std::string, Tensor>>& state) {
  Graph& g = m.edit_main();
  for (const auto& [name, t] : state) {
    const ValueId v = g.find(name);
    if (v == kNone) continue;
    g.value(v).constant = t;
    g.value(v).initializer = true;
  }
}

// Sections with numbers beside each other; the same counter of random numbers in all of them.
std::string file_of(const fs::path& path, int section, bool all) {
  if (!all) return path.filename().string();
  return cat(path.stem().string(), ".", section, path.extension().string());
}

}  // namespace

WrittenStep write_step(const Model& m, int which, const StepOptions& o, const std::string& path,
                       const OpTable& ops) {
  WrittenStep w;
  const fs::path to = path;
  const bool all = which < 0;
  std::vector<std::string> names;
  for (int k = all ? 0 : which; k < (all ? int(m.training.size()) : which + 1); ++k) {
    w.steps.push_back(make_step(m, k, o, ops));
    names.push_back(file_of(to, k, all));
    for (const std::string& line : w.steps.back().warnings) w.warnings.push_back(line);
  }
  if (w.steps.empty())
    usage_error("OT1261", "the file has no training section",
                "write one first:  onnxtrain prepare MODEL -o MODEL.train.onnx");
  const std::string state_file = to.stem().string() + ".state.safetensors";
  w.manifest = portable::manifest(w.steps, names, m, o, state_file);
  const auto state = portable::initial_state(w.steps, m);
  if (o.embed_state)
    w.warnings.push_back(
        "the initial state is in the file as defaults of inputs: IREE's importer drops such "
        "inputs, "
        "TensorRT and OpenVINO may fold them; training then stands still. Feed the state there.");
  for (size_t k = 0; k < w.steps.size(); ++k) {
    Model step = w.steps[k].model;
    if (o.embed_state) embed(step, state);
    std::erase_if(step.metadata, [](const auto& e) { return e.first.starts_with("onnxtrain."); });
    step.metadata[kManifestKey] = w.manifest;
    const std::string file = (to.parent_path() / names[k]).string();
    save_model(step, file, ops);
    w.files.push_back(file);
  }
  const std::string state_path = (to.parent_path() / state_file).string();
  write_file(state_path, portable::safetensors(state));
  w.files.push_back(state_path);
  const std::string manifest_path =
      (to.parent_path() / (to.stem().string() + ".manifest.json")).string();
  write_file(manifest_path, w.manifest + "\n");
  w.files.push_back(manifest_path);
  return w;
}

StepOptions step_options_from_json(const std::string& json) {
  StepOptions o;
  const nlohmann::json j =
      json.empty() ? nlohmann::json::object() : nlohmann::json::parse(json, nullptr, false);
  if (!j.is_object()) usage_error("OT1262", "the options of a step are not a JSON object");
  for (const auto& [key, v] : j.items()) {
    try {
      if (key == "form")
        o.form = v.get<std::string>();
      else if (key == "for")
        o.runtime = v.get<std::string>();
      else if (key == "opset")
        o.opset = v.get<int>();
      else if (key == "indices")
        o.indices = v.get<std::string>();
      else if (key == "recurrent")
        o.recurrent = v.get<std::string>();
      else if (key == "random")
        o.random = v.get<std::string>();
      else if (key == "embed_state")
        o.embed_state = v.get<bool>();
      else if (key == "dims")
        for (const auto& [name, sizes] : v.items())
          o.dims[name] = sizes.is_array() ? sizes.get<std::vector<int64_t>>()
                                          : std::vector<int64_t>{sizes.get<int64_t>()};
      else
        usage_error("OT1262", cat("there is no option '", key,
                                  "' of a step; known: form, for, opset, dims, indices, recurrent, "
                                  "random, embed_state"));
    } catch (const nlohmann::json::exception&) {
      usage_error("OT1262", cat("the option '", key, "' of a step has the wrong type"));
    }
  }
  return o;
}

}  // namespace onnxtrain
