// Saving and loading of checkpoints.
#include "train/checkpoint.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/file.hpp"
#include "core/random.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {

namespace {

constexpr const char* kStep = "onnxtrain.step";
constexpr const char* kChecksum = "onnxtrain.checksum.";

std::string hex(uint64_t v) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(v));
  return text;
}

// Doubles as hexadecimal floats: exact.
std::string exact(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", v);
  return text;
}

uint64_t checksum(const Tensor& t) { return hash64(t.data(), t.bytes(), uint64_t(t.dtype())); }

double number(const Model& m, const std::string& key) {
  auto it = m.metadata.find(key);
  return it == m.metadata.end() ? 0 : std::strtod(it->second.c_str(), nullptr);
}

uint64_t integer(const Model& m, const std::string& key) {
  auto it = m.metadata.find(key);
  return it == m.metadata.end() ? 0 : std::strtoull(it->second.c_str(), nullptr, 10);
}

// Empty when every checksum fits, otherwise what is wrong.
std::string damage(const Model& m) {
  const std::string prefix = kChecksum;
  for (const auto& [key, value] : m.metadata) {
    if (key.rfind(prefix, 0) != 0) continue;
    std::string name = key.substr(prefix.size());
    const Tensor* t = m.initializer(name);
    if (!t) return cat("tensor '", name, "' is missing");
    if (hex(checksum(*t)) != value) return cat("tensor '", name, "' does not match its checksum");
  }
  return {};
}

}  // namespace

bool is_checkpoint(const Model& m) { return m.metadata.count(kStep) != 0; }

void strip_checkpoint_metadata(Model& m) {
  std::erase_if(m.metadata, [](const auto& e) {
    const std::string& k = e.first;
    return k == kStep || k.rfind(kChecksum, 0) == 0 || k == "onnxtrain.seed" ||
           k == "onnxtrain.epoch" || k == "onnxtrain.batch" || k == "onnxtrain.loss_sum" ||
           k == "onnxtrain.rows" || k == "onnxtrain.best" || k == "onnxtrain.best_epoch";
  });
}

void save_checkpoint(const Training& t, const Position& p, const std::string& path) {
  Model m = t.snapshot();
  strip_checkpoint_metadata(m);
  m.metadata[kStep] = std::to_string(p.step);
  m.metadata["onnxtrain.seed"] = std::to_string(p.seed);
  m.metadata["onnxtrain.epoch"] = std::to_string(p.epoch);
  m.metadata["onnxtrain.batch"] = std::to_string(p.batch);
  m.metadata["onnxtrain.loss_sum"] = exact(p.loss_sum);
  m.metadata["onnxtrain.rows"] = std::to_string(p.rows);
  m.metadata["onnxtrain.best"] = exact(p.best);
  m.metadata["onnxtrain.best_epoch"] = std::to_string(p.best_epoch);
  for (const auto& name : t.state().names())
    m.metadata[kChecksum + name] = hex(checksum(t.state().get(name)));
  AtomicWriter w(path);
  w.write(serialize_model(m, all_ops()));
  w.commit(std::filesystem::exists(path) ? path + ".previous" : std::string());
}

Model load_checkpoint(const std::string& path, Position& p) {
  std::string problem;
  try {
    Model m = load_model(path, all_ops());
    problem = damage(m);
    if (problem.empty()) {
      p.step = integer(m, kStep);
      p.seed = integer(m, "onnxtrain.seed");
      p.epoch = int64_t(integer(m, "onnxtrain.epoch"));
      p.batch = int64_t(integer(m, "onnxtrain.batch"));
      p.loss_sum = number(m, "onnxtrain.loss_sum");
      p.rows = int64_t(integer(m, "onnxtrain.rows"));
      p.best = number(m, "onnxtrain.best");
      p.best_epoch = int64_t(integer(m, "onnxtrain.best_epoch"));
      return m;
    }
  } catch (const Error& e) {
    if (!std::filesystem::exists(path)) throw;
    problem = e.message();
  }
  std::string previous = path + ".previous", hint;
  try {
    if (std::filesystem::exists(previous) && damage(load_model(previous, all_ops())).empty())
      hint = cat("the one before it is intact:  cp ", previous, " ", path);
  } catch (const Error&) {
    // then there is nothing to offer
  }
  throw Error(ErrorKind::kCheckpoint, "OT4201",
              cat("checkpoint '", path, "' is damaged: ", problem), hint);
}

}  // namespace onnxtrain
