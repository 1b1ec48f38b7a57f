// Error text rendering and throwing helpers.
#include "core/error.hpp"

#include <cstdio>
#include <cstdlib>

namespace onnxtrain {

Error::Error(ErrorKind kind, std::string code, std::string message, std::string hint)
    : kind_(kind), code_(std::move(code)), message_(std::move(message)), hint_(std::move(hint)) {
  render();
}

void Error::add_place(const std::string& place) {
  message_ += "\n  " + place;
  render();
}

void Error::render() {
  what_ = "error[" + code_ + "]: " + message_;
  if (!hint_.empty()) what_ += "\n  help: " + hint_;
}

void model_error(std::string code, std::string message, std::string hint) {
  throw Error(ErrorKind::kModel, std::move(code), std::move(message), std::move(hint));
}

void data_error(std::string code, std::string message, std::string hint) {
  throw Error(ErrorKind::kData, std::move(code), std::move(message), std::move(hint));
}

void usage_error(std::string code, std::string message, std::string hint) {
  throw Error(ErrorKind::kUsage, std::move(code), std::move(message), std::move(hint));
}

void assert_failed(const char* expr, const char* file, int line) {
  std::fprintf(stderr, "onnxtrain: internal error: %s at %s:%d\n", expr, file, line);
  std::abort();
}

}  // namespace onnxtrain
