// Runs single-node graphs through the whole engine and compares.
#include "tests/support/op_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/autodiff.hpp"
#include "core/random.hpp"
#include "engine/program.hpp"
#include "op/grad_builder.hpp"

namespace onnxtrain::testing {

namespace {

std::shared_ptr<ThreadPool> pool() {
  static auto p = std::make_shared<ThreadPool>(2);
  return p;
}

Tensor from_doubles(const std::vector<double>& v, const Shape& shape, DType dtype) {
  Tensor t(dtype, shape);
  dispatch<float, double, Half, BFloat16, int64_t, int32_t>(dtype, "a test", [&]<class T>() {
    for (size_t i = 0; i < v.size(); ++i) t.as<T>()[i] = T(compute_t<T>(v[i]));
  });
  return t;
}

std::vector<Tensor> tensors(const std::vector<Value>& values) {
  std::vector<Tensor> out;
  for (const Value& v : values) {
    const Tensor* t = std::get_if<Tensor>(&v);
    out.push_back(t ? *t : Tensor());
  }
  return out;
}

std::vector<Tensor> execute(Graph g, const std::vector<Tensor>& feeds) {
  Program p(std::move(g), {}, std::make_shared<State>(), pool(), {});
  return tensors(p.run(std::vector<Value>(feeds.begin(), feeds.end()), 7, 1));
}

// Replaces nodes of our own domain by their form in standard operators; false if there was none.
bool lower_once(Graph& g) {
  std::vector<Node> old = std::move(g.nodes);
  g.nodes.clear();
  bool any = false;
  for (Node& n : old) {
    const Op* op = n.domain == kOwnDomain ? all_ops().find(n) : nullptr;
    if (!op || !op->lower) {
      g.nodes.push_back(std::move(n));
      continue;
    }
    any = true;
    GradBuilder b(g, all_ops(), n, {}, kGradOpset);
    b.set_differentiate(&differentiate);
    std::vector<ValueId> values = op->lower(b);
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      if (n.outputs[k] == kNone) continue;
      Node id;  // keeps the number of the output
      id.op = "Identity";
      id.version = kGradOpset;
      id.name = "lowered";
      id.inputs = {values.at(k)};
      id.outputs = {n.outputs[k]};
      g.nodes.push_back(std::move(id));
    }
  }
  g.renumber();
  return any;
}

double dot(const Tensor& a, const std::vector<double>& b) {
  std::vector<double> v = a.to_doubles();
  double s = 0;
  for (size_t i = 0; i < v.size(); ++i) s += v[i] * b[i];
  return s;
}

}  // namespace

Tensor random_tensor(const Shape& shape, double low, double high, uint64_t seed, DType dtype) {
  std::vector<float> u(size_t(num_elements(shape)));
  philox_uniform(seed, 11, uint64_t(u.size()), 0, int64_t(u.size()), u.data());
  std::vector<double> v;
  for (float f : u) v.push_back(low + (high - low) * double(f));
  return from_doubles(v, shape, dtype);
}

Tensor random_ints(const Shape& shape, int64_t low, int64_t high, uint64_t seed) {
  Tensor f = random_tensor(shape, double(low), double(high), seed, DType::kDouble);
  std::vector<double> v = f.to_doubles();
  for (double& d : v) d = std::floor(d);
  return from_doubles(v, shape, DType::kInt64);
}

OpCase::OpCase(std::string op, int version, std::string domain)
    : op_(std::move(op)), domain_(std::move(domain)), version_(version) {}
OpCase& OpCase::attr(const std::string& key, Attr value) {
  attrs_[key] = std::move(value);
  return *this;
}
OpCase& OpCase::input(Tensor t) {
  operands_.push_back({std::move(t), true, false});
  return *this;
}
OpCase& OpCase::constant(Tensor t) {
  operands_.push_back({std::move(t), true, true});
  return *this;
}
OpCase& OpCase::skip_input() {
  operands_.push_back({Tensor(), false, false});
  return *this;
}
OpCase& OpCase::outputs(int n) {
  outputs_ = n;
  return *this;
}
OpCase& OpCase::skip_output(int i) {
  skipped_outputs_.push_back(i);
  return *this;
}

