// Chains of attention become one operator: every spelling with masks, dropout, layouts and repeated
// heads gives the values and gradients of the chain, the same bits for every number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/program.hpp"
#include "passes/passes.hpp"
#include "tests/support/graph_case.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kLowest = -3.4028235e38f;
constexpr int64_t kBatch = 2, kRows = 70;

struct Chain {
  Graph g;
  std::vector<Tensor> feeds;
  std::vector<ValueId> wanted;  // inputs whose gradients are outputs
  int64_t heads = 4, kv_heads = 4, width = 6;

  ValueId input(const Tensor& t, bool gradient) {
    ValueId v = g.add_value(cat("x", g.inputs.size()), TypeInfo::tensor(t.dtype(), t.shape()));
    g.inputs.push_back(v);
    feeds.push_back(t);
    if (gradient) wanted.push_back(v);
    return v;
  }
  ValueId input(const Shape& s) { return input(random_tensor(s, -1, 1, feeds.size() + 1), true); }
  ValueId constant(const Tensor& t) { return g.add_constant(t); }
  ValueId number(float c) { return constant(Tensor::scalar(c)); }
  ValueId call(const std::string& op, std::vector<ValueId> in, Attrs attrs = {}) {
    return add_call(g, op, std::move(in), std::move(attrs));
  }
  ValueId shaped(ValueId x, const std::vector<int64_t>& s) {
    return call("Reshape", {x, constant(Tensor::vector<int64_t>(s))});
  }
  ValueId turn(ValueId x, std::vector<int64_t> perm) {
    return call("Transpose", {x}, {{"perm", std::move(perm)}});
  }
  // [batch, heads, rows, width] of a packed input; a few heads repeated where there are less
  ValueId operand(int64_t count) {
    ValueId x = turn(shaped(input({kBatch, kRows, count * width}), {kBatch, kRows, count, width}),
                     {0, 2, 1, 3});
    if (count == heads) return x;
    ValueId one = call("Unsqueeze", {x, constant(Tensor::vector<int64_t>({2}))});
    ValueId wide = call(
        "Expand",
        {one, constant(Tensor::vector<int64_t>({kBatch, count, heads / count, kRows, width}))});
    return shaped(wide, {kBatch, heads, kRows, width});
  }
  ValueId dropped(ValueId p, float ratio) {
    return ratio == 0 ? p
                      : call("Dropout", {p, number(ratio), constant(Tensor::scalar<bool>(true))});
  }
  using Step = std::function<ValueId(Chain&, ValueId)>;
  // The whole chain; `masked` and `after` stand before and behind the softmax.
  void attention(const Step& masked, const Step& after, float ratio = 0) {
    ValueId q = call("Mul", {operand(heads), number(0.7f)});
    ValueId k = turn(operand(kv_heads), {0, 1, 3, 2}), v = operand(kv_heads);
    ValueId p = call("Softmax", {masked(*this, call("MatMul", {q, k}))});
    p = dropped(after(*this, p), ratio);
    ValueId y = turn(call("MatMul", {p, v}), {0, 2, 1, 3});
    finish(shaped(y, {kBatch, kRows, heads * width}));
  }
  // Outputs: y and the gradients of <w, y>.
  void finish(ValueId y) {
    Shape s = g.value(y).type.concrete_shape();
    ValueId loss = call("ReduceSum", {call("Mul", {y, constant(random_tensor(s, -1, 1, 77))})},
                        {{"keepdims", int64_t(0)}});
    g.outputs = {y};
    for (ValueId d : gradient(loss)) g.outputs.push_back(d);
  }
  std::vector<ValueId> gradient(ValueId loss) {
    Node n;
    n.op = "Gradient";
    n.domain = std::string(kTrainingDomain);
    n.version = 1;
    n.name = cat("gradient", g.nodes.size());
    std::vector<ValueId> all = wanted;
    std::vector<std::string> xs, zs;
    for (ValueId v : wanted) xs.push_back(g.value_name(v));
    for (ValueId v : g.inputs)
      if (std::find(wanted.begin(), wanted.end(), v) == wanted.end()) {
        all.push_back(v);
        zs.push_back(g.value_name(v));
      }
    n.inputs = all;
    n.inputs.insert(n.inputs.end(), all.begin(), all.end());
    n.inputs.push_back(loss);
    n.attrs["xs"] = xs;
    n.attrs["zs"] = zs;
    n.attrs["y"] = g.value_name(loss);
    n.attrs["resolved"] = int64_t(1);
    std::vector<ValueId> out = g.add_node(std::move(n), int(wanted.size()));
    for (size_t k = 0; k < wanted.size(); ++k) g.value(out[k]).type = g.value(wanted[k]).type;
    return out;
  }
};

