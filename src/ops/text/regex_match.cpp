// Syntax tree -> instructions, and the simulation of the automaton.
#include "ops/text/regex_match.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "ops/text/regex_parser.hpp"

namespace onnxtrain::ops {

namespace {

constexpr size_t kMaxProgram = 100'000;  // instructions after repetitions are written out
using Inst = Regex::Inst;
using Tree = RegexTree;

// Emits instructions from the end: every piece knows what follows it.
class Compiler {
 public:
  explicit Compiler(std::vector<Inst>& program) : p_(program) {}
  int32_t emit(Inst i) {
    if (p_.size() >= kMaxProgram)
      model_error("OT1155", "the pattern is too large when its repetitions are written out");
    p_.push_back(std::move(i));
    return int32_t(p_.size() - 1);
  }
  int32_t compile(const Tree& t, int32_t next) {
    switch (t.kind) {
      case Tree::kEmpty:
        return next;
      case Tree::kSet:
        return emit({Inst::kSet, next, -1, t.set});
      case Tree::kAssert:
        return emit({Inst::kAssert, next, t.assertion});
      case Tree::kConcat:
        for (size_t k = t.parts.size(); k-- > 0;) next = compile(t.parts[k], next);
        return next;
      case Tree::kAlternate: {
        int32_t at = compile(t.parts.back(), next);
        for (size_t k = t.parts.size() - 1; k-- > 0;)
          at = emit({Inst::kSplit, compile(t.parts[k], next), at});
        return at;
      }
      case Tree::kRepeat:
        return repeat(t, next);
    }
    return next;
  }

 private:
  int32_t repeat(const Tree& t, int32_t next) {
    int32_t at = next;
    if (t.max < 0) {
      int32_t loop = emit({Inst::kSplit, -1, next});
      int32_t body = compile(t.parts[0], loop);
      p_[size_t(loop)].a = body;
      at = loop;
    } else {
      for (int k = t.min; k < t.max; ++k) at = emit({Inst::kSplit, compile(t.parts[0], at), next});
    }
    for (int k = 0; k < t.min; ++k) at = compile(t.parts[0], at);
    return at;
  }
  std::vector<Inst>& p_;
};

}  // namespace

Regex::Regex(const std::string& pattern) {
  Tree tree = parse_regex(pattern);
  Compiler compiler(program_);
  int32_t match = compiler.emit({Inst::kMatch});
  start_ = compiler.compile(tree, match);
}

// Follows everything that reads no text, without recursion.
void Regex::add(std::vector<int32_t>& list, std::vector<uint32_t>& mark, uint32_t round,
                int32_t start, int32_t before, int32_t after) const {
  std::vector<int32_t> todo = {start};
  while (!todo.empty()) {
    int32_t i = todo.back();
    todo.pop_back();
    if (mark[size_t(i)] == round) continue;
    mark[size_t(i)] = round;
    const Inst& inst = program_[size_t(i)];
    if (inst.kind == Inst::kSplit) {
      todo.push_back(inst.b);
      todo.push_back(inst.a);
    } else if (inst.kind == Inst::kAssert) {
      bool edge = is_word(before) != is_word(after);
      bool holds[] = {
          before < 0, after < 0, before < 0 || before == '\n', after < 0 || after == '\n',
          edge,       !edge};
      if (holds[inst.b]) todo.push_back(inst.a);
    } else {
      list.push_back(i);
    }
  }
}

bool Regex::full_match(const std::string& text) const {
  std::vector<int32_t> cps = code_points(text), now, next;
  std::vector<uint32_t> mark(program_.size(), 0);
  uint32_t round = 1;
  add(now, mark, round, start_, -1, cps.empty() ? -1 : cps[0]);
  for (size_t k = 0; k < cps.size(); ++k) {
    next.clear();
    ++round;
    int32_t after = k + 1 < cps.size() ? cps[k + 1] : -1;
    for (int32_t i : now) {
      const Inst& inst = program_[size_t(i)];
      if (inst.kind != Inst::kSet) continue;
      auto it = std::upper_bound(inst.set.begin(), inst.set.end(), cps[k],
                                 [](int32_t c, const Range& r) { return c < r.low; });
      if (it == inst.set.begin() || cps[k] > std::prev(it)->high) continue;
      add(next, mark, round, inst.a, cps[k], after);
    }
    now.swap(next);
    if (now.empty()) return false;
  }
  for (int32_t i : now)
    if (program_[size_t(i)].kind == Inst::kMatch) return true;
  return false;
}

}  // namespace onnxtrain::ops
