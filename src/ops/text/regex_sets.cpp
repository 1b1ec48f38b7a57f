// Sets of code points: negation, case, named classes.
#include "ops/text/regex_sets.hpp"

#include <algorithm>

#include "ops/text/regex_parser.hpp"

namespace onnxtrain::ops {

using Set = RegexSet;

namespace {
constexpr int32_t kLast = kLastCodePoint;
const Set kDigits = {{'0', '9'}};
const Set kSpaces = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
const Set kWordSet = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
}  // namespace

Set normalized(Set s) {
  std::sort(s.begin(), s.end(), [](auto a, auto b) { return a.low < b.low; });
  Set out;
  for (auto r : s) {
    if (r.low > r.high) continue;
    if (!out.empty() && r.low <= out.back().high + 1) {
      out.back().high = std::max(out.back().high, r.high);
    } else {
      out.push_back(r);
    }
  }
  return out;
}

Set negated(const Set& s) {
  Set out;
  int32_t next = 0;
  for (auto r : normalized(s)) {
    if (r.low > next) out.push_back({next, r.low - 1});
    next = r.high + 1;
  }
  if (next <= kLast) out.push_back({next, kLast});
  return out;
}

Set both_cases(Set s) {
  Set more;
  for (auto r : s) {
    more.push_back({std::max(r.low, int32_t('a')) - 32, std::min(r.high, int32_t('z')) - 32});
    more.push_back({std::max(r.low, int32_t('A')) + 32, std::min(r.high, int32_t('Z')) + 32});
  }
  for (auto r : more)
    if (r.low <= r.high) s.push_back(r);
  return normalized(s);
}

bool is_word(int32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

bool perl_set(int32_t c, Set& s) {
  switch (c) {
    case 'd':
      s = kDigits;
      return true;
    case 'D':
      s = negated(kDigits);
      return true;
    case 's':
      s = kSpaces;
      return true;
    case 'S':
      s = negated(kSpaces);
      return true;
    case 'w':
      s = kWordSet;
      return true;
    case 'W':
      s = negated(kWordSet);
      return true;
    default:
      return false;
  }
}

bool posix_set(const std::string& name, Set& set) {
  struct {
    const char* name;
    Set set;
  } known[] = {{"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
               {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
               {"ascii", {{0, 127}}},
               {"blank", {{'\t', '\t'}, {' ', ' '}}},
               {"cntrl", {{0, 31}, {127, 127}}},
               {"digit", kDigits},
               {"graph", {{'!', '~'}}},
               {"lower", {{'a', 'z'}}},
               {"print", {{' ', '~'}}},
               {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
               {"space", {{'\t', '\r'}, {' ', ' '}}},
               {"upper", {{'A', 'Z'}}},
               {"word", kWordSet},
               {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  for (const auto& k : known)
    if (name == k.name) {
      set = k.set;
      return true;
    }
  return false;
}

}  // namespace onnxtrain::ops