int fused(const Chain& c) {
  Graph g = c.g.clone();
  recognise_operators(g, {});
  g.renumber();
  g.verify("recognise");
  int count = 0;
  for (const Node& n : g.nodes) count += n.op == "FusedAttention";
  return count;
}

std::vector<Tensor> run(const Chain& c, bool recognise, int threads, size_t* arena = nullptr) {
  ProgramOptions o;
  if (!recognise) o.skip_passes = {"recognise"};
  Program p(c.g.clone(), {}, std::make_shared<State>(), std::make_shared<ThreadPool>(threads), o);
  std::vector<Tensor> out;
  for (const Value& v : p.run(std::vector<Value>(c.feeds.begin(), c.feeds.end()), 3, 5))
    out.push_back(std::get<Tensor>(v));
  if (arena) *arena = p.memory().arena;
  return out;
}

// mends: the chain's gradient has NaN for rows that it shows as zero; the operator's has not.
void check(const Chain& c, const char* what, bool mends = false) {
  EXPECT_EQ(fused(c), 1) << what;
  size_t with = 0, without = 0;
  std::vector<Tensor> got = run(c, true, 1, &with), want = run(c, false, 1, &without);
  EXPECT_LT(with, without) << what;
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].shape(), want[k].shape());
    std::vector<double> a = got[k].to_doubles(), b = want[k].to_doubles();
    for (size_t i = 0; i < a.size(); ++i)
      if (mends && k > 0 && std::isnan(b[i])) {
        ASSERT_TRUE(std::isfinite(a[i])) << what << ", output " << k;
      } else if (!std::isnan(a[i]) || !std::isnan(b[i])) {
        ASSERT_NEAR(a[i], b[i], 5e-6 * (1 + std::fabs(b[i]))) << what << ", output " << k;
      }
  }
  for (int threads : {2, 4}) {
    std::vector<Tensor> other = run(c, true, threads);
    for (size_t k = 0; k < got.size(); ++k)
      for (int64_t i = 0; i < got[k].size(); ++i) {
        const float x = other[k].as<float>()[i], y = got[k].as<float>()[i];
        ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << what << ", " << threads;
      }
  }
}

ValueId same(Chain&, ValueId v) { return v; }

Tensor padding(bool closed_item, float open, float shut) {
  Tensor t(DType::kFloat, {kBatch, 1, 1, kRows});
  for (int64_t i = 0; i < t.size(); ++i)
    t.as<float>()[i] = i < 50 || (i >= kRows && !closed_item && i % 3 != 0) ? open : shut;
  return t;
}
Tensor allowed(bool closed_item, bool open = true) {
  Tensor f = padding(closed_item, 1, 0), t(DType::kBool, f.shape());
  for (int64_t i = 0; i < t.size(); ++i) t.as<bool>()[i] = (f.as<float>()[i] != 0) == open;
  return t;
}
template <class T>
Tensor triangle(DType type, const Shape& s, T below, T above) {
  Tensor t(type, s);
  for (int64_t i = 0; i < t.size(); ++i)
    t.as<T>()[i] = i % kRows <= i / kRows % kRows ? below : above;
  return t;
}

// Scores replaced where `closed` holds, probabilities zero there: what from_torch writes.
struct Closed {
  Tensor mask;
  ValueId at = kNone;
  ValueId before(Chain& c, ValueId v) {
    at = c.input(mask, false);
    return c.call("Where", {at, c.number(kLowest), v});
  }
  ValueId after(Chain& c, ValueId p) const { return c.call("Where", {at, c.number(0), p}); }
};

