// Saving and loading of checkpoints. Two kinds of checksums: one per initializer, so that damage
// can be named, and one over the whole file (its own digits taken as zeros), so that nothing else -
// a node, an attribute, the position - changes unseen either.
#include "run/folder/checkpoint.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/file.hpp"
#include "core/random.hpp"
#include "core/shell.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;

constexpr const char* kStep = "onnxtrain.step";
constexpr const char* kBlocks = "onnxtrain.micro_blocks";
constexpr const char* kNorm = "onnxtrain.batch_norm";
constexpr std::string_view kTensor = "onnxtrain.checksum.";
constexpr std::string_view kFile = "onnxtrain.file_checksum";
constexpr size_t kDigits = 16;
constexpr const char* kPosition[] = {"onnxtrain.step",
                                     "onnxtrain.seed",
                                     "onnxtrain.epoch",
                                     "onnxtrain.batch",
                                     "onnxtrain.loss_sum",
                                     "onnxtrain.rows",
                                     "onnxtrain.best",
                                     "onnxtrain.best_epoch",
                                     "onnxtrain.watched",
                                     "onnxtrain.best_loss",
                                     "onnxtrain.settings",
                                     "onnxtrain.data",
                                     kBlocks,
                                     kNorm};

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

uint64_t checksum(const Tensor& t) {
  uint64_t seed = uint64_t(t.dtype());
  for (int64_t d : t.shape()) seed = hash64(&d, sizeof d, seed);
  if (t.dtype() != DType::kString) return hash64(t.data(), t.bytes(), seed);
  return seed;  // text is covered by the checksum of the file
}

std::string text_of(const Model& m, const std::string& key) {
  auto it = m.metadata.find(key);
  return it == m.metadata.end() ? std::string() : it->second;
}
double number(const Model& m, const std::string& key) {
  return std::strtod(text_of(m, key).c_str(), nullptr);
}
uint64_t integer(const Model& m, const std::string& key) {
  return std::strtoull(text_of(m, key).c_str(), nullptr, 10);
}

// The last place of the key; rfind would look at every byte of every tensor by itself.
size_t last_key(std::string_view bytes) {
  size_t end = bytes.size() < kFile.size() ? 0 : bytes.size() - kFile.size() + 1;
  while (end > 0) {
    const void* found = memrchr(bytes.data(), kFile[0], end);
    if (found == nullptr) break;
    end = size_t(static_cast<const char*>(found) - bytes.data());
    if (bytes.substr(end, kFile.size()) == kFile) return end;
  }
  return std::string::npos;
}

// Where the digits of the file's own checksum stand: after the key, a tag and a length.
size_t digits_at(std::string_view bytes) {
  size_t key = last_key(bytes);
  if (key == std::string::npos) return std::string::npos;
  size_t at = key + kFile.size() + 2;
  return at + kDigits <= bytes.size() && size_t(bytes[at - 1]) == kDigits ? at : std::string::npos;
}

// Writes the model with the checksum of the file in its place. It is read twice, because the
// digits stand before some of what they are made of; it is never in memory as a whole.
void write_with_checksum(ModelBytes& model, AtomicWriter& file) {
  Hash64 hash;
  int pieces = 0, marked = -1;  // the last piece with the mark
  model.each([&](std::string_view v) {
    hash.add(v.data(), v.size());
    if (digits_at(v) != std::string::npos) marked = pieces;
    ++pieces;
  });
  OT_ASSERT(marked >= 0);
  pieces = 0;
  model.each([&](std::string_view v) {
    if (pieces++ != marked) return file.write(v);
    std::string changed(v);
    changed.replace(digits_at(v), kDigits, hex(hash.value()));
    file.write(changed);
  });
}

// The files that may hold the tensors of a large checkpoint.
std::vector<std::string> data_files(const std::string& path) {
  return {path + ".0.data", path + ".1.data", path + ".2.data"};
}

// Does the checkpoint at `path` or the one before it name this data file?
bool in_use(const std::string& data, const std::string& path) {
  const std::string name = fs::path(data).filename().string();
  for (const std::string& model : {path, path + ".previous"}) {
    if (!fs::exists(model)) continue;
    if (read_file(model, kMaxModelBytes).find(name) != std::string::npos) return true;
  }
  return false;
}

std::string unused_data_file(const std::string& path) {
  for (const std::string& file : data_files(path))
    if (!fs::exists(file) || !in_use(file, path)) return file;
  OT_ASSERT(false);  // two checkpoints, three files
}

