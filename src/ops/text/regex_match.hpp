// A regular expression matcher for RE2's syntax: the pattern becomes a nondeterministic automaton
// that is run over the text in one pass, so time is O(pattern * text) for any pattern
// (docs/decisions/0020-regex.md).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace onnxtrain::ops {

class Regex {
 public:
  // A model error for a pattern that RE2 would refuse, or that uses what is not supported here
  // (classes of Unicode properties).
  explicit Regex(const std::string& pattern);
  bool full_match(const std::string& text) const;

  struct Range {
    int32_t low, high;
  };
  struct Inst {
    enum Kind : uint8_t { kSet, kSplit, kJump, kAssert, kMatch } kind;
    int32_t a = -1, b = -1;       // next; second way of a split; assertion
    std::vector<Range> set = {};  // code points; sorted
  };

 private:
  void add(std::vector<int32_t>& list, std::vector<uint32_t>& mark, uint32_t round, int32_t start,
           int32_t before, int32_t after) const;
  std::vector<Inst> program_;
  int32_t start_ = 0;
};

// UTF-8 -> code points; a byte that starts no valid sequence becomes U+FFFD.
std::vector<int32_t> code_points(const std::string& s);

}  // namespace onnxtrain::ops