Graph OpCase::build(const std::vector<Operand>& operands, bool unknown_shapes) const {
  Graph g;
  g.name = op_;
  Node n;
  n.op = op_;
  n.domain = domain_;
  n.version = version_;
  n.name = op_ + "_node";
  n.attrs = attrs_;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Operand& o = operands[k];
    if (!o.present) {
      n.inputs.push_back(kNone);
    } else if (o.is_constant) {
      n.inputs.push_back(g.add_constant(o.value, "c" + std::to_string(k)));
    } else {
      ValueId v =
          g.add_value("x" + std::to_string(k), TypeInfo::tensor(o.value.dtype(), o.value.shape()));
      g.inputs.push_back(v);
      n.inputs.push_back(v);
    }
  }
  if (unknown_shapes) {
    // what comes out of a sequence has a shape that the planner does not know
    for (ValueId& v : n.inputs) {
      if (v == kNone || g.value(v).constant.defined()) continue;
      auto step = [&](const char* op, std::vector<ValueId> in) {
        Node hide;
        hide.op = op;
        hide.version = 11;
        hide.name = "hide";
        hide.inputs = std::move(in);
        return g.add_node(std::move(hide), 1)[0];
      };
      DType elem = g.value(v).type.elem;
      v = step("SequenceAt",
               {step("SequenceConstruct", {v}), g.add_constant(Tensor::scalar<int64_t>(0))});
      g.value(v).type = TypeInfo::tensor(elem);
    }
  }
  std::vector<ValueId> outs = g.add_node(std::move(n), outputs_);
  for (int s : skipped_outputs_) g.nodes.back().outputs[size_t(s)] = kNone;
  for (size_t k = 0; k < outs.size(); ++k)
    if (std::find(skipped_outputs_.begin(), skipped_outputs_.end(), int(k)) ==
        skipped_outputs_.end())
      g.outputs.push_back(outs[k]);
  return g;
}

std::vector<Tensor> OpCase::run_with(const std::vector<Operand>& operands,
                                     bool unknown_shapes) const {
  std::vector<Tensor> feeds;
  for (const Operand& o : operands)
    if (o.present && !o.is_constant) feeds.push_back(o.value);
  return execute(build(operands, unknown_shapes), feeds);
}

std::vector<Tensor> OpCase::run() const { return run_with(operands_, false); }

namespace {
void compare(const Tensor& got, const Tensor& want, double rtol, double atol,
             const std::string& what) {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.shape(), want.shape()) << what;
  if (got.dtype() == DType::kString) {
    for (int64_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got.as<std::string>()[i], want.as<std::string>()[i]) << what;
    return;
  }
  std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i])) {
      ASSERT_TRUE(std::isnan(a[i])) << what << " element " << i;
    } else if (std::isinf(b[i])) {
      ASSERT_EQ(a[i], b[i]) << what << " element " << i;
    } else {
      ASSERT_NEAR(a[i], b[i], atol + rtol * std::fabs(b[i])) << what << " element " << i;
    }
  }
}
}  // namespace

OpCase& OpCase::expect(const Tensor& want, int output, double rtol, double atol) {
  for (bool unknown : {false, true}) {
    std::vector<Tensor> got = run_with(operands_, unknown);
    EXPECT_LT(size_t(output), got.size());
    if (size_t(output) < got.size())
      compare(got[size_t(output)], want, rtol, atol,
              cat(op_, " output ", output, unknown ? " (dynamic)" : ""));
  }
  return *this;
}

std::vector<OpCase::Operand> OpCase::converted(DType to) const {
  std::vector<Operand> ops = operands_;
  for (Operand& o : ops)
    if (o.present && dtype_is_differentiable(o.value.dtype()))
      o.value = from_doubles(o.value.to_doubles(), o.value.shape(), to);
  return ops;
}

