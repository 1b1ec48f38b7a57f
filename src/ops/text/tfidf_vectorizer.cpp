// TfIdfVectorizer: counts of n-grams with skips, optionally weighted.
#include <map>
#include <memory>

#include "op/op.hpp"

namespace onnxtrain::ops {

namespace {

// A trie of n-grams: `index` is the output column, -1 where no n-gram ends.
template <class K>
struct Trie {
  int64_t index = -1;
  std::map<K, std::unique_ptr<Trie>> next;
};

struct Settings {
  int64_t min_length, max_length, max_skip, columns;
  bool counts, weighted;  // TF: counts; IDF: presence times weight; TFIDF: both
  std::vector<int64_t> starts, columns_of;
  std::vector<float> weights;
};

Settings settings_of(const Node& n) {
  Settings s;
  s.min_length = n.i("min_gram_length", 1);
  s.max_length = n.i("max_gram_length", 1);
  s.max_skip = n.i("max_skip_count", 0);
  s.starts = n.ints("ngram_counts");
  s.columns_of = n.ints("ngram_indexes");
  s.weights = n.floats("weights");
  std::string mode = n.s("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    model_error("OT1106", cat("mode '", mode, "' is not TF, IDF or TFIDF"));
  s.counts = mode != "IDF";
  s.weighted = mode != "TF" && !s.weights.empty();
  if (s.min_length < 1 || s.max_length < s.min_length || s.max_length > (1 << 20))
    model_error("OT1106", cat("gram lengths ", s.min_length, " to ", s.max_length));
  if (s.max_skip < 0 || s.max_skip > (1 << 20))
    model_error("OT1106", cat("max_skip_count is ", s.max_skip));
  if (s.columns_of.empty()) model_error("OT1106", "ngram_indexes is empty");
  s.columns = 0;
  for (int64_t c : s.columns_of) {
    if (c < 0 || c > (int64_t(1) << 40)) model_error("OT1106", cat("ngram_indexes has ", c));
    s.columns = std::max(s.columns, c + 1);
  }
  if (s.weighted && int64_t(s.weights.size()) < s.columns)
    model_error("OT1106", cat("weights has ", s.weights.size(), " entries, expected ", s.columns));
  return s;
}

template <class K>
std::shared_ptr<Trie<K>> build(const Settings& s, const std::vector<K>& pool) {
  auto root = std::make_shared<Trie<K>>();
  size_t ngram = 0;
  for (size_t k = 0; k < s.starts.size(); ++k) {
    int64_t size = int64_t(k) + 1, begin = s.starts[k];
    int64_t end = k + 1 < s.starts.size() ? s.starts[k + 1] : int64_t(pool.size());
    if (begin < 0 || end < begin || end > int64_t(pool.size()) || (end - begin) % size)
      model_error("OT1106", cat("ngram_counts places ", size, "-grams at ", begin, " to ", end,
                                " of a pool of ", pool.size()));
    for (int64_t at = begin; at < end; at += size, ++ngram) {
      if (ngram >= s.columns_of.size())
        model_error("OT1106", "ngram_indexes has fewer entries than there are n-grams");
      if (size < s.min_length || size > s.max_length) continue;
      Trie<K>* node = root.get();
      for (int64_t i = 0; i < size; ++i) {
        auto& child = node->next[pool[size_t(at + i)]];
        if (!child) child = std::make_unique<Trie<K>>();
        node = child.get();
      }
      node->index = s.columns_of[ngram];
    }
  }
  return root;
}

template <class K, class T>
void count_row(const Trie<K>& root, const Settings& s, const T* x, int64_t n, float* y) {
  int64_t from = s.min_length;
  for (int64_t skip = 1; skip <= s.max_skip + 1; ++skip) {
    for (int64_t start = 0; start < n; ++start) {
      if (start + skip * (from - 1) >= n) break;
      const Trie<K>* node = &root;
      int64_t size = 1;
      for (int64_t at = start; at < n && size <= s.max_length; at += skip, ++size) {
        auto it = node->next.find(K(x[at]));
        if (it == node->next.end()) break;
        node = it->second.get();
        if (size >= from && node->index >= 0) y[node->index] += 1;
      }
    }
    // single items do not depend on the skip: count them once
    if (from == 1 && ++from > s.max_length) break;
  }
}

void shape(ShapeCtx& c) {
  Settings s = settings_of(c.node());
  const Shape& in = c.shape(0);
  if (in.size() > 2)
    model_error("OT1130",
                cat("TfIdfVectorizer of shape ", to_string(in), ", expected [C] or [B,C]"));
  c.set(0, DType::kFloat, in.size() == 2 ? Shape{in[0], s.columns} : Shape{s.columns});
}

template <class K, class T>
Kernel make_for(Prepare& p, const std::vector<K>& pool) {
  Settings s = settings_of(p.node());
  auto root = build<K>(s, pool);
  const Shape& in = p.in(0).shape;
  int64_t rows = in.size() == 2 ? in[0] : 1, n = in.empty() ? 1 : in.back();
  return [=](const Run& r) {
    const T* x = r.in<T>(0);
    float* y = r.out<float>(0);
    std::fill_n(y, rows * s.columns, 0.f);
    for (int64_t row = 0; row < rows; ++row) {
      float* out = y + row * s.columns;
      count_row(*root, s, x + row * n, n, out);
      for (int64_t k = 0; k < s.columns; ++k) {
        if (!s.counts) out[k] = out[k] > 0 ? 1 : 0;
        if (s.weighted) out[k] *= s.weights[size_t(k)];
      }
    }
  };
}

Kernel make(Prepare& p) {
  DType t = p.in(0).dtype;
  std::vector<std::string> words = p.node().strings("pool_strings");
  std::vector<int64_t> numbers = p.node().ints("pool_int64s");
  if (t == DType::kString) return make_for<std::string, std::string>(p, words);
  if (t == DType::kInt32) return make_for<int64_t, int32_t>(p, numbers);
  if (t == DType::kInt64) return make_for<int64_t, int64_t>(p, numbers);
  unsupported_dtype(t, "TfIdfVectorizer");
}

}  // namespace

void register_tfidf_vectorizer(OpTable& t) {
  t.add({.name = "TfIdfVectorizer",
         .since = 9,
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .no_grad = "it counts words; there is no gradient"});
}

}  // namespace onnxtrain::ops