void remove_unused_data(const std::string& path) {
  std::error_code e;
  for (const std::string& file : data_files(path))
    if (fs::exists(file) && !in_use(file, path)) fs::remove(file, e);
}

// Where the digits stand in a file; npos when it has none. Read in parts that overlap, from the
// end.
uint64_t digits_at(const InputFile& file) {
  constexpr uint64_t kPart = 1 << 20, kOverlap = kFile.size() + 2 + kDigits;
  std::string part;
  for (uint64_t end = file.size();;) {
    const uint64_t begin = end > kPart ? end - kPart : 0;
    part.resize(size_t(end - begin));
    file.read_at(begin, part.data(), part.size());
    if (last_key(part) != std::string::npos) {
      const size_t at = digits_at(std::string_view(part));
      return at == std::string::npos ? at : begin + at;
    }
    if (begin == 0) return std::string::npos;
    end = begin + kOverlap;
  }
}

// Empty when the file is what was written, otherwise what is wrong with it.
std::string damage_of_file(const std::string& path) {
  InputFile file(path, ErrorKind::kModel);
  const uint64_t digits = digits_at(file);
  if (digits == std::string::npos)
    return "it has no checksum of its own, so it is no checkpoint or its marks are gone";
  std::string written(kDigits, ' '), part;
  file.read_at(digits, written.data(), kDigits);
  Hash64 hash;
  auto add = [&](uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to; at += part.size()) {
      part.resize(size_t(std::min<uint64_t>(to - at, 1 << 20)));
      file.read_at(at, part.data(), part.size());
      hash.add(part.data(), part.size());
    }
  };
  add(0, digits);
  hash.add(std::string(kDigits, '0').data(), kDigits);
  add(digits + kDigits, file.size());
  return hex(hash.value()) == written ? std::string()
                                      : "something outside the tensors is not what was written";
}

std::string damage_of_tensors(const Model& m) {
  for (const auto& [key, value] : m.metadata) {
    if (!key.starts_with(kTensor)) continue;
    std::string name = key.substr(kTensor.size());
    const Tensor* t = m.initializer(name);
    if (!t) return cat("tensor '", name, "' is missing");
    if (hex(checksum(*t)) != value) return cat("tensor '", name, "' does not match its checksum");
  }
  return {};
}

std::string damage_of(const Model& m, const std::string& path) {
  std::string problem = damage_of_tensors(m);
  return problem.empty() ? damage_of_file(path) : problem;
}

// The model when it is intact, otherwise `problem` says why not.
Model load_intact(const std::string& path, std::string& problem) {
  problem.clear();
  try {
    Model m = load_model(path, all_ops());
    problem = damage_of(m, path);
    return m;
  } catch (const Error& e) {
    problem = e.message();
  }
  // a plain read tells damage from a file that is simply not there
  std::string whole = read_file(path, uint64_t(1) << 40, ErrorKind::kCheckpoint);
  if (whole.empty()) problem = "it is empty";
  return {};
}

}  // namespace

Cut saved_cut(const Model& m) {
  const auto norm = m.metadata.find(kNorm);
  return {int(integer(m, kBlocks)), norm == m.metadata.end() ? "" : norm->second, {}};
}

bool is_checkpoint(const Model& m) { return m.metadata.count(kStep) != 0; }

void strip_checkpoint_metadata(Model& m) {
  for (const char* key : kPosition) m.metadata.erase(key);
  m.metadata.erase(std::string(kFile));
  std::erase_if(m.metadata, [](const auto& e) { return e.first.starts_with(kTensor); });
}

