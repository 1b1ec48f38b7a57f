// A Python process that answers messages over a socket: 8 bytes of length, JSON, then the tensors
// that the JSON names. A crash there is an error here.
#pragma once
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "core/tensor.hpp"

namespace onnxtrain::cli {

class PythonProcess {
 public:
  using Json = nlohmann::json;
  using Named = std::vector<std::pair<std::string, Tensor>>;
  using Message = std::pair<Json, Named>;

  struct Failure {  // what an error says: "the engine 'x'" + how it ended + after
    std::string what, code, after, hint;
  };
  // The module gets the number of its end of the socket where `args` has an empty string.
  PythonProcess(const std::string& module, std::vector<std::string> args, Failure failure);
  ~PythonProcess();
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  Message receive();
  Message ask(Json message, const Named& tensors);
  [[noreturn]] void gone(const std::string& how);
  // What errors say from now on.
  void set_failure(Failure failure) { failure_ = std::move(failure); }

 private:
  [[noreturn]] void ended();
  void send_all(const void* data, size_t bytes);
  void receive_all(void* data, size_t bytes);
  void send(Json message, const Named& tensors);

  Failure failure_;
  Fd socket_;
  pid_t child_ = -1;
};

}  // namespace onnxtrain::cli
