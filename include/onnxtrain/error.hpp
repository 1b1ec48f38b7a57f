// Exceptions of the C++ interface; included by onnxtrain.hpp.
#pragma once
#include <stdexcept>
#include <string>

#include "onnxtrain/onnxtrain.h"

namespace ot {

// What went wrong: code ("OT1203"), message, hint; status() is the command line's exit code.
class Error : public std::runtime_error {
 public:
  Error(ot_status status, const ot_error_info& e)
      : std::runtime_error(std::string("error[") + e.code + "]: " + e.message +
                           (e.hint[0] ? std::string("\n  help: ") + e.hint : std::string())),
        status_(status),
        code_(e.code),
        message_(e.message),
        hint_(e.hint) {}
  ot_status status() const { return status_; }
  const std::string& code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

 private:
  ot_status status_;
  std::string code_, message_, hint_;
};

inline void check(ot_status s) {
  if (s != OT_OK) throw Error(s, ot_last_error());
}

}  // namespace ot
