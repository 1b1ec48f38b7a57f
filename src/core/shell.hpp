// Words of a command line that is shown to the user: what is printed works when it is typed.
#pragma once
#include <string>
#include <string_view>

namespace onnxtrain {

// The text as one word of a shell, in quotes where it needs them.
inline std::string shell_word(const std::string& text) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+@%-";
  bool safe = !text.empty();
  for (char c : text)
    safe &= static_cast<unsigned char>(c) >= 0x80 ||
            std::string_view(plain).find(c) != std::string_view::npos;
  if (safe) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace onnxtrain
