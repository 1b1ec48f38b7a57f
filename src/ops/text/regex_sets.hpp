// Sets of code points, as the character classes of regular expressions need them.
#pragma once
#include "ops/text/regex_match.hpp"

namespace onnxtrain::ops {

inline constexpr int32_t kLastCodePoint = 0x10FFFF;
using RegexSet = std::vector<Regex::Range>;

RegexSet normalized(RegexSet s);  // sorted, without overlaps
RegexSet negated(const RegexSet& s);
RegexSet both_cases(RegexSet s);  // of ASCII letters
// \d, \w, ...; false when c names no class
bool perl_set(int32_t c, RegexSet& s);
// [:alpha:], ...
bool posix_set(const std::string& name, RegexSet& set);

}  // namespace onnxtrain::ops
