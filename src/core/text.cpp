// Distances between words, numbers for people, quotes.
#include "core/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <numeric>
#include <vector>

#include "core/closest.hpp"

namespace onnxtrain {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    before = above;
    above = row;
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string closest(const std::string& name, const std::vector<std::string>& candidates) {
  auto lower = [](std::string s) {
    for (char& c : s) c = char(std::tolower(static_cast<unsigned char>(c)));
    return s;
  };
  for (const std::string& c : candidates)
    if (lower(c) == lower(name)) return c;
  std::string best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& c : candidates) {
    if (name.size() > 200 || c.size() > 200) continue;
    const size_t distance = edit_distance(name, c);
    if (distance < best_distance) best = c, best_distance = distance;
  }
  return best;
}

std::string with_commas(int64_t n) {
  std::string s = std::to_string(n);
  for (int k = int(s.size()) - 3; k > (n < 0 ? 1 : 0); k -= 3) s.insert(size_t(k), ",");
  return s;
}

std::string megabytes(size_t bytes, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f MB", digits, double(bytes) / 1e6);
  return text;
}

size_t find_invalid_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : 3;
    if (c >= 0x80 && (c < 0xC2 || c > 0xF4)) return i;
    if (i + more >= s.size() + (more == 0)) return i;
    for (size_t k = 1; k <= more; ++k) {
      const auto d = static_cast<unsigned char>(s[i + k]);
      // the first byte after these limits the range: no overlong forms, surrogates, or beyond
      // U+10FFFF
      const unsigned char low = k > 1 ? 0x80 : c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
      const unsigned char high = k > 1 ? 0xBF : c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
      if (d < low || d > high) return i;
    }
    i += 1 + more;
  }
  return std::string_view::npos;
}

std::string in_quotes(std::string_view s) {
  std::string q = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') {
      q += '\\';
      q += c;
    } else if (static_cast<unsigned char>(c) < 32) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", unsigned(c));
      q += code;
    } else {
      q += c;
    }
  }
  return q + '"';
}

}  // namespace onnxtrain
