// Rank 0 sends what the others read of a run: for resuming and eval the settings, the log, the last
// and the best checkpoint; for predict the model.
#include "run/borrowed.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "core/file.hpp"
#include "distributed/gather_tensors.hpp"
#include "run/folder/folder.hpp"
#include "run/start.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;

struct Sent {
  std::vector<fs::path> names;  // relative to the folder that is sent
  fs::path folder, what;        // what: relative, too
};

bool is_read(const fs::path& file, Borrowed::For what) {
  const std::string name = file.filename().string();
  if (what == Borrowed::For::kPredicting) return name.starts_with("model.onnx");
  const bool checkpoint = file.parent_path().filename() == "checkpoints";
  if (checkpoint) return name.starts_with("last.train.onnx") || name.starts_with("best.train.onnx");
  return !name.starts_with("model.onnx") && name != "report.html" && !name.starts_with("events");
}

// A folder of which nothing is there (a mount point, a run of which others write the files) is not
// the run.
bool sees(const std::string& path) {
  std::error_code ec;
  if (!fs::is_directory(path, ec)) return fs::exists(path, ec);
  const Folder run(path);
  return fs::exists(run.last(), ec) || fs::exists(run.best(), ec) || fs::exists(run.model(), ec);
}

// Of a run: its folder. Of a file that belongs to none: the file, and its data beside it.
Sent files_of(const std::string& path, Borrowed::For what) {
  Sent s;
  const fs::path given = fs::absolute(path).lexically_normal();
  std::string run = run_of(path);
  if (run.empty() && fs::is_directory(path)) run = path;
  s.folder = run.empty() ? given.parent_path() : fs::absolute(run).lexically_normal();
  s.what = given.lexically_relative(s.folder);
  if (run.empty()) {
    const std::string file = given.filename().string();
    for (const fs::directory_entry& e : fs::directory_iterator(s.folder)) {
      const std::string name = e.path().filename().string();
      if (e.is_regular_file() && (name == file || name == file + ".data"))
        s.names.emplace_back(name);
    }
    return s;
  }
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(s.folder)) {
    const fs::path name = e.path().lexically_relative(s.folder);
    if (!e.is_regular_file() || name.string().starts_with("earlier-")) continue;
    const bool given_itself = name == s.what || name == fs::path(s.what.string() + ".data");
    if (given_itself || is_read(e.path(), what)) s.names.push_back(name);
  }
  return s;
}

std::vector<Tensor> packed(const std::string& path, Borrowed::For what) {
  const Sent s = files_of(path, what);
  Tensor names(DType::kString, {int64_t(s.names.size()) + 1});
  names.as<std::string>()[0] = s.what.string();
  std::vector<Tensor> all = {names};
  for (size_t k = 0; k < s.names.size(); ++k) {
    names.as<std::string>()[k + 1] = s.names[k].string();
    const std::string text = read_file((s.folder / s.names[k]).string(), UINT64_MAX);
    Tensor bytes(DType::kUint8, {int64_t(text.size())});
    if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
    all.push_back(bytes);
  }
  return all;
}

}  // namespace

Borrowed::~Borrowed() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

std::string Borrowed::find(Communicator& c, const std::string& path, For what) {
  const char here = sees(path) ? 1 : 0;
  std::vector<char> all(size_t(c.size()));
  c.all_gather(&here, 1, all.data());
  if (!all[0] || std::string_view(all.data(), all.size()).find('\0') == std::string_view::npos)
    return path;
  const std::vector<std::vector<Tensor>> sent =
      gather_tensors(c, c.rank() == 0 ? packed(path, what) : std::vector<Tensor>());
  if (here) return path;
  folder_ = (fs::temp_directory_path() / "onnxtrain-run-XXXXXX").string();
  if (!mkdtemp(folder_.data())) {
    const int why = errno;
    folder_.clear();
    throw Error(ErrorKind::kFailed, "OT4101",
                cat("rank ", c.rank(), " does not see '", path,
                    "', and no folder for a copy can be made: ", std::strerror(why)),
                "set TMPDIR to a folder that can be written");
  }
  const std::string* names = sent[0][0].as<std::string>();
  for (size_t k = 1; k < sent[0].size(); ++k) {
    const fs::path file = fs::path(folder_) / names[k];
    fs::create_directories(file.parent_path());
    write_file(file.string(),
               {static_cast<const char*>(sent[0][k].data()), size_t(sent[0][k].size())});
  }
  return names[0] == "." ? folder_ : (fs::path(folder_) / names[0]).string();
}

}  // namespace onnxtrain::run
