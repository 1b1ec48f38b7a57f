// Directional derivatives. float32 limits what differences can show: three step sizes are tried and
// the gap is judged by how well they agree among themselves.
#include "cli/check_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "cli/random_feeds.hpp"
#include "convert/prepare.hpp"
#include "engine/gradients.hpp"

namespace onnxtrain::cli {

namespace {

// The model with its parameters as inputs, so that one session serves every shifted value.
Model with_open_parameters(const Model& m, const std::vector<std::string>& parameters) {
  Model open = m;
  open.main = m.main.clone();
  open.training.clear();
  for (const std::string& name : parameters) {
    ValueId v = open.main.find(name);
    ValueDef& d = open.main.value(v);
    d.type = TypeInfo::tensor(d.constant.dtype(), d.constant.shape());
    d.constant = Tensor();
    d.initializer = false;
    d.state.clear();
    if (std::find(open.main.inputs.begin(), open.main.inputs.end(), v) == open.main.inputs.end())
      open.main.inputs.push_back(v);
  }
  return open;
}

double dot(const Tensor& a, const Tensor& b) {
  std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  double sum = 0;
  for (size_t k = 0; k < x.size(); ++k) sum += x[k] * y[k];
  return sum;
}

Tensor shifted(const Tensor& t, const Tensor& direction, double h) {
  Tensor out(t.dtype(), t.shape());
  dispatch<float, double>(t.dtype(), "a parameter", [&]<class T>() {
    for (int64_t k = 0; k < t.size(); ++k)
      out.as<T>()[k] = T(double(t.as<T>()[k]) + h * double(direction.as<T>()[k]));
  });
  return out;
}

Tensor random_like(const Tensor& t, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Tensor out(t.dtype(), t.shape());
  dispatch<float, double>(t.dtype(), "a parameter", [&]<class T>() {
    for (int64_t k = 0; k < t.size(); ++k) out.as<T>()[k] = T(normal(random));
  });
  return out;
}

class Checker {
 public:
  Checker(const Model& m, uint64_t seed)
      : model_(m),
        seed_(seed),
        parameters_(floating(trainable_parameters(m, {}))),
        session_(std::make_shared<const Model>(with_open_parameters(m, parameters_))),
        feeds_(random_feeds(m, 2, seed)) {
    for (const std::string& name : parameters_) feeds_[name] = *m.initializer(name);
    for (const auto& [name, value] : session_.run(feeds_)) {
      const Tensor* t = std::get_if<Tensor>(&value);
      if (t && (t->dtype() == DType::kFloat || t->dtype() == DType::kDouble))
        weights_[name] = random_like(*t, ++seed_);
    }
    if (weights_.empty()) model_error("OT1236", "the model has no floating-point output");
  }

  std::vector<GradientCheck> run() {
    GradientRequest q;
    for (const auto& [name, w] : weights_) {
      q.of.push_back(name);
      q.cotangents[name] = w;
    }
    q.wrt = parameters_;
    Feeds data;
    for (const std::string& name : model_.input_names()) data[name] = feeds_[name];
    Model main = model_;
    main.training.clear();
    auto gradients = onnxtrain::gradients(main, data, q);
    std::vector<GradientCheck> all;
    for (const auto& [name, g] : gradients) all.push_back(check(name, std::get<Tensor>(g)));
    return all;
  }

 private:
  std::vector<std::string> floating(const std::vector<std::string>& names) const {
    std::vector<std::string> out;
    for (const std::string& n : names) {
      if (!model_.initializer(n)) continue;  // a part of a merged one
      DType t = model_.initializer(n)->dtype();
      if (t == DType::kFloat || t == DType::kDouble) out.push_back(n);
    }
    return out;
  }

  double value(const std::string& name, const Tensor& t) {
    Value old = feeds_[name];
    feeds_[name] = t;
    double sum = 0;
    for (const auto& [output, v] : session_.run(feeds_))
      if (auto it = weights_.find(output); it != weights_.end())
        sum += dot(std::get<Tensor>(v), it->second);
    feeds_[name] = old;
    return sum;
  }

  GradientCheck check(const std::string& name, const Tensor& gradient) {
    const Tensor& p = *model_.initializer(name);
    Tensor d = random_like(p, ++seed_);
    GradientCheck c;
    c.name = name;
    c.gradient = dot(gradient, d);
    double size = std::sqrt(dot(p, p) / double(std::max<int64_t>(1, p.size())));
    bool narrow = p.dtype() == DType::kFloat;
    double h0 = std::max(size, 0.1) * (narrow ? 1e-2 : 1e-4), best = INFINITY, last = 0;
    for (int k = 0; k < 4; ++k) {
      double h = h0 / std::pow(3, k);
      double fd = (value(name, shifted(p, d, h)) - value(name, shifted(p, d, -h))) / (2 * h);
      if (k > 0) best = std::min(best, std::fabs(fd - last));
      if (k == 0 || std::fabs(fd - c.gradient) < std::fabs(c.measured - c.gradient))
        c.measured = fd;
      last = fd;
    }
    double scale = std::max({std::fabs(c.gradient), std::fabs(c.measured), 1e-6});
    c.error = std::fabs(c.gradient - c.measured) / scale;
    c.noise = best / scale;
    c.ok = c.error <= (narrow ? 1e-2 : 1e-5) || c.error <= 2 * c.noise;
    return c;
  }

  const Model& model_;
  uint64_t seed_;
  std::vector<std::string> parameters_;
  Session session_;
  Feeds feeds_;
  std::map<std::string, Tensor> weights_;
};

}  // namespace

std::vector<GradientCheck> check_gradients(const Model& m, uint64_t seed) {
  return Checker(m, seed).run();
}

}  // namespace onnxtrain::cli
