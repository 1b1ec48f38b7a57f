// Distances between words, numbers for people, quotes.
#include "core/text.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

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
