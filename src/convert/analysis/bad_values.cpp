// The rule for NaN and infinities in a file.
#include "convert/analysis/bad_values.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "convert/analysis/constants.hpp"
#include "core/text.hpp"

namespace onnxtrain {

namespace {

struct Bad {
  int64_t nan = 0, infinite = 0, size = 0;
  int64_t all() const { return nan + infinite; }
};

Bad count(const Tensor& t) {
  Bad b;
  b.size = t.size();
  if (!dtype_is_differentiable(t.dtype())) return b;
  dispatch<float, double, Half, BFloat16>(t.dtype(), "a weight", [&]<class T>() {
    const T* p = t.as<T>();
    for (int64_t k = 0; k < b.size; ++k) {
      const auto v = compute_t<T>(p[k]);
      if (std::isfinite(v)) continue;
      ++(std::isnan(v) ? b.nan : b.infinite);
    }
  });
  return b;
}

// "holds NaN in 3 of its 16 values"
std::string words(const Bad& b) {
  const char* kind = !b.infinite ? "NaN" : !b.nan ? "infinities" : "NaN and infinities";
  if (b.size == 1) return cat("is ", b.nan ? "NaN" : "infinite");
  return cat("holds ", kind, " in ", with_commas(b.all()), " of its ", with_commas(b.size),
             " values");
}

// One value that is put in where something is missing.
bool is_filling(const ConstantRules& rules, ValueId v, const Bad& b) {
  if (b.nan != b.size) return false;
  const std::vector<Use> uses = rules.uses(v);
  return std::all_of(uses.begin(), uses.end(), [](const Use& u) {
    for (const char* op : {"Where", "Pad", "Concat", "ScatterND", "ScatterElements", "Equal",
                           "IsNaN", "OneHot", "If", "Loop", "Scan", "SequenceInsert"})
      if (u.node->is(op)) return true;
    return false;
  });
}

[[noreturn]] void refuse(const std::string& what, const std::string& name, const Bad& b,
                         bool trained) {
  model_error("OT1291",
              cat(what, " '", name, "' of the file ", words(b), ": no loss would be finite"),
              trained ? "export the model again, or begin with new values:  --reset"
                      : "export the model again");
}

LeftOut warning(const std::string& name, const std::string& text) {
  LeftOut l;
  l.names = {name};
  l.text = text;
  l.hint = "if that is not meant, export the model again";
  return l;
}

}  // namespace

void check_values(const Model& m, const Recipe& r, const std::vector<InitializerRole>& roles,
                  std::vector<LeftOut>* warnings) {
  const ConstantRules rules(m);
  for (const InitializerRole& x : roles) {
    if (r.reset && x.role == Role::kTrained) continue;
    const Bad b = count(m.main.value(x.value).constant);
    if (b.all() == 0) continue;
    const std::string name = m.main.value_name(x.value);
    switch (x.role) {
      case Role::kTrained:
      case Role::kFrozen:
      case Role::kStopped:
        refuse("weight", name, b, x.role == Role::kTrained);
      case Role::kStatistic:
        refuse("running statistic", name, b, false);
      case Role::kElsewhere:
        if (warnings)
          warnings->push_back(
              warning(name, cat("weight '", name, "' of the file ", words(b), "; ", x.because)));
        break;
      case Role::kConstant:
        if (warnings && b.nan > 0 && !is_filling(rules, x.value, b))
          warnings->push_back(
              warning(name, cat("constant '", name, "' of the file (", x.because, ") ", words(b))));
        break;
      case Role::kUnused:
      case Role::kIntegers:
        break;
    }
  }
}

void check_state_values(const Model& m) {
  std::set<std::string> replaced;
  for (const TrainingStep& step : m.training)
    for (const auto& [name, value] : step.initialization_binding) replaced.insert(name);
  for (const std::string& name : m.state_names()) {
    const Tensor* t = m.initializer(name);
    if (!t || replaced.count(name) != 0) continue;
    if (const Bad b = count(*t); b.all() > 0) {
      const ValueId v = m.main.find(name);
      const bool weight = v != kNone && m.main.value(v).initializer;
      refuse(weight ? "weight" : "state variable", name, b, false);
    }
  }
}

}  // namespace onnxtrain
