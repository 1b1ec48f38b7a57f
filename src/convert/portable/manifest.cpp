// The manifest of a step, and its initial state as safetensors.
#include "convert/portable/manifest.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/version.hpp"

namespace onnxtrain::portable {

namespace {

using Json = nlohmann::ordered_json;

const char* numpy_name(DType t) {
  switch (t) {
    case DType::kFloat:
      return "float32";
    case DType::kDouble:
      return "float64";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt64:
      return "int64";
    case DType::kInt32:
      return "int32";
    case DType::kInt16:
      return "int16";
    case DType::kInt8:
      return "int8";
    case DType::kUint8:
      return "uint8";
    case DType::kBool:
      return "bool";
    default:
      return "";
  }
}

const char* safetensors_name(DType t) {
  switch (t) {
    case DType::kFloat:
      return "F32";
    case DType::kDouble:
      return "F64";
    case DType::kFloat16:
      return "F16";
    case DType::kBFloat16:
      return "BF16";
    case DType::kInt64:
      return "I64";
    case DType::kInt32:
      return "I32";
    case DType::kInt16:
      return "I16";
    case DType::kInt8:
      return "I8";
    case DType::kUint8:
      return "U8";
    case DType::kBool:
      return "BOOL";
    default:
      return nullptr;
  }
}

Json shape_of(const TypeInfo& t) {
  if (!t.shape) return nullptr;
  Json s = Json::array();
  for (const Dim& d : *t.shape) {
    if (d.known())
      s.push_back(d.value);
    else
      s.push_back(d.symbol.empty() ? Json("?") : Json(d.symbol));
  }
  return s;
}

Json section(const StepModel& s, const std::string& file, const Model& m) {
  Json j;
  j["model"] = file;
  j["section"] = s.section;
  j["nodes"] = s.model.main.nodes.size();
  j["inputs"] = Json::array();
  for (const StepInput& i : s.inputs) {
    Json one{{"name", i.name},
             {"role", i.role},
             {"type", numpy_name(i.type.elem)},
             {"shape", shape_of(i.type)}};
    if (i.range) {
      one["range"] = {{"least", i.range->least}, {"most", i.range->most}};
      if (i.range->ignored) one["range"]["ignored"] = *i.range->ignored;
    }
    j["inputs"].push_back(std::move(one));
  }
  j["outputs"] = Json::array();
  for (const StepOutput& o : s.outputs) {
    const ValueId v = s.model.main.find(o.name);
    const TypeInfo t = v == kNone ? TypeInfo{} : s.model.main.value(v).type;
    j["outputs"].push_back(
        {{"name", o.name}, {"role", o.role}, {"type", numpy_name(t.elem)}, {"shape", shape_of(t)}});
    if (o.role != "loss") continue;
    j["loss"] = {{"output", o.name}};
    auto said = [&](const char* key, const char* as) {
      const auto it = m.metadata.find(key);
      if (s.section == 0 && it != m.metadata.end()) j["loss"][as] = it->second;
    };
    said("onnxtrain.loss", "kind");
    said("onnxtrain.output", "of");
  }
  j["feedback"] = Json::array();
  for (const auto& [from, to] : s.feedback)
    j["feedback"].push_back({{"output", from}, {"input", to}});
  return j;
}

std::string random_of(const std::vector<StepModel>& steps) {
  for (const StepModel& s : steps)
    for (const StepInput& i : s.inputs) {
      if (i.role == "counter") return "counter";
      if (i.role == "random") return "input";
    }
  return "none";
}

Tensor in_type(const Tensor& t, DType to) {
  if (t.dtype() == to || to != DType::kInt32 || t.dtype() != DType::kInt64) return t;
  Tensor s(to, t.shape());
  const std::vector<int64_t> all = t.to_ints();
  std::transform(all.begin(), all.end(), s.as<int32_t>(), [](int64_t v) { return int32_t(v); });
  return s;
}

}  // namespace

std::string manifest(const std::vector<StepModel>& steps, const std::vector<std::string>& names,
                     const Model& m, const StepOptions& o, const std::string& state_file) {
  Json j;
  j["format"] = "onnxtrain.step";
  j["version"] = 1;
  j["producer"] = cat("onnxtrain ", version());
  j["form"] = o.form;
  j["for"] = o.runtime.empty() ? "any" : o.runtime;
  const auto import = steps[0].model.opsets.find("");
  j["opset"] = import == steps[0].model.opsets.end() ? o.opset : import->second;
  j["sections"] = Json::array();
  for (size_t k = 0; k < steps.size(); ++k) j["sections"].push_back(section(steps[k], names[k], m));
  j["state"] = {{"file", state_file}, {"embedded", o.embed_state}};
  j["random"] = {{"kind", random_of(steps)}};
  return j.dump(1);
}

std::vector<std::pair<std::string, Tensor>> initial_state(const std::vector<StepModel>& steps,
                                                          const Model& m) {
  std::vector<std::pair<std::string, Tensor>> all;
  auto has = [&](const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const auto& p) { return p.first == name; });
  };
  for (const StepModel& s : steps) {
    for (const StepInput& i : s.inputs) {
      if ((i.role != "state" && i.role != "learning_rate") || has(i.name)) continue;
      if (const Tensor* t = m.initializer(i.name))
        all.emplace_back(i.name, in_type(*t, i.type.elem));
    }
    for (const auto& [name, value] : s.added_state)
      if (!has(name)) all.emplace_back(name, value);
  }
  return all;
}

std::string safetensors(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  Json head = Json::object();
  uint64_t at = 0;
  for (const auto& [name, t] : tensors) {
    const char* type = safetensors_name(t.dtype());
    if (!type)
      model_error("OT1260",
                  cat("state variable '", name, "' is ", dtype_name(t.dtype()),
                      ", which safetensors files cannot hold"),
                  "--form compact --embed-state  keeps the state in the model");
    const uint64_t bytes = uint64_t(t.size()) * dtype_size(t.dtype());
    head[name] = {{"dtype", type}, {"shape", t.shape()}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = head.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  for (size_t k = 0; k < 8; ++k) out[k] = char((uint64_t(text.size()) >> (8 * k)) & 255);
  out += text;
  for (const auto& [name, t] : tensors)
    out.append(static_cast<const char*>(t.data()), size_t(t.size()) * dtype_size(t.dtype()));
  return out;
}

}  // namespace onnxtrain::portable
