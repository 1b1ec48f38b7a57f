// Pattern -> syntax tree.
#include "ops/text/regex_parser.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "ops/text/regex_sets.hpp"

namespace onnxtrain::ops {

namespace {

constexpr int32_t kLast = kLastCodePoint;
constexpr int kMaxRepeat = 1000;  // as in RE2
constexpr int kMaxDepth = 1000;   // nested groups

using Set = RegexSet;
using Tree = RegexTree;

class Parser {
 public:
  explicit Parser(const std::string& pattern) : pattern_(pattern), p_(code_points(pattern)) {}
  Tree parse() {
    Tree t = alternatives(0);
    if (at_ < p_.size()) fail("an unmatched )");
    return t;
  }

 private:
  struct Flags {
    bool fold = false, multi = false, dot_all = false;
  };

  [[noreturn]] void fail(const std::string& why) const {
    model_error("OT1155",
                cat("pattern '", pattern_, "' is not a regular expression of RE2: ", why));
  }
  bool more() const { return at_ < p_.size(); }
  bool sees(char c) const { return more() && p_[at_] == c; }
  bool take(char c) { return sees(c) ? (++at_, true) : false; }
  int32_t next() {
    if (!more()) fail("it ends too early");
    return p_[at_++];
  }

  static Tree set_tree(Set s) {
    Tree t;
    t.kind = Tree::kSet;
    t.set = std::move(s);
    return t;
  }
  static Tree assert_tree(int32_t a) {
    Tree t;
    t.kind = Tree::kAssert;
    t.assertion = a;
    return t;
  }
  Tree literal(int32_t c) const {
    return set_tree(flags_.fold ? both_cases({{c, c}}) : Set{{c, c}});
  }

  Tree alternatives(int depth) {
    if (depth > kMaxDepth) fail("groups are nested too deeply");
    Tree all;
    all.kind = Tree::kAlternate;
    do {
      all.parts.push_back(sequence(depth));
    } while (take('|'));
    return all.parts.size() == 1 ? std::move(all.parts[0]) : std::move(all);
  }

  Tree sequence(int depth) {
    Tree all;
    all.kind = Tree::kConcat;
    while (more() && !sees('|') && !sees(')')) {
      size_t before = at_;
      Tree t = atom(depth, all);
      if (before == at_) fail("a part that means nothing");
      all.parts.push_back(repeated(std::move(t)));
    }
    return all;
  }

  Tree repeated(Tree t) {
    bool once = false;
    while (more()) {
      int min, max;
      size_t start = at_;
      if (take('*')) {
        min = 0, max = -1;
      } else if (take('+')) {
        min = 1, max = -1;
      } else if (take('?')) {
        min = 0, max = 1;
      } else if (!counted(min, max)) {
        break;
      }
      if (once) fail("two repetitions in a row");
      once = true;
      take('?');  // lazy or greedy: the same for a full match
      if (max > kMaxRepeat || min > kMaxRepeat || (max >= 0 && min > max))
        fail("a bad repetition count");
      (void)start;
      Tree r;
      r.kind = Tree::kRepeat;
      r.min = min;
      r.max = max;
      r.parts.push_back(std::move(t));
      t = std::move(r);
    }
    return t;
  }

  // {n}, {n,}, {n,m}; anything else is a literal brace
  bool counted(int& min, int& max) {
    size_t back = at_;
    auto number = [&](int& v) {
      if (!more() || p_[at_] < '0' || p_[at_] > '9') return false;
      int64_t n = 0;
      while (more() && p_[at_] >= '0' && p_[at_] <= '9')
        n = std::min<int64_t>(n * 10 + (p_[at_++] - '0'), 1 << 20);
      v = int(n);
      return true;
    };
    if (take('{') && number(min)) {
      max = min;
      if (take(',') && !number(max)) max = -1;
      if (take('}')) return true;
    }
    at_ = back;
    return false;
  }

  Tree atom(int depth, Tree& before) {
    int32_t c = next();
    switch (c) {
      case '(':
        return group(depth);
      case '[':
        return set_tree(bracket());
      case '.':
        return set_tree(flags_.dot_all ? Set{{0, kLast}} : negated({{'\n', '\n'}}));
      case '^':
        return assert_tree(flags_.multi ? kBeginLine : kBeginText);
      case '$':
        return assert_tree(flags_.multi ? kEndLine : kEndText);
      case '\\':
        return escape(before);
      case '*':
      case '+':
      case '?':
        fail("a repetition of nothing");
      default:
        return literal(c);
    }
  }

  Tree group(int depth) {
    Flags outer = flags_;
    if (take('?')) {
      if (take('P') || sees('<')) {
        if (!take('<')) fail("a bad group name");
        size_t start = at_;
        while (more() && is_word(p_[at_])) ++at_;
        if (at_ == start || !take('>')) fail("a bad group name");
      } else if (flag_list()) {  // (?i) holds until the end of the enclosing group
        return Tree{};
      }
    }
    Tree t = alternatives(depth + 1);
    if (!take(')')) fail("a missing )");
    flags_ = outer;
    if (t.kind == Tree::kEmpty) t.kind = Tree::kConcat;
    return t;
  }

