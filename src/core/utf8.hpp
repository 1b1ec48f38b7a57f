// Text as UTF-8.
#pragma once
#include <string>

namespace onnxtrain {

// Appends a code point as one to four bytes.
inline void append_utf8(char32_t c, std::string& out) {
  if (c < 0x80) {
    out += char(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;      // bytes that follow the first
  out += char((0xFF00U >> (more + 1)) | (c >> (6 * more)));  // a bit per byte in front
  for (int k = more - 1; k >= 0; --k) out += char(0x80 | ((c >> (6 * k)) & 63));
}

}  // namespace onnxtrain
