// Feeds by name -> program inputs by position.
#include "engine/session.hpp"

#include <algorithm>
#include <mutex>

#include "autodiff/autodiff.hpp"
#include "core/closest.hpp"
#include "core/text.hpp"
#include "core/thread_count.hpp"

namespace onnxtrain {

namespace {

std::string describe(const Value& v) {
  if (const Tensor* t = std::get_if<Tensor>(&v))
    return cat(dtype_name(t->dtype()), to_string(t->shape()));
  if (std::holds_alternative<std::monostate>(v)) return "nothing (an empty optional)";
  if (std::holds_alternative<std::shared_ptr<Sequence>>(v)) return "a sequence";
  if (std::holds_alternative<std::shared_ptr<MapValue>>(v)) return "a map";
  return "a sparse tensor";
}

[[noreturn]] void mismatch(const ValueDef& d, const Value& v, const std::string& what,
                           const std::string& hint = {}) {
  data_error("OT2111",
             cat("input '", d.name, "' got ", describe(v), ", the model wants ", to_string(d.type),
                 ": ", what),
             hint);
}

// NumPy's name of an element type; "" when it has none.
std::string numpy_name(DType t) {
  if (t == DType::kFloat) return "numpy.float32";
  if (t == DType::kDouble) return "numpy.float64";
  if (t == DType::kString) return "str";
  if (t == DType::kBFloat16 || dtype_size(t) == 0) return {};
  return cat("numpy.", dtype_name(t));
}

void check_tensor(const ValueDef& d, const Value& v, const Tensor& t) {
  if (d.type.elem != DType::kUndefined && t.dtype() != d.type.elem)
    mismatch(d, v,
             cat("element type ", dtype_name(t.dtype()), " instead of ", dtype_name(d.type.elem)),
             t.dtype() == DType::kString
                 ? "the model takes numbers: text becomes numbers in a model that is made for it "
                   "(onnxtrain new)"
             : numpy_name(d.type.elem).empty()
                 ? std::string()
                 : cat("convert it in Python: x.astype(", numpy_name(d.type.elem), ")"));
  if (!d.type.shape) return;
  const auto& want = *d.type.shape;
  if (want.size() != t.shape().size())
    mismatch(d, v, cat("rank ", t.rank(), " instead of ", want.size()),
             size_t(t.rank()) + 1 == want.size() && t.rank() > 0 && want.back().known() &&
                     want.back().value == 1
                 ? "one column needs a dimension behind, in Python: x[..., None]"
             : size_t(t.rank()) + 1 == want.size()
                 ? "one row needs a dimension in front, in Python: x[None]"
             : size_t(t.rank()) == want.size() + 1 && t.shape().back() == 1
                 ? "one value per row, in Python: x[..., 0]"
                 : "give an array with as many dimensions");
  for (size_t k = 0; k < want.size(); ++k)
    if (want[k].known() && want[k].value != t.shape()[k])
      mismatch(d, v, cat("dimension ", k, " is ", t.shape()[k], " instead of ", want[k].value),
               "the file fixes this size: give an array that has it");
}

}  // namespace

void check_feed(const ValueDef& d, const Value& v) {
  using Kind = TypeInfo::Kind;
  const Tensor* t = std::get_if<Tensor>(&v);
  switch (d.type.kind) {
    case Kind::kTensor:
      if (!t) mismatch(d, v, "not a tensor", "give an array");
      check_tensor(d, v, *t);
      break;
    case Kind::kSequence:
      if (!std::holds_alternative<std::shared_ptr<Sequence>>(v)) mismatch(d, v, "not a sequence");
      break;
    case Kind::kMap:
      if (!std::holds_alternative<std::shared_ptr<MapValue>>(v)) mismatch(d, v, "not a map");
      break;
    default:
      break;
  }
}

namespace {

// `feeds`: an input that has its value is no suggestion.
[[noreturn]] void unknown_feed(const std::string& name, const std::vector<std::string>& inputs,
                               const Feeds& feeds) {
  std::string all, best;
  size_t distance = 4;
  for (const auto& i : inputs) {
    all += (all.empty() ? "'" : ", '") + i + "'";
    size_t e = edit_distance(name, i);
    if (e < distance && feeds.count(i) == 0) {
      distance = e;
      best = i;
    }
  }
  data_error(
      "OT2112",
      cat("there is no input named '", name, "'; the inputs are ", all.empty() ? "none" : all),
      best.empty() ? "leave it out, or name an input" : cat("did you mean '", best, "'?"));
}

// A name that no input has is often the missing one, mistyped.
[[noreturn]] void missing_feed(const Graph& g, const ValueDef& d, const Feeds& feeds) {
  std::string others;
  for (const auto& [name, value] : feeds)
    if (std::none_of(g.inputs.begin(), g.inputs.end(),
                     [&, &fed = name](ValueId v) { return g.value_name(v) == fed; }))
      others += (others.empty() ? "'" : ", '") + name + "'";
  data_error("OT2113",
             cat("input '", d.name, "' (", to_string(d.type), ") was not given",
                 others.empty() ? "" : cat("; no input is named ", others)),
             cat("add an array '", d.name, "' to --inputs in.npz"));
}

}  // namespace

std::string name_hint(const std::string& name, const std::vector<std::string>& names) {
  if (const std::string near = closest(name, names); !near.empty())
    return cat("did you mean '", near, "'?");
  constexpr size_t kShown = 12;
  std::string all;
  for (size_t k = 0; k < names.size() && k < kShown; ++k)
    all += cat(k ? ", '" : "'", names[k], "'");
  if (names.size() > kShown) all += cat(" and ", names.size() - kShown, " more");
  return cat("there are ", all.empty() ? "none" : all);
}

void unknown_feed(const std::string& name, const std::vector<std::string>& inputs) {
  unknown_feed(name, inputs, {});
}

namespace {

std::vector<std::string> names_of(const Graph& g, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  for (ValueId v : values) names.push_back(g.value_name(v));
  return names;
}

}  // namespace

struct Session::Impl {
  ProgramOptions options;
  std::shared_ptr<ThreadPool> pool;
  std::mutex mutex;
  StepObserver* observer = nullptr;
  // Programs by the set of defaulted inputs (initializers that are also inputs) that were fed.
  std::map<std::vector<std::string>, std::unique_ptr<Program>> programs;
};

Session::Session(std::shared_ptr<const Model> model, ProgramOptions options)
    : model_(std::move(model)), impl_(std::make_unique<Impl>()) {
  int threads = thread_count(options.threads);
  impl_->pool = std::make_shared<ThreadPool>(threads);
  impl_->options = std::move(options);
}

Session::~Session() = default;

Program& Session::program_for(const Feeds& feeds, std::vector<Value>& inputs) {
  const Graph& g = model_->main;
  size_t used = 0;
  std::vector<std::string> defaults_fed;
  for (ValueId v : g.inputs) {
    const ValueDef& d = g.value(v);
    auto it = feeds.find(d.name);
    if (it == feeds.end()) {
      if (d.constant.defined()) continue;
      if (d.type.kind == TypeInfo::Kind::kOptional) {
        inputs.emplace_back();
        continue;
      }
      missing_feed(g, d, feeds);
    }
    check_feed(d, it->second);
    inputs.push_back(it->second);
    ++used;
    if (d.constant.defined()) defaults_fed.push_back(d.name);
  }
  if (used != feeds.size()) {
    std::vector<std::string> names;
    for (ValueId v : g.inputs) names.push_back(g.value_name(v));
    for (const auto& [name, value] : feeds)
      if (std::find(names.begin(), names.end(), name) == names.end())
        unknown_feed(name, names, feeds);
  }
  auto& slot = impl_->programs[defaults_fed];
  if (!slot) {
    Graph copy = g.clone();
    std::vector<ValueId> kept;
    for (ValueId v : copy.inputs) {
      ValueDef& d = copy.value(v);
      if (!d.constant.defined()) {
        kept.push_back(v);
      } else if (std::find(defaults_fed.begin(), defaults_fed.end(), d.name) !=
                 defaults_fed.end()) {
        d.constant = Tensor();
        kept.push_back(v);
      }
    }
    copy.inputs = std::move(kept);
    // for inference, state variables are constants: they can be folded and packed
    for (ValueDef& d : copy.values) d.state.clear();
    resolve_gradients(copy);
    slot =
        std::make_unique<Program>(std::move(copy), std::vector<std::pair<ValueId, std::string>>{},
                                  std::make_shared<State>(), impl_->pool, impl_->options);
    slot->set_observer(impl_->observer);
  }
  return *slot;
}

std::vector<NamedValue> Session::run(const Feeds& feeds, const std::vector<std::string>& outputs,
                                     uint64_t seed, uint64_t step) {
  std::vector<Value> inputs;
  Program* program;
  {
    std::lock_guard lock(impl_->mutex);
    program = &program_for(feeds, inputs);
  }
  const Graph& g = model_->main;
  std::vector<char> wanted;
  std::vector<size_t> order;
  if (!outputs.empty()) {
    wanted.assign(g.outputs.size(), 0);
    for (const auto& name : outputs) {
      size_t k = 0;
      while (k < g.outputs.size() && g.value_name(g.outputs[k]) != name) ++k;
      if (k == g.outputs.size())
        usage_error("OT1123", cat("the model has no output named '", name, "'"),
                    name_hint(name, names_of(g, g.outputs)));
      wanted[k] = 1;
      order.push_back(k);
    }
  } else {
    for (size_t k = 0; k < g.outputs.size(); ++k) order.push_back(k);
  }
  std::vector<Value> values = program->run(inputs, seed, step, wanted);
  std::vector<NamedValue> out;
  for (size_t k : order) out.emplace_back(g.value_name(g.outputs[k]), values[k]);
  return out;
}

void Session::set_observer(StepObserver* observer) {
  std::lock_guard lock(impl_->mutex);
  impl_->observer = observer;
  for (auto& [fed, program] : impl_->programs) program->set_observer(observer);
}

Plan& Session::plan_for(const Feeds& feeds) {
  std::lock_guard lock(impl_->mutex);
  std::vector<Value> inputs;
  Program& p = program_for(feeds, inputs);
  return p.plan_for(inputs);
}

}  // namespace onnxtrain
