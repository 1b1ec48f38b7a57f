// Messages over a socket: 8 bytes of length, JSON, then the tensors that the JSON names.
#include "cli/engine_process.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "cli/narration.hpp"
#include "cli/python_side.hpp"
#include "core/file.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::cli {

namespace {

using Json = nlohmann::json;
using Named = std::vector<std::pair<std::string, Tensor>>;

constexpr uint64_t kMostText = 64 << 20;

class Process final : public run::Engine {
 public:
  Process(const std::string& spec, int threads) : spec_(spec) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
      throw Error(ErrorKind::kFailed, "OT1275", "no socket for the engine's process");
    socket_ = Fd(ends[0]);
    Fd theirs(ends[1]);
    child_ = start_python("onnxtrain.engines.serve",
                          {spec, std::to_string(ends[1]), std::to_string(threads)}, ends[0]);
    theirs.reset();
    const Json hello = receive().first;
    say("engine", cat(hello.value("engine", spec), " on ", hello.value("device", "")));
  }
  ~Process() override {
    socket_.reset();  // the process ends by itself
    int status = 0;
    if (child_ > 0) waitpid(child_, &status, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

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
      ask({{"do", "begin"}, {"model", path}, {"step", step}}, {});
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
    const Named got = ask({{"do", "step"}}, tensors).second;
    if (got.size() != 1) gone("sent no loss");
    return got[0].second.to_doubles()[0];
  }
  Named state() override { return ask({{"do", "state"}}, {}).second; }
  bool undo() override { return ask({{"do", "undo"}}, {}).first.value("undone", false); }

 private:
  using Message = std::pair<Json, Named>;

  [[noreturn]] void gone(const std::string& what) {
    throw Error(ErrorKind::kFailed, "OT1275",
                cat("the engine '", spec_, "' ", what, "; what was saved before is whole"),
                "go on without it:  onnxtrain train --resume RUN --engine native");
  }
  [[noreturn]] void ended() {
    int status = 0;
    std::string how = "ended";
    if (child_ > 0 && waitpid(child_, &status, 0) == child_) {
      child_ = -1;
      if (WIFSIGNALED(status))
        how = cat("crashed (signal ", WTERMSIG(status), ")");
      else if (WEXITSTATUS(status) == kNoInterpreter)
        how = "needs Python, and there is none";
      else
        how = cat("ended (exit code ", WEXITSTATUS(status), ")");
    }
    gone(how);
  }
  void send_all(const void* data, size_t bytes) {
    const char* p = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::send(socket_.get(), p, bytes, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // the missing reply tells
      p += n;
      bytes -= size_t(n);
    }
  }
  void receive_all(void* data, size_t bytes) {
    char* p = static_cast<char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::recv(socket_.get(), p, bytes, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) ended();
      p += n;
      bytes -= size_t(n);
    }
  }
  void send(Json message, const Named& tensors) {
    message["tensors"] = Json::array();
    for (const auto& [name, t] : tensors)
      message["tensors"].push_back({name, int(t.dtype()), t.shape()});
    const std::string text = message.dump();
    const uint64_t size = text.size();
    send_all(&size, sizeof size);
    send_all(text.data(), text.size());
    for (const auto& [name, t] : tensors)
      send_all(t.data(), size_t(t.size()) * dtype_size(t.dtype()));
  }
  Message receive() {
    uint64_t size = 0;
    receive_all(&size, sizeof size);
    if (size > kMostText) gone("sent a message that cannot be read");
    std::string text(size, '\0');
    receive_all(text.data(), text.size());
    const Json j = Json::parse(text, nullptr, false);
    if (!j.is_object()) gone("sent a message that cannot be read");
    if (j.contains("error"))
      throw Error(ErrorKind::kUsage, j.value("code", "OT1275"), j.value("error", ""),
                  j.value("hint", ""));
    Named tensors;
    for (const Json& t : j.value("tensors", Json::array())) {
      Tensor made(DType(t.at(1).get<int>()), t.at(2).get<Shape>());
      receive_all(made.data(), size_t(made.size()) * dtype_size(made.dtype()));
      tensors.emplace_back(t.at(0).get<std::string>(), std::move(made));
    }
    return {j, std::move(tensors)};
  }
  Message ask(Json message, const Named& tensors) {
    send(std::move(message), tensors);
    return receive();
  }

  std::string spec_;
  Fd socket_;
  pid_t child_ = -1;
};

}  // namespace

std::unique_ptr<run::Engine> start_engine(const std::string& spec, int threads) {
  return std::make_unique<Process>(spec, threads);
}

}  // namespace onnxtrain::cli
