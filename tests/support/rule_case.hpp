// Rules of portable steps: what the graph computes before is what it computes after.
#pragma once
#include <gtest/gtest.h>

#include "convert/portable/rules.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::portable {

struct Case {
  const char* op;     // must be gone
  const char* graph;  // text
  int64_t classes = 4;
};

inline Feeds feeds_of(const Model& m, int64_t classes) {
  Feeds f;
  uint64_t seed = 11;
  for (ValueId v : m.main.inputs) {
    const TypeInfo& t = m.main.value(v).type;
    Shape shape;
    for (const Dim& d : *t.shape) shape.push_back(d.known() ? d.value : 3);
    f[m.main.value_name(v)] = t.elem == DType::kFloat
                                  ? testing::random_tensor(shape, -2, 2, ++seed)
                                  : testing::random_ints(shape, 0, classes, ++seed);
  }
  return f;
}

inline Model check_rule(const Case& k) {
  SCOPED_TRACE(k.graph);
  const std::shared_ptr<Model> before = testing::text_model(k.graph);
  Model after = *before;
  after.unshare_main();
  Graph& g = after.edit_main();
  Context c{all_ops(), 17};
  run_rules(g, c);
  for (const Node& n : g.nodes) EXPECT_FALSE(n.is(k.op)) << n.label();
  const Feeds feeds = feeds_of(*before, k.classes);
  const auto x = Session(before).run(feeds);
  const auto y = Session(std::make_shared<Model>(after)).run(feeds);
  EXPECT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const Tensor &p = std::get<Tensor>(x[i].second), &q = std::get<Tensor>(y[i].second);
    EXPECT_EQ(p.dtype(), q.dtype());
    EXPECT_EQ(p.shape(), q.shape());
    if (p.shape() != q.shape()) continue;
    const std::vector<double> a = p.to_doubles(), b = q.to_doubles();
    for (size_t e = 0; e < a.size(); ++e)
      EXPECT_NEAR(a[e], b[e], 2e-6 * (1 + std::abs(a[e]))) << "element " << e;
  }
  return after;
}

}  // namespace onnxtrain::portable
