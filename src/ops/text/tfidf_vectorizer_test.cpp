// TfIdfVectorizer.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(TfIdfVectorizer, CountsOfPairs) {
  OpCase("TfIdfVectorizer", 9)
      .attr("mode", std::string("TF"))
      .attr("min_gram_length", int64_t(2))
      .attr("max_gram_length", int64_t(2))
      .attr("max_skip_count", int64_t(0))
      .attr("ngram_counts", std::vector<int64_t>{0, 4})
      .attr("ngram_indexes", std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6})
      .attr("pool_int64s", std::vector<int64_t>{2, 3, 5, 4, 5, 6, 7, 8, 6, 7})
      .input(Tensor::vector<int32_t>({1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8}).reshaped({2, 6}))
      .expect(Tensor::vector<float>({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1}).reshaped({2, 7}));
}

TEST(TfIdfVectorizer, WeightsOfWords) {
  auto words_in = [](const char* mode) {
    return OpCase("TfIdfVectorizer", 9)
        .attr("mode", std::string(mode))
        .attr("min_gram_length", int64_t(1))
        .attr("max_gram_length", int64_t(1))
        .attr("max_skip_count", int64_t(0))
        .attr("ngram_counts", Ints{0})
        .attr("ngram_indexes", Ints{0, 1})
        .attr("pool_strings", std::vector<std::string>{"a", "b"})
        .attr("weights", std::vector<float>{2, 5})
        .input(words({"a", "c", "a", "b"}));
  };
  words_in("TF").expect(floats({2, 1}));
  words_in("IDF").expect(floats({2, 5}));
  words_in("TFIDF").expect(floats({4, 5}));
}

}  // namespace onnxtrain::testing
