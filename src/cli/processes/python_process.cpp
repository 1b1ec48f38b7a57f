// Messages over a socket.
#include "cli/processes/python_process.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "cli/processes/python_side.hpp"
#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {
constexpr uint64_t kMostText = 64 << 20;
}

PythonProcess::PythonProcess(const std::string& module, std::vector<std::string> args,
                             Failure failure)
    : failure_(std::move(failure)) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) gone("has no socket");
  socket_ = Fd(ends[0]);
  Fd theirs(ends[1]);
  for (std::string& a : args)
    if (a.empty()) a = std::to_string(ends[1]);
  child_ = start_python(module, args, ends[0]);
}

PythonProcess::~PythonProcess() {
  socket_.reset();  // the process ends by itself
  int status = 0;
  if (child_ > 0) waitpid(child_, &status, 0);
}

void PythonProcess::gone(const std::string& how) {
  throw Error(ErrorKind::kFailed, failure_.code, cat(failure_.what, " ", how, failure_.after),
              failure_.hint);
}

void PythonProcess::ended() {
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

void PythonProcess::send_all(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::send(socket_.get(), p, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the missing reply tells
    p += n;
    bytes -= size_t(n);
  }
}

void PythonProcess::receive_all(void* data, size_t bytes) {
  char* p = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::recv(socket_.get(), p, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ended();
    p += n;
    bytes -= size_t(n);
  }
}

void PythonProcess::send(Json message, const Named& tensors) {
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

PythonProcess::Message PythonProcess::receive() {
  uint64_t size = 0;
  receive_all(&size, sizeof size);
  if (size > kMostText) gone("sent a message that cannot be read");
  std::string text(size, '\0');
  receive_all(text.data(), text.size());
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object()) gone("sent a message that cannot be read");
  if (j.contains("error"))
    throw Error(j.value("code", "").starts_with("OT2") ? ErrorKind::kData : ErrorKind::kUsage,
                j.value("code", failure_.code), j.value("error", ""), j.value("hint", ""));
  Named tensors;
  for (const Json& t : j.value("tensors", Json::array())) {
    Tensor made(DType(t.at(1).get<int>()), t.at(2).get<Shape>());
    receive_all(made.data(), size_t(made.size()) * dtype_size(made.dtype()));
    tensors.emplace_back(t.at(0).get<std::string>(), std::move(made));
  }
  return {j, std::move(tensors)};
}

PythonProcess::Message PythonProcess::ask(Json message, const Named& tensors) {
  send(std::move(message), tensors);
  return receive();
}

}  // namespace onnxtrain::cli
