// Two probes of a shape function.
#include "op/symbolic.hpp"

#include <map>
#include <optional>

#include "op/model_refusal.hpp"

namespace onnxtrain {

namespace {

// Primes, so that products and sums of sizes are not mistaken for a size.
constexpr int64_t kProbe[2][12] = {{101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157},
                                   {211, 223, 227, 229, 233, 239, 241, 251, 257, 263, 269, 271}};

class Sizes {
 public:
  // shared: all sizes without a name are one and the same
  explicit Sizes(bool shared) : shared_(shared) {}
  std::optional<int> index(const Dim& d) {
    std::string key = !d.symbol.empty() ? d.symbol : shared_ ? "" : cat("#", unnamed_++);
    auto it = known_.find(key);
    if (it != known_.end()) return it->second;
    if (known_.size() >= 12) return std::nullopt;
    names_.push_back(d.symbol);
    return known_[key] = int(names_.size()) - 1;
  }
  Dim dim(int64_t a, int64_t b) const {
    if (a == b) return {a, {}};
    for (size_t k = 0; k < names_.size(); ++k)
      if (kProbe[0][k] == a && kProbe[1][k] == b) return {-1, names_[k]};
    return {};
  }

 private:
  bool shared_;
  int unnamed_ = 0;
  std::map<std::string, int> known_;
  std::vector<std::string> names_;
};

struct Probe {
  std::vector<TensorType> out;
  std::vector<char> dynamic;
};

bool probe(Graph& g, const Node& n, const Op& op, bool shared) {
  Sizes sizes(shared);
  std::vector<TensorType> in[2];
  std::vector<const Tensor*> values;
  for (ValueId v : n.inputs) {
    const ValueDef* d = v == kNone ? nullptr : &g.value(v);
    values.push_back(d && d->is_constant() ? &d->constant : nullptr);
    if (!d) {
      in[0].push_back({});
      in[1].push_back({});
      continue;
    }
    if (!d->type.is_tensor() || !d->type.shape || d->type.elem == DType::kUndefined) return false;
    Shape s[2];
    for (const Dim& x : *d->type.shape) {
      std::optional<int> k = x.known() ? std::optional<int>(0) : sizes.index(x);
      if (!k) return false;
      for (int p = 0; p < 2; ++p) s[p].push_back(x.known() ? x.value : kProbe[p][*k]);
    }
    for (int p = 0; p < 2; ++p) in[p].push_back({d->type.elem, s[p]});
  }
  Probe got[2];
  for (int p = 0; p < 2; ++p) {
    ShapeCtx c(n, in[p], values);
    if (!infer_shape(op, c)) return false;
    got[p] = {c.out, c.dynamic};
  }
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    if (n.outputs[k] == kNone || !got[0].out[k].present()) continue;
    TypeInfo& t = g.value(n.outputs[k]).type;
    if (t.is_tensor() && t.shape) continue;  // known better
    t = TypeInfo::tensor(got[0].out[k].dtype);
    const Shape &a = got[0].out[k].shape, &b = got[1].out[k].shape;
    if (got[0].dynamic[k] || got[1].dynamic[k] || a.size() != b.size()) continue;
    t.shape.emplace();
    for (size_t d = 0; d < a.size(); ++d) t.shape->push_back(sizes.dim(a[d], b[d]));
  }
  return true;
}

}  // namespace

bool infer_symbolic(Graph& g, const Node& n, const Op& op) {
  for (bool shared : {false, true}) {
    bool found = false;
    if (!model_refusal([&] { found = probe(g, n, op, shared); })) return found;
    // sizes that must be equal got different numbers: once more with one number for all
  }
  return false;
}

}  // namespace onnxtrain