TEST(RecogniseAttention, Masks) {
  for (float ratio : {0.0f, 0.3f}) {
    auto one = [&](const char* what, const Chain::Step& masked, const Chain::Step& after = same,
                   bool mends = false) {
      Chain c;
      c.attention(masked, after, ratio);
      check(c, what, mends);
    };
    auto add = [](const Tensor& t, bool gradient) {
      return [=](Chain& c, ValueId v) { return c.call("Add", {v, c.input(t, gradient)}); };
    };
    one("none", same);
    one("added padding", add(padding(false, 0, -10000), false));
    one("infinite padding", add(padding(false, 0, -kInf), false));
    one("an item of NaN", add(padding(true, 0, -kInf), false));
    one("position bias", add(random_tensor({1, 4, kRows, kRows}, -1, 1, 9), true));
    one("bias of any item", add(random_tensor({kRows}, -1, 1, 9), true));
    one("where open", [](Chain& c, ValueId v) {
      return c.call("Where", {c.input(allowed(true), false), v, c.number(-1e9f)});
    });
    one("where open, not low", [](Chain& c, ValueId v) {
      return c.call("Where", {c.input(allowed(true), false), v, c.number(-2)});
    });
    Closed closed{allowed(true, false)};
    one(
        "closed and zero", [&](Chain& c, ValueId v) { return closed.before(c, v); },
        [&](Chain& c, ValueId p) { return closed.after(c, p); });
    ValueId guard = kNone;
    one(
        "infinity guarded",
        [&](Chain& c, ValueId v) {
          ValueId m = c.input(padding(true, 0.25f, -kInf), false);
          guard = c.call("Equal", {m, c.number(-kInf)});
          return c.call("Where", {guard, c.number(kLowest), c.call("Add", {v, m})});
        },
        [&](Chain& c, ValueId p) {
          return c.call("Where", {guard, c.number(0), p});
        });
    auto no_nan = [](Chain& c, ValueId p) {
      return c.call("Where", {c.call("IsNaN", {p}), c.number(0), p});
    };
    one("NaN to zero", add(padding(true, 0, -kInf), false), no_nan, true);
    one("no NaN there", add(padding(false, 0, -kInf), false), no_nan);
  }
}

TEST(RecogniseAttention, Causal) {
  for (float ratio : {0.0f, 0.3f})
    for (int form = 0; form < 5; ++form) {
      Chain c;
      c.attention(
          [&](Chain& k, ValueId v) {
            auto added = [&](const Shape& s, float low) {
              return k.call("Add", {v, k.constant(triangle(DType::kFloat, s, 0.0f, low))});
            };
            if (form == 0) return added({kRows, kRows}, -kInf);
            if (form == 1) return added({kBatch, 1, kRows, kRows}, kLowest);
            if (form == 2)
              return k.call("Where",
                            {k.constant(triangle(DType::kBool, {kRows, kRows}, true, false)), v,
                             k.number(-kInf)});
            if (form == 3)
              return k.call("Where",
                            {k.constant(triangle(DType::kBool, {kRows, kRows}, false, true)),
                             k.number(kLowest), v});
            return k.call(
                "Add", {added({kRows, kRows}, -kInf), k.input(padding(false, 0, -10000), false)});
          },
          same, ratio);
      check(c, cat("form ", form).c_str());
      Graph g = c.g.clone();
      recognise_operators(g, {});
      for (const Node& n : g.nodes)
        if (n.op == "FusedAttention") {
          EXPECT_EQ(n.i("is_causal", 0), 1);
          EXPECT_EQ(n.inputs.size(), form == 4 ? 4u : 3u);
        }
    }
}

TEST(RecogniseAttention, RepeatedHeads) {
  Chain c;
  c.kv_heads = 2;
  c.attention([](Chain& k, ValueId v) { return k.call("Div", {v, k.number(1.5f)}); }, same, 0.2f);
  check(c, "repeated");
  Graph g = c.g.clone();
  recognise_operators(g, {});
  for (const Node& n : g.nodes) EXPECT_NE(n.op, "Expand");
}

// As torch's MultiheadAttention has it: rows first, batch and heads in one dimension.
TEST(RecogniseAttention, HeadsInOneDimension) {
  Chain c;
  auto operand = [&](std::vector<int64_t> perm) {
    return c.turn(c.shaped(c.input({kRows, kBatch, 24}), {kRows, kBatch * 4, 6}), std::move(perm));
  };
  ValueId s = c.call("MatMul", {operand({1, 0, 2}), operand({1, 2, 0})});
  ValueId m = c.input(random_tensor({kBatch * 4, 1, kRows}, -1, 1, 4), true);
  ValueId p = c.dropped(c.call("Softmax", {c.call("Add", {m, s})}, {{"axis", int64_t(2)}}), 0.2f);
  ValueId y = c.turn(c.call("MatMul", {p, operand({1, 0, 2})}), {1, 0, 2});
  c.finish(c.shaped(y, {kRows * kBatch, 24}));
  check(c, "heads in one dimension");
}

// Nothing lies before q, k, v and behind the result; k is turned through three dimensions.
TEST(RecogniseAttention, PlainOperands) {
  Chain c;
  auto operand = [&] { return c.input({kBatch, 4, kRows, 6}); };
  ValueId q = operand(), k = c.shaped(operand(), {kBatch * 4, kRows, 6});
  ValueId kt = c.shaped(c.turn(k, {0, 2, 1}), {kBatch, 4, 6, kRows});
  c.finish(c.call("MatMul", {c.call("Softmax", {c.call("MatMul", {q, kt})}), operand()}));
  check(c, "plain");
}

