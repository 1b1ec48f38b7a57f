// What the standard library throws where the system has no thread to give.
#pragma once
#include <system_error>

#include "core/error.hpp"

namespace onnxtrain {

inline Error error_of(const std::system_error& e) {
  if (e.code() != std::errc::resource_unavailable_try_again)
    return {ErrorKind::kFailed, "OT9001", e.what()};
  return {
      ErrorKind::kFailed, "OT1401",
      "no thread could be started: a limit of memory or of processes is reached",
      "raise it:  ulimit -v unlimited   ulimit -u unlimited   or use fewer threads:  --threads 1"};
}

}  // namespace onnxtrain
