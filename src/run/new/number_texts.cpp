// A number, what may stand before and behind it, and its separators.
#include "run/new/number_texts.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "core/error.hpp"
#include "core/text.hpp"

namespace onnxtrain::run {

namespace {

constexpr size_t kMostAround = 6;  // bytes of a currency or unit on each side

bool digit(char c) { return c >= '0' && c <= '9'; }

// Digits with separators inside, as digits with at most one point.
std::string plain_number(const std::string& text) {
  const size_t last = text.find_last_of(".,");
  const char mark = last == std::string::npos ? ' ' : text[last];
  // one kind of separator in front of every third digit: thousands
  const bool other = text.find(mark == '.' ? ',' : '.') != std::string::npos;
  const auto marks = std::count(text.begin(), text.end(), mark);
  const bool thousands = !other && text.size() - last - 1 == 3 && (marks > 1 || mark == ',');
  std::string out;
  for (size_t k = 0; k < text.size(); ++k)
    if (digit(text[k]))
      out += text[k];
    else if (k == last && !thousands && marks == 1)
      out += '.';
  return out;
}

// A number and what stands around it; an empty number: there is none.
struct Disguised {
  std::string number, around;
};

Disguised parse(const std::string& text) {
  const size_t begin = text.find_first_of("0123456789");
  if (begin == std::string::npos || begin > kMostAround) return {};
  // A12 is a name, EUR 12 is not
  if (begin > 0 && std::isalpha(static_cast<unsigned char>(text[begin - 1]))) return {};
  size_t end = begin;
  while (end < text.size() &&
         (digit(text[end]) || (std::string(".,' ").find(text[end]) != std::string::npos &&
                               end + 1 < text.size() && digit(text[end + 1]))))
    ++end;
  if (text.size() - end > kMostAround) return {};
  std::string before = text.substr(0, begin);
  const bool minus = std::erase(before, '-') > 0;
  return {(minus ? "-" : "") + plain_number(text.substr(begin, end - begin)),
          before + "#" + text.substr(end)};
}

}  // namespace

std::string numbers_in_texts(const std::vector<std::string>& texts) {
  std::map<std::string, size_t> around;  // the same currency or unit nearly everywhere
  for (const std::string& t : texts)
    if (const Disguised d = parse(t); !d.number.empty()) ++around[d.around];
  for (const auto& [what, count] : around) {
    if (10 * count < 9 * texts.size()) continue;
    for (const std::string& t : texts)
      if (const Disguised d = parse(t); !d.number.empty() && d.around == what && d.number != t)
        return cat("numbers? write ", d.number, " instead of '", t, "'");
  }
  return {};
}

}  // namespace onnxtrain::run
