// RegexFullMatch: RE2 syntax, linear time (regex_match.hpp).
#include <memory>

#include "op/op.hpp"
#include "ops/text/regex_match.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  if (c.dtype(0) != DType::kString) unsupported_dtype(c.dtype(0), "RegexFullMatch");
  const Regex known(c.node().s("pattern", ""));  // reports a bad pattern when the model is loaded
  c.set(0, DType::kBool, c.shape(0));
}

Kernel make(Prepare& p) {
  auto regex = std::make_shared<Regex>(p.node().s("pattern", ""));
  int64_t n = p.in(0).size();
  return [=](const Run& r) {
    for (int64_t i = 0; i < n; ++i) r.out<bool>(0)[i] = regex->full_match(r.in<std::string>(0)[i]);
  };
}

}  // namespace

void register_regex_full_match(OpTable& t) {
  t.add({.name = "RegexFullMatch",
         .since = 20,
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .no_grad = "strings have no gradient"});
}

}  // namespace onnxtrain::ops
