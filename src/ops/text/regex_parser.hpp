// The syntax tree of a regular expression in RE2's syntax, made by the parser.
#pragma once
#include "ops/text/regex_match.hpp"

namespace onnxtrain::ops {

enum RegexAssertion : int32_t { kBeginText, kEndText, kBeginLine, kEndLine, kWord, kNotWord };

struct RegexTree {
  enum Kind { kEmpty, kSet, kAssert, kConcat, kAlternate, kRepeat } kind = kEmpty;
  std::vector<Regex::Range> set;
  int32_t assertion = 0;
  int min = 0, max = -1;
  std::vector<RegexTree> parts;
};

RegexTree parse_regex(const std::string& pattern);
bool is_word(int32_t code_point);  // [0-9A-Za-z_]

}  // namespace onnxtrain::ops
