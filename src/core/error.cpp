// Error text rendering and throwing helpers.
#include "core/error.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "core/error_trace.hpp"

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define OT_HAS_BACKTRACE 1
#endif

namespace onnxtrain {

namespace {

// Bytes of the UTF-8 sequence that starts at s[k]; 0 when there is none (RFC 3629).
size_t sequence(const std::string& s, size_t k) {
  auto at = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned first = at(k), second = at(k + 1);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xC2 && first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (first < 0xC2 || n == 0) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((at(k + i) & 0xC0) != 0x80) return 0;
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool outside = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return overlong || outside ? 0 : n;
}

// Names come from files that may hold anything: control characters and bytes that are not UTF-8
// stand as \xNN, so that a message never reaches a terminal or a decoder as something else.
std::string printable(const std::string& s) {
  std::string out;
  for (size_t k = 0; k < s.size();) {
    const auto c = static_cast<unsigned char>(s[k]);
    const size_t n = sequence(s, k);
    const bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    if (n == 0 || control) {
      char text[8];
      std::snprintf(text, sizeof text, "\\x%02x", unsigned(c));
      out += text;
      ++k;
    } else {
      out.append(s, k, n);
      k += n;
    }
  }
  return out;
}

std::atomic<bool> traces{false};
std::mutex calls_mutex;
std::vector<void*> calls;  // that led to the error made last

void remember_calls() {
#ifdef OT_HAS_BACKTRACE
  std::lock_guard lock(calls_mutex);
  calls.resize(64);
  calls.resize(size_t(backtrace(calls.data(), int(calls.size()))));
#endif
}

}  // namespace

void append_text(std::string& out, std::string_view text) { out += text; }
void append_text(std::string& out, char c) { out += c; }
void append_number(std::string& out, long long n) { out += std::to_string(n); }
void append_number(std::string& out, unsigned long long n) { out += std::to_string(n); }
void append_number(std::string& out, double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", x);
  out += text;
}

void set_error_traces(bool on) {
  std::lock_guard lock(calls_mutex);
  traces = on;
  calls.clear();
}

std::string last_error_trace() {
  std::string out;
#ifdef OT_HAS_BACKTRACE
  std::lock_guard lock(calls_mutex);
  char** names = calls.empty() ? nullptr : backtrace_symbols(calls.data(), int(calls.size()));
  if (!names) return out;
  out = "  trace (addr2line -Cfe PROGRAM ADDRESS names the lines):\n";
  for (size_t k = 2; k < calls.size(); ++k) out += cat("    ", names[k], "\n");
  std::free(names);
#endif
  return out;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): texts are made for the error
Error::Error(ErrorKind kind, std::string code, std::string message, std::string hint)
    : kind_(kind), code_(std::move(code)), message_(printable(message)), hint_(printable(hint)) {
  render();
  if (traces) remember_calls();
}

void Error::add_place(const std::string& place) {
  message_ += "\n  " + printable(place);
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