  // After "(?": true when the group ends with the flags.
  bool flag_list() {
    bool on = true;
    while (true) {
      int32_t c = next();
      if (c == 'i')
        flags_.fold = on;
      else if (c == 'm')
        flags_.multi = on;
      else if (c == 's')
        flags_.dot_all = on;
      else if (c == 'U') {
      } else if (c == '-' && on)
        on = false;
      else if (c == ':')
        return false;
      else if (c == ')')
        return true;
      else
        fail("an unknown flag or an unsupported group (RE2 has no look-around)");
    }
  }

  Tree escape(Tree& before) {
    int32_t c = next();
    Set s;
    if (perl_set(c, s)) return set_tree(s);
    switch (c) {
      case 'A':
        return assert_tree(kBeginText);
      case 'z':
        return assert_tree(kEndText);
      case 'b':
        return assert_tree(kWord);
      case 'B':
        return assert_tree(kNotWord);
      case 'C':
        return set_tree({{0, kLast}});
      case 'Q': {
        Tree last = Tree{};
        last.kind = Tree::kConcat;
        while (more()) {
          if (p_[at_] == '\\' && at_ + 1 < p_.size() && p_[at_ + 1] == 'E') {
            at_ += 2;
            break;
          }
          if (!last.parts.empty())
            before.parts.push_back(std::move(last.parts.back())), last.parts.clear();
          last.parts.push_back(literal(p_[at_++]));
        }
        return last;
      }
      default:
        --at_;
        return literal(escaped());
    }
  }

  // A character after a backslash.
  int32_t escaped() {
    int32_t c = next();
    auto hex = [&](int32_t d) -> int32_t {
      if (d >= '0' && d <= '9') return d - '0';
      if (d >= 'a' && d <= 'f') return d - 'a' + 10;
      if (d >= 'A' && d <= 'F') return d - 'A' + 10;
      fail("a bad hexadecimal escape");
    };
    switch (c) {
      case 'a':
        return 7;
      case 'f':
        return 12;
      case 't':
        return 9;
      case 'n':
        return 10;
      case 'r':
        return 13;
      case 'v':
        return 11;
      case 'x': {
        int32_t v = 0;
        if (take('{')) {
          while (!take('}')) {
            v = v * 16 + hex(next());
            if (v > kLast) fail("a code point beyond Unicode");
          }
          return v;
        }
        v = hex(next());
        return v * 16 + hex(next());
      }
      default:
        break;
    }
    if (c >= '0' && c <= '7') {
      if (c != '0' && !(more() && p_[at_] >= '0' && p_[at_] <= '7'))
        fail("a back-reference, which RE2 has not");
      int32_t v = c - '0';
      for (int k = 0; k < 2 && more() && p_[at_] >= '0' && p_[at_] <= '7'; ++k)
        v = v * 8 + (p_[at_++] - '0');
      return v;
    }
    if (c == 'p' || c == 'P') fail("a Unicode class (\\p), which is not supported here");
    if (c < 0x80 && is_word(c)) fail(cat("an unknown escape \\", char(c)));
    return c;
  }

  Set bracket() {
    bool negate = take('^');
    Set s;
    bool first = true;
    while (first || !sees(']')) {
      first = false;
      if (sees('[') && at_ + 1 < p_.size() && p_[at_ + 1] == ':') {
        for (auto r : posix_class()) s.push_back(r);
        continue;
      }
      int32_t low = next();
      Set named;
      if (low == '\\') {
        if (more() && perl_set(p_[at_], named)) {
          ++at_;
          s.insert(s.end(), named.begin(), named.end());
          continue;
        }
        low = escaped();
      }
      int32_t high = low;
      if (sees('-') && at_ + 1 < p_.size() && p_[at_ + 1] != ']') {
        ++at_;
        high = next();
        if (high == '\\') high = escaped();
        if (high < low) fail("a range with its ends exchanged");
      }
      s.push_back({low, high});
    }
    ++at_;
    s = flags_.fold ? both_cases(s) : normalized(s);
    return negate ? negated(s) : s;
  }

  Set posix_class() {
    at_ += 2;
    bool negate = take('^');
    std::string name;
    while (!sees(':')) name += char(next());
    ++at_;
    if (!take(']')) fail("a bad character class");
    Set set;
    if (posix_set(name, set)) return negate ? negated(set) : set;
    fail(cat("an unknown class [:", name, ":]"));
  }

  const std::string& pattern_;
  std::vector<int32_t> p_;
  size_t at_ = 0;
  Flags flags_;
};

}  // namespace

std::vector<int32_t> code_points(const std::string& s) {
  std::vector<int32_t> out;
  for (size_t at = 0; at < s.size();) {
    uint8_t b = uint8_t(s[at]);
    size_t extra = b < 0x80                ? 0
                   : b >= 0xC2 && b < 0xE0 ? 1
                   : b >= 0xE0 && b < 0xF0 ? 2
                   : b >= 0xF0 && b < 0xF5 ? 3
                                           : 9;
    int32_t cp = extra == 0 ? b : b & (0x3F >> extra);
    bool good = extra < 9 && at + extra < s.size();
    for (size_t k = 1; good && k <= extra; ++k) {
      uint8_t c = uint8_t(s[at + k]);
      good = (c & 0xC0) == 0x80;
      cp = (cp << 6) | (c & 0x3F);
    }
    out.push_back(good ? cp : 0xFFFD);
    at += good ? extra + 1 : 1;
  }
  return out;
}

RegexTree parse_regex(const std::string& pattern) { return Parser(pattern).parse(); }

}  // namespace onnxtrain::ops
