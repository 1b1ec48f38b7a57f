// The one exception type for everything a user can cause: model, data, flag, divergence.
// Our own mistakes use OT_ASSERT; expected refusals are ordinary values.
#pragma once
#include <exception>
#include <sstream>
#include <string>

namespace onnxtrain {

// Numbers are the exit codes of the command line.
enum class ErrorKind {
  kFailed = 1,
  kUsage = 2,
  kModel = 3,
  kData = 4,
  kDiverged = 5,
  kCheckpoint = 7
};

class Error : public std::exception {
 public:
  // code: "OT1203"; message: a sentence in the user's words, with names and numbers;
  // hint: a fix that works when typed, may be empty.
  Error(ErrorKind kind, std::string code, std::string message, std::string hint = {});

  ErrorKind kind() const { return kind_; }
  const std::string& code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  // "error[CODE]: message\n  help: hint"
  const char* what() const noexcept override { return what_.c_str(); }

  // Adds a line that says where it happened ("in node 'conv1' (Conv)"); call while rethrowing.
  void add_place(const std::string& place);

 private:
  void render();
  ErrorKind kind_;
  std::string code_, message_, hint_, what_;
};

// Joins its arguments with operator<<.
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream s;
  (s << ... << args);
  return s.str();
}

[[noreturn]] void model_error(std::string code, std::string message, std::string hint = {});
[[noreturn]] void data_error(std::string code, std::string message, std::string hint = {});
[[noreturn]] void usage_error(std::string code, std::string message, std::string hint = {});

[[noreturn]] void assert_failed(const char* expr, const char* file, int line);

}  // namespace onnxtrain

// Checks of our own invariants; kept in release builds where they are outside hot loops.
#define OT_ASSERT(x) ((x) ? (void)0 : ::onnxtrain::assert_failed(#x, __FILE__, __LINE__))