TEST(RecogniseAttention, WhatStays) {
  auto stays = [](const char* what, const Chain::Step& masked, const Chain::Step& after = same) {
    Chain c;
    c.attention(masked, after);
    EXPECT_EQ(fused(c), 0) << what;
  };
  stays("a factor behind the mask", [](Chain& c, ValueId v) {
    return c.call("Mul", {c.call("Add", {v, c.input(padding(false, 0, -9), false)}), c.number(2)});
  });
  stays("one number per row", [](Chain& c, ValueId v) {
    return c.call("Add", {v, c.input(random_tensor({kBatch, 4, kRows, 1}), false)});
  });
  stays("two masks", [](Chain& c, ValueId v) {
    v = c.call("Add", {v, c.input(padding(false, 0, -9), false)});
    return c.call("Add", {v, c.input(padding(false, 0, -8), false)});
  });
  stays("causal by a number beside a mask", [](Chain& c, ValueId v) {
    v = c.call("Add", {v, c.constant(triangle(DType::kFloat, {kRows, kRows}, 0.0f, kLowest))});
    return c.call("Add", {v, c.input(padding(false, 0, -8), false)});
  });
  Closed closed{allowed(true, false)};
  stays(
      "zero elsewhere than closed", [&](Chain& c, ValueId v) { return closed.before(c, v); },
      [&](Chain& c, ValueId p) {
        return c.call("Where", {c.input(allowed(false), false), c.number(0), p});
      });
  stays("guarded but not zero", [](Chain& c, ValueId v) {
    ValueId m = c.input(padding(true, 0, -kInf), false);
    ValueId guard = c.call("Equal", {m, c.number(-kInf)});
    return c.call("Where", {guard, c.number(kLowest), c.call("Add", {v, m})});
  });
  stays("a scale that learns", [](Chain& c, ValueId v) {
    ValueId scale = c.number(0.5f);
    c.wanted.push_back(scale);
    return c.call("Mul", {v, scale});
  });
  stays("a scale that may be fed", [](Chain& c, ValueId v) {
    ValueId scale = c.number(0.5f);
    c.g.inputs.push_back(scale);
    c.feeds.push_back(Tensor::scalar(0.25f));
    return c.call("Mul", {v, scale});
  });
  stays("another ratio each time", same, [](Chain& c, ValueId p) {
    return c.call("Dropout", {p, c.input(Tensor::scalar(0.1f), false),
                              c.constant(Tensor::scalar<bool>(true))});
  });
}

TEST(RecogniseAttention, WhatIsReadElsewhereStays) {
  for (const char* op : {"Softmax", "MatMul"}) {
    Chain c;
    c.attention(same, same);
    for (const Node& n : c.g.nodes)
      if (n.op == op) {
        c.g.outputs.push_back(n.outputs[0]);
        break;
      }
    EXPECT_EQ(fused(c), 0) << op;
  }
}

TEST(RecogniseAttention, SecondDerivativesKeepTheChain) {
  Chain c;
  c.attention(same, same);
  ValueId first = c.g.outputs[1];
  ValueId again = c.call("ReduceSum", {c.call("Mul", {first, first})}, {{"keepdims", int64_t(0)}});
  c.g.outputs = c.gradient(again);
  EXPECT_EQ(fused(c), 0);
  EXPECT_EQ(run(c, true, 1).size(), 3u);
}

// Wide heads and few scores: making the scores again costs more than moving them. A mask counts,
// and counts less when it needs a gradient; half of the scores always wins.
TEST(RecogniseAttention, OnlyWhereItWins) {
  auto count = [](int64_t width, const Chain::Step& masked) {
    Chain c;
    c.width = width;
    c.attention(masked, same);
    return fused(c);
  };
  auto added = [](bool learned) {
    return [=](Chain& c, ValueId v) {
      return c.call("Add", {v, c.input(padding(false, 0, -9), learned)});
    };
  };
  EXPECT_EQ(count(8, same), 1);
  EXPECT_EQ(count(16, same), 0);
  EXPECT_EQ(count(16, added(false)), 1);
  EXPECT_EQ(count(16, added(true)), 0);
  EXPECT_EQ(count(32, added(false)), 0);
  EXPECT_EQ(count(64,
                  [](Chain& c, ValueId v) {
                    Tensor t = triangle(DType::kFloat, {kRows, kRows}, 0.0f, -kInf);
                    return c.call("Add", {v, c.constant(t)});
                  }),
            1);
}

}  // namespace
}  // namespace onnxtrain::testing