void save_checkpoint(const Training& t, const Position& p, const std::string& path,
                     const std::map<std::string, std::string>& metadata, uint64_t one_file) {
  Model m = t.source();
  strip_checkpoint_metadata(m);
  for (const auto& [key, value] : metadata) m.metadata[key] = value;
  m.metadata[kStep] = std::to_string(p.step);
  m.metadata["onnxtrain.seed"] = std::to_string(p.seed);
  m.metadata["onnxtrain.epoch"] = std::to_string(p.epoch);
  m.metadata["onnxtrain.batch"] = std::to_string(p.batch);
  m.metadata["onnxtrain.loss_sum"] = exact(p.loss_sum);
  m.metadata["onnxtrain.rows"] = std::to_string(p.rows);
  m.metadata["onnxtrain.best"] = exact(p.best);
  m.metadata["onnxtrain.best_epoch"] = std::to_string(p.best_epoch);
  if (t.blocks() > 1) m.metadata[kBlocks] = std::to_string(t.blocks());
  if (t.blocks() > 1 && t.block_options().sync_norm) m.metadata[kNorm] = "sync";
  if (!p.watched.empty()) m.metadata["onnxtrain.watched"] = p.watched;
  if (p.best_loss) m.metadata["onnxtrain.best_loss"] = exact(*p.best_loss);
  for (const auto& name : t.state().names())
    m.metadata[std::string(kTensor) + name] = hex(checksum(t.state().get(name)));
  m.metadata[std::string(kFile)] = std::string(kDigits, '0');
  auto bytes = std::make_unique<ModelBytes>(m, all_ops());
  if (bytes->tensor_bytes() > one_file) {
    // the checksum of the file does not see what stands beside it
    for (const ValueDef& d : m.main.values)
      if (d.constant.defined() && !d.name.empty())
        m.metadata[std::string(kTensor) + d.name] = hex(checksum(d.constant));
    bytes = std::make_unique<ModelBytes>(m, all_ops());
    bytes->move_tensors(unused_data_file(path));
  }
  AtomicWriter w(path);
  write_with_checksum(*bytes, w);
  w.commit(fs::exists(path) ? path + ".previous" : std::string());
  remove_unused_data(path);
}

namespace {

void read_position(const Model& m, Position& p) {
  p.step = integer(m, kStep);
  p.seed = integer(m, "onnxtrain.seed");
  p.epoch = int64_t(integer(m, "onnxtrain.epoch"));
  p.batch = int64_t(integer(m, "onnxtrain.batch"));
  p.loss_sum = number(m, "onnxtrain.loss_sum");
  p.rows = int64_t(integer(m, "onnxtrain.rows"));
  p.best = number(m, "onnxtrain.best");
  p.best_epoch = int64_t(integer(m, "onnxtrain.best_epoch"));
  p.watched = text_of(m, "onnxtrain.watched");
  p.best_loss.reset();  // files of older versions have none
  if (m.metadata.count("onnxtrain.best_loss") != 0) p.best_loss = number(m, "onnxtrain.best_loss");
}

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  std::string previous = path + ".previous", hint, other;
  if (fs::exists(previous)) {
    load_intact(previous, other);
    if (other.empty())
      hint = cat("the one before it is intact:  cp ", shell_word(previous), " ", shell_word(path));
  }
  const fs::path folder = fs::path(path).parent_path();
  if (hint.empty() && fs::exists(folder / "checkpoints" / "last.train.onnx"))
    throw Error(
        ErrorKind::kCheckpoint, "OT4202",
        cat("'", path, "' is no checkpoint, but another file of the run '", folder.string(), "'"),
        cat("onnxtrain train --resume ", shell_word(folder.string())));
  if (hint.empty())
    hint = cat("a model begins a training without --resume:  onnxtrain train ", shell_word(path),
               " --data DATA");
  throw Error(ErrorKind::kCheckpoint, "OT4201",
              cat("checkpoint '", path, "' is damaged: ", problem), hint);
}

}  // namespace

Model load_checkpoint(const std::string& path, Position& p) {
  if (!fs::exists(path))
    throw Error(ErrorKind::kCheckpoint, "OT4202", cat("there is no checkpoint '", path, "'"),
                "resume from a run folder or a .train.onnx file:  onnxtrain runs");
  std::string problem;
  Model m = load_intact(path, problem);
  if (!problem.empty()) refuse(path, problem);
  read_position(m, p);
  return m;
}

Model load_model_or_checkpoint(const std::string& path, Position& p) {
  Model m = load_model(path, all_ops());
  if (!is_checkpoint(m)) return m;
  if (const std::string problem = damage_of(m, path); !problem.empty()) refuse(path, problem);
  read_position(m, p);
  return m;
}

bool copy_checkpoint(const std::string& from, const std::string& to) {
  for (const std::string& file : data_files(from))
    if (fs::exists(file)) return false;
  InputFile in(from);
  AtomicWriter out(to);
  std::string part;
  for (uint64_t at = 0; at < in.size(); at += part.size()) {
    part.resize(size_t(std::min<uint64_t>(in.size() - at, 1 << 20)));
    in.read_at(at, part.data(), part.size());
    out.write(part);
  }
  out.commit(fs::exists(to) ? to + ".previous" : std::string());
  remove_unused_data(to);
  return true;
}

}  // namespace onnxtrain::run
