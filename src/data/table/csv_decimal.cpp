// Decimal commas.
#include "data/table/csv_decimal.hpp"

#include <algorithm>
#include <vector>

#include "data/table/csv.hpp"

namespace onnxtrain {

namespace {

constexpr int64_t kLooked = 5000;  // records

bool is_digits(std::string_view s) {
  return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view unsigned_part(std::string_view f) {
  if (!f.empty() && (f[0] == '+' || f[0] == '-')) f.remove_prefix(1);
  return f;
}

// 1.234.567 or 1234567
bool is_whole(std::string_view s) {
  if (is_digits(s)) return true;
  for (bool first = true;; first = false) {
    const size_t dot = s.find('.');
    const std::string_view group = s.substr(0, dot);
    if (!is_digits(group) || group.size() > 3 || (!first && group.size() != 3)) return false;
    if (dot == std::string_view::npos) return !first;
    s.remove_prefix(dot + 1);
  }
}

// -3,5 or 1.234,56
bool has_comma(std::string_view field) {
  const std::string_view f = unsigned_part(csv_trimmed(field));
  const size_t comma = f.find(',');
  return comma != std::string_view::npos && is_whole(f.substr(0, comma)) &&
         is_digits(f.substr(comma + 1));
}

// 3.5
bool has_point(std::string_view field) {
  const std::string_view f = unsigned_part(csv_trimmed(field));
  const size_t dot = f.find('.');
  return dot != std::string_view::npos && is_digits(f.substr(0, dot)) &&
         is_digits(f.substr(dot + 1));
}

void append(std::string_view field, std::string& out) {
  if (!has_comma(field)) {
    out += field;
    return;
  }
  for (char c : field)
    if (c == ',')
      out += '.';
    else if (c != '.')
      out += c;
}

}  // namespace

bool has_decimal_commas(std::string_view text, char separator, const std::string& source) {
  if (separator == ',') return false;
  CsvReader reader(text, separator, source);
  std::vector<std::string_view> fields;
  bool commas = false;
  for (int64_t k = 0; k < kLooked && reader.next(fields); ++k)
    for (std::string_view f : fields) {
      if (has_point(f)) return false;
      commas = commas || has_comma(f);
    }
  return commas;
}

std::string with_decimal_points(std::string_view text, char separator) {
  std::string out;
  out.reserve(text.size());
  size_t begin = 0;
  bool quoted = false;
  auto is_end = [&](char c) { return c == separator || c == '\n' || c == '\r'; };
  for (size_t k = 0; k <= text.size(); ++k) {
    if (k < text.size() && text[k] == '"') quoted = !quoted;
    if (k < text.size() && (quoted || !is_end(text[k]))) continue;
    const std::string_view field = text.substr(begin, k - begin);
    const bool in_quotes = field.size() > 2 && field.front() == '"' && field.back() == '"';
    if (in_quotes) {
      out += '"';
      append(field.substr(1, field.size() - 2), out);
      out += '"';
    } else {
      append(field, out);
    }
    if (k < text.size()) out += text[k];
    begin = k + 1;
  }
  return out;
}

}  // namespace onnxtrain
