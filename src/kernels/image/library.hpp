// Functions of a shared library that is opened only when an image needs it, so that nobody has to
// have it installed who does not decode such images.
#pragma once
#include <dlfcn.h>

#include "core/error.hpp"

namespace onnxtrain::image {

class Library {
 public:
  // `format` and `package` are for the error that says what to install.
  Library(const char* file, const char* format, const char* package)
      : format_(format), package_(package), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {}

  template <class F>
  F* function(const char* name) const {
    void* f = handle_ ? dlsym(handle_, name) : nullptr;
    if (!f)
      data_error("OT1193", cat(format_, " images need the library of the Debian package '",
                               package_, "', which is not installed"));
    return reinterpret_cast<F*>(f);
  }

 private:
  const char *format_, *package_;
  void* handle_;  // stays open: the function pointers are kept for the life of the process
};

}  // namespace onnxtrain::image
