// A number, what stands before and behind it, and its separators.
#include "data/table/number_form.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "data/table/csv.hpp"

namespace onnxtrain {

namespace {

constexpr size_t kMostAround = 8;  // bytes of a currency or unit on each side

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

bool only_digits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), digit);
}

// 1234.5, 1,234.5, 1 234.5 or 1'234.5; with `comma` 1234,5, 1.234,5, ...
std::optional<double> grouped(std::string_view s, bool comma) {
  const size_t mark = s.find(comma ? ',' : '.');
  std::string_view whole = s.substr(0, mark);
  const std::string_view part = mark == std::string_view::npos ? "0" : s.substr(mark + 1);
  if (!only_digits(part)) return std::nullopt;
  std::string plain;
  if (const size_t at = whole.find_first_not_of("0123456789"); at == std::string_view::npos) {
    plain = whole;
  } else {
    const char separator = whole[at];
    if (separator != (comma ? '.' : ',') && separator != ' ' && separator != '\'')
      return std::nullopt;
    if (whole.empty() || whole[0] == '0') return std::nullopt;  // 044 123 456 is no quantity
    for (bool first = true;; first = false) {
      const size_t end = whole.find(separator);
      const std::string_view group = whole.substr(0, end);
      if (!only_digits(group) || group.size() > 3 || (!first && group.size() != 3))
        return std::nullopt;
      plain += group;
      if (end == std::string_view::npos) break;
      whole.remove_prefix(end + 1);
    }
  }
  if (plain.empty()) return std::nullopt;
  return std::strtod((plain + "." + std::string(part)).c_str(), nullptr);
}

struct Parts {
  std::string around, number;
  bool minus = false;
};

// In front of a number: a sign of a currency, or letters that are known to be one. "Name 12" and
// "No. 12" are names.
bool is_currency(std::string before) {
  while (before.ends_with(" ")) before.pop_back();
  if (before.ends_with("$") || std::none_of(before.begin(), before.end(), letter)) return true;
  static constexpr std::array kKnown = {"USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR",
                                        "CAD", "AUD", "NZD", "SEK", "NOK", "DKK", "PLN",
                                        "CZK", "HUF", "BRL", "MXN", "ZAR", "SGD", "HKD",
                                        "KRW", "TRY", "RUB", "Rs",  "Rs.", "kr"};
  return std::find(kKnown.begin(), kKnown.end(), before) != kKnown.end();
}

bool take_minus(std::string& before) {
  if (before.starts_with("-")) {
    before.erase(0, 1);
    return true;
  }
  if (!before.ends_with("-") || (before.size() > 1 && letter(before[before.size() - 2])))
    return false;
  before.pop_back();
  return true;
}

std::optional<Parts> parts_of(std::string_view text) {
  std::string s;  // without the blanks that do not break lines
  for (size_t k = 0; k < text.size();) {
    const std::string_view rest = text.substr(k);
    const size_t blank = rest.starts_with("\xC2\xA0")       ? 2
                         : rest.starts_with("\xE2\x80\xAF") ? 3
                                                            : 0;
    s += blank ? ' ' : text[k];
    k += std::max<size_t>(blank, 1);
  }
  const size_t begin = s.find_first_of("0123456789");
  if (begin == std::string::npos) return std::nullopt;
  size_t end = begin;
  while (end < s.size() && (digit(s[end]) || (std::string_view(".,' ").find(s[end]) != s.npos &&
                                              end + 1 < s.size() && digit(s[end + 1]))))
    ++end;
  Parts p;
  std::string before = s.substr(0, begin);
  const std::string after = s.substr(end);
  p.minus = take_minus(before);
  const bool name = !before.empty() && letter(before.back());  // A12
  if (name || !is_currency(before) || before.size() > kMostAround || after.size() > kMostAround)
    return std::nullopt;
  if (before.find_first_of("#/:_=+-()[]") != s.npos ||
      after.find_first_of("0123456789#/:_=+-()[]") != s.npos)
    return std::nullopt;
  p.number = s.substr(begin, end - begin);
  p.around = before + "#" + after;
  return p;
}

constexpr const char* kNumber = "number";
constexpr const char* kComma = ", comma";

}  // namespace

std::optional<double> number_of_form(std::string_view text, const NumberForm& form) {
  const auto p = parts_of(text);
  if (p && !form.around.empty() && (p->around == form.around || p->around == "#"))
    if (const auto v = grouped(p->number, form.comma)) return p->minus ? -*v : *v;
  return form.comma ? std::nullopt : csv_number(text);
}

std::optional<NumberForm> common_form(const std::map<std::string, int64_t>& texts) {
  NumberForm form;
  for (const auto& [text, count] : texts)
    if (!csv_number(text) && !csv_dash(text)) {
      const auto p = parts_of(text);
      if (!p) return std::nullopt;
      form.around = p->around;
      if (form.around != "#") break;
    }
  if (form.around.empty()) return std::nullopt;
  for (bool comma : {false, true}) {
    form.comma = comma;
    if (std::all_of(texts.begin(), texts.end(), [&](const auto& t) {
          return csv_dash(t.first) || number_of_form(t.first, form);
        }))
      return form;
  }
  return std::nullopt;
}

std::string all_digits(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.15g", v);
  return text;
}

std::string form_word(const NumberForm& form) {
  return form.around.empty() ? std::string(kNumber)
                             : kNumber + (", " + form.around) + (form.comma ? kComma : "");
}

std::optional<NumberForm> form_of_word(const std::string& word) {
  const std::string begin = std::string(kNumber) + ", ";
  if (word == kNumber) return NumberForm();
  if (!word.starts_with(begin)) return std::nullopt;
  NumberForm form{word.substr(begin.size()), word.ends_with(kComma)};
  if (form.comma) form.around.resize(form.around.size() - std::string_view(kComma).size());
  return form;
}

}  // namespace onnxtrain