OpCase& OpCase::check_grad(std::vector<int> wrt, double eps, double tol) {
  if (wrt.empty())
    for (size_t k = 0; k < operands_.size(); ++k)
      if (operands_[k].present && !operands_[k].is_constant &&
          dtype_is_differentiable(operands_[k].value.dtype()))
        wrt.push_back(int(k));
  for (DType type : {DType::kDouble, DType::kFloat}) {
    std::vector<Operand> ops = converted(type);
    std::vector<Tensor> base = run_with(ops, false);
    // cotangents: random, only for floating-point outputs
    std::vector<std::vector<double>> cot(base.size());
    Graph g = build(ops, false);
    std::vector<ValueId> ys, dys, xs;
    for (const Node& n : g.nodes) infer_node(g, n, all_ops());
    for (size_t k = 0; k < base.size(); ++k) {
      if (!dtype_is_differentiable(base[k].dtype())) continue;
      Tensor c = random_tensor(base[k].shape(), -1, 1, 100 + k, base[k].dtype());
      cot[k] = c.to_doubles();
      ys.push_back(g.outputs[k]);
      dys.push_back(g.add_constant(c, "cotangent" + std::to_string(k)));
    }
    for (int w : wrt) xs.push_back(g.nodes[0].inputs[size_t(w)]);
    std::vector<ValueId> grads = differentiate(g, all_ops(), ys, dys, xs);
    std::vector<Tensor> feeds;
    for (const Operand& o : ops)
      if (o.present && !o.is_constant) feeds.push_back(o.value);
    Graph gg = g;
    gg.outputs.clear();
    for (size_t k = 0; k < grads.size(); ++k) {
      if (grads[k] != kNone) gg.outputs.push_back(grads[k]);
    }
    std::vector<Tensor> got = execute(gg, feeds);
    Graph low = gg;
    if (lower_once(low)) {
      while (lower_once(low)) {
      }
      std::vector<Tensor> plain = execute(low, feeds);
      for (size_t k = 0; k < got.size(); ++k)
        compare(plain[k], got[k], type == DType::kDouble ? 1e-9 : 1e-4,
                type == DType::kDouble ? 1e-10 : 1e-5, cat(op_, " lowered gradient ", k));
    }
    size_t at = 0;
    for (size_t w = 0; w < wrt.size(); ++w) {
      const Tensor& x = ops[size_t(wrt[w])].value;
      std::vector<double> analytic(size_t(x.size()), 0.0);
      if (grads[w] != kNone) {
        EXPECT_EQ(got[at].shape(), x.shape()) << op_ << " gradient of input " << wrt[w];
        EXPECT_EQ(got[at].dtype(), x.dtype()) << op_ << " gradient of input " << wrt[w];
        analytic = got[at++].to_doubles();
      }
      if (analytic.size() != size_t(x.size())) return *this;
      // numeric differences always in float64
      std::vector<Operand> probe = converted(DType::kDouble);
      Tensor& px = probe[size_t(wrt[w])].value;
      double scale = 1;
      for (double a : analytic) scale = std::max(scale, std::fabs(a));
      for (int64_t i = 0; i < px.size(); ++i) {
        double keep = px.as<double>()[i], sum = 0;
        for (int s : {1, -1}) {
          px.as<double>()[i] = keep + s * eps;
          std::vector<Tensor> out = run_with(probe, false);
          for (size_t k = 0; k < out.size(); ++k)
            if (!cot[k].empty()) sum += s * dot(out[k], cot[k]);
        }
        px.as<double>()[i] = keep;
        double numeric = sum / (2 * eps);
        double allowed = (type == DType::kDouble ? tol : 2e-4) * scale;
        EXPECT_NEAR(analytic[size_t(i)], numeric, allowed)
            << op_ << " d/d input " << wrt[w] << " element " << i
            << (type == DType::kDouble ? " double" : " float");
      }
    }
  }
  return *this;
}

}  // namespace onnxtrain::testing
