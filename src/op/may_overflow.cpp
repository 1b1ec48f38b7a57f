// Which operators may overflow.
#include "op/may_overflow.hpp"

#include <set>

namespace onnxtrain {

namespace {

std::set<std::string, std::less<>>& names() {
  static std::set<std::string, std::less<>> list;
  return list;
}

}  // namespace

void set_may_overflow(const char* op) { names().emplace(op); }

bool may_overflow(const Node& n) {
  return n.domain == kOnnxDomain ? names().contains(n.op) : n.i("may_overflow", 0) != 0;
}

}  // namespace onnxtrain
