// The one exception type for everything a user can cause: model, data, flag, divergence.
// Our own mistakes use OT_ASSERT; expected refusals are ordinary values.
#pragma once
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

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

// One argument of `cat`, written as operator<< of a stream writes it. Compiled once (error.cpp):
// messages are in nearly every file.
void append_text(std::string& out, std::string_view text);
void append_text(std::string& out, char c);
void append_number(std::string& out, long long n);
void append_number(std::string& out, unsigned long long n);
void append_number(std::string& out, double x);

template <class T>
void append(std::string& out, const T& value) {
  if constexpr (std::is_same_v<T, char>) {
    append_text(out, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    append_number(out, double(value));
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) > 1) {
    append_number(out, static_cast<long long>(value));
  } else if constexpr (std::is_integral_v<T> && (sizeof(T) > 1 || std::is_same_v<T, bool>)) {
    append_number(out, static_cast<unsigned long long>(value));
  } else {
    append_text(out, std::string_view(value));
  }
}

// Joins texts and numbers.
template <class... Args>
std::string cat(const Args&... args) {
  std::string out;
  (append(out, args), ...);
  return out;
}

[[noreturn]] void model_error(std::string code, std::string message, std::string hint = {});
[[noreturn]] void data_error(std::string code, std::string message, std::string hint = {});
[[noreturn]] void usage_error(std::string code, std::string message, std::string hint = {});

[[noreturn]] void assert_failed(const char* expr, const char* file, int line);

}  // namespace onnxtrain

// Checks of our own invariants; kept in release builds where they are outside hot loops.
#define OT_ASSERT(x) ((x) ? (void)0 : ::onnxtrain::assert_failed(#x, __FILE__, __LINE__))
