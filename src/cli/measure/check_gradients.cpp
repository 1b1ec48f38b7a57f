// Directional derivatives: gradients as the model computes them against differences of the same
// model in float64. Where it does not run in float64, several step sizes are tried and the gap is
// judged by how well they agree among themselves.
#include "cli/measure/check_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "cli/measure/random_feeds.hpp"
#include "convert/analysis/no_loss.hpp"
#include "convert/prepare.hpp"
#include "engine/gradients.hpp"
#include "onnx/in_double.hpp"

namespace onnxtrain::cli {

namespace {

// The model with its parameters as inputs, so that one session serves every shifted value.
Model with_open_parameters(const Model& m, const std::vector<std::string>& parameters) {
  Model open = m;
  open.unshare_main();
  open.training.clear();
  Graph& g = open.edit_main();
  for (const std::string& name : parameters) {
    ValueId v = g.find(name);
    ValueDef& d = g.value(v);
    d.type = TypeInfo::tensor(d.constant.dtype(), d.constant.shape());
    d.constant = Tensor();
    d.initializer = false;
    d.state.clear();
    if (std::find(g.inputs.begin(), g.inputs.end(), v) == g.inputs.end()) g.inputs.push_back(v);
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
  const std::vector<double> from = t.to_doubles(), along = direction.to_doubles();
  dispatch<float, double, Half, BFloat16>(t.dtype(), "a parameter", [&]<class T>() {
    for (size_t k = 0; k < from.size(); ++k)
      out.as<T>()[k] = T(compute_t<T>(from[k] + h * along[k]));
  });
  return out;
}

Tensor random_like(const Tensor& t, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Tensor out(t.dtype(), t.shape());
  dispatch<float, double, Half, BFloat16>(t.dtype(), "a parameter", [&]<class T>() {
    for (int64_t k = 0; k < t.size(); ++k) out.as<T>()[k] = T(compute_t<T>(normal(random)));
  });
  return out;
}

Tensor in_type(const Tensor& t, DType to) {
  if (t.dtype() == to || !dtype_is_differentiable(t.dtype())) return t;
  Tensor out(to, t.shape());
  const std::vector<double> values = t.to_doubles();
  dispatch<float, double, Half, BFloat16>(to, "a value", [&]<class T>() {
    for (size_t k = 0; k < values.size(); ++k) out.as<T>()[k] = T(compute_t<T>(values[k]));
  });
  return out;
}

// Initializers that have gradients: of the outputs as they stand, no loss is needed.
std::vector<std::string> floating_parameters(const Model& m) {
  std::vector<std::string> names, out;
  try {
    names = trainable_parameters(m, {});
  } catch (const NoLossFits&) {  // everything is looked at
    for (const ValueDef& d : m.main.values)
      if (d.initializer && d.constant.rank() > 0) names.push_back(d.name);
  }
  for (const std::string& n : names)
    if (m.initializer(n) && dtype_is_differentiable(m.initializer(n)->dtype())) out.push_back(n);
  return out;
}

class Checker {
 public:
  Checker(const Model& m, uint64_t seed, const Limits& limits)
      : model_(m),
        wide_(in_double(m, all_ops())),
        seed_(seed),
        parameters_(floating_parameters(m)),
        feeds_(random_feeds(m, 2, seed)) {
    options_.limits = limits;
    for (const std::string& name : parameters_) start_[name] = *m.initializer(name);
    if (wide_) open(*wide_, DType::kDouble);
    if (!session_) open(m, DType::kUndefined);
    if (weights_.empty())
      model_error("OT1236", "the model has no output whose gradients could be measured",
                  "an output of type float or double is needed");
  }

  std::vector<GradientCheck> run() {
    point_ = start_;
    auto gradients = gradients_here();
    std::vector<GradientCheck> all;
    for (const auto& [name, g] : gradients) all.push_back(check(name, g));
    // a value that sits on a kink (a bias of 0 under a ReLU) has no derivative to measure: what
    // disagrees is looked at again beside it
    for (int again = 0; again < 3; ++again) {
      if (std::all_of(all.begin(), all.end(), [](const GradientCheck& c) { return c.ok; })) break;
      for (const auto& [name, t] : start_)
        point_[name] = shifted(t, random_like(t, ++seed_), 0.03 * step(t));
      gradients = gradients_here();
      for (GradientCheck& c : all)
        if (!c.ok) c = check(c.name, gradients.at(c.name));
    }
    return all;
  }

 private:
  // A session for differences, if the model runs in these types.
  void open(const Model& m, DType type) {
    try {
      session_.emplace(std::make_shared<const Model>(with_open_parameters(m, parameters_)),
                       options_);
      type_ = type;
      point_ = start_;
      for (const auto& [name, value] : session_->run(session_feeds({}, {}))) {
        const Tensor* t = std::get_if<Tensor>(&value);
        if (t && (t->dtype() == DType::kFloat || t->dtype() == DType::kDouble))
          weights_[name] = random_like(*t, ++seed_);
      }
    } catch (const Error&) {  // in double: an operator without it, or more memory than allowed
      session_.reset();
      if (type != DType::kDouble) throw;
    }
  }

  // Everything in the types of the session, with one parameter at another value.
  Feeds session_feeds(const std::string& changed, const Tensor& value) const {
    Feeds f = feeds_;
    for (const auto& [name, t] : point_) f[name] = name == changed ? value : t;
    if (type_ != DType::kUndefined)
      for (auto& [name, v] : f)
        if (const Tensor* t = std::get_if<Tensor>(&v); t && wide_type(name) == type_)
          v = in_type(*t, type_);
    return f;
  }

  DType wide_type(const std::string& name) const {
    const ValueId v = wide_->main.find(name);
    return v == kNone ? DType::kUndefined : wide_->main.value(v).type.elem;
  }

  // In the model's own types; in double where those are too coarse to say anything.
  std::map<std::string, Tensor> gradients_here() {
    const bool coarse =
        type_ == DType::kDouble && std::any_of(start_.begin(), start_.end(), [](const auto& p) {
          return p.second.dtype() != DType::kFloat && p.second.dtype() != DType::kDouble;
        });
    Model main = coarse ? *wide_ : model_;
    main.training.clear();
    main.replace_initializers([&](const std::string& name) {
      auto it = point_.find(name);
      return it == point_.end() ? Tensor() : in_type(it->second, main.initializer(name)->dtype());
    });
    GradientRequest q;
    for (const auto& [name, w] : weights_) {
      q.of.push_back(name);
      q.cotangents[name] = in_type(w, main.main.value(main.main.find(name)).type.elem);
    }
    q.wrt = parameters_;
    Feeds data;
    const Feeds wide = coarse ? session_feeds({}, {}) : feeds_;
    for (const std::string& name : model_.input_names()) data[name] = wide.at(name);
    std::map<std::string, Tensor> out;
    for (const auto& [name, g] : onnxtrain::gradients(main, data, q, options_))
      out[name] = std::get<Tensor>(g);
    return out;
  }

  double value(const std::string& name, const Tensor& t) {
    double sum = 0;
    for (const auto& [output, v] : session_->run(session_feeds(name, t)))
      if (auto it = weights_.find(output); it != weights_.end())
        sum += dot(std::get<Tensor>(v), it->second);
    return sum;
  }

  static double step(const Tensor& p) {
    return std::max(std::sqrt(dot(p, p) / double(std::max<int64_t>(1, p.size()))), 0.1);
  }

  GradientCheck check(const std::string& name, const Tensor& gradient) {
    const bool fine = type_ == DType::kDouble || start_[name].dtype() == DType::kDouble;
    const Tensor p = fine ? in_type(point_[name], DType::kDouble) : point_[name];
    Tensor d = random_like(p, ++seed_);
    GradientCheck c;
    c.name = name;
    c.gradient = dot(gradient, d);
    double h0 = step(p) * (fine ? 1e-4 : 1e-2), best = INFINITY, last = 0;
    for (int k = 0; k < 4; ++k) {
      double h = h0 / std::pow(3, k);
      double fd = (value(name, shifted(p, d, h)) - value(name, shifted(p, d, -h))) / (2 * h);
      if (k > 0) best = std::min(best, std::fabs(fd - last));
      if (k == 0 || std::fabs(fd - c.gradient) < std::fabs(c.measured - c.gradient))
        c.measured = fd;
      last = fd;
    }
    // terms of both signs may cancel along one direction
    double scale = std::max({std::fabs(c.gradient), std::fabs(c.measured),
                             0.1 * std::sqrt(dot(gradient, gradient)), 1e-6});
    c.error = std::fabs(c.gradient - c.measured) / scale;
    c.noise = best / scale;
    const double limit = gradient.dtype() != DType::kDouble ? (fine ? 1e-3 : 1e-2) : 1e-5;
    c.ok = c.error <= limit || c.error <= 2 * c.noise;
    return c;
  }

  const Model& model_;
  std::optional<Model> wide_;
  uint64_t seed_;
  ProgramOptions options_;
  std::vector<std::string> parameters_;
  Feeds feeds_;  // without parameters
  std::map<std::string, Tensor> start_, point_;
  std::optional<Session> session_;
  DType type_ = DType::kUndefined;  // of what the session computes; undefined: as the model does
  std::map<std::string, Tensor> weights_;
};

}  // namespace

std::vector<GradientCheck> check_gradients(const Model& m, uint64_t seed, const Limits& limits) {
  return Checker(m, seed, limits).run();
}

}  // namespace onnxtrain::cli
