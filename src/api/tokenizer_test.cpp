// Text through the C API: a tokenizer of the caller's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "onnxtrain/onnxtrain.h"

namespace {

// A token per word: its length; 0 is padding.
int64_t open_lengths(void* context, const char* content, const char* name, const char** error) {
  ++*static_cast<int*>(context);
  if (std::strstr(content, "broken")) {
    *error = "it is broken";
    return -1;
  }
  return std::strlen(name) > 0 ? 20 : 0;
}

int encode_lengths(void*, size_t n, const char* const* texts, int64_t length, int64_t* ids,
                   int64_t* mask, const char**) {
  for (size_t k = 0; k < n; ++k) {
    const std::string text = texts[k];
    size_t at = 0;
    for (int64_t t = 0; t < length; ++t, ++ids, ++mask) {
      const size_t end = std::min(text.find(' ', at), text.size());
      *mask = at < text.size();
      *ids = *mask ? int64_t(end - at) : 0;
      at = std::min(end + 1, text.size());
    }
  }
  return 0;
}

TEST(CApi, TextByATokenizerOfTheCaller) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "onnxtrain_text";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "t.csv") << "text,stars,y\na bb,1,u\nccc,2,v\na a a,3,u\nbb ccc,2,v\n";
  std::ofstream(folder / "t.json") << R"({"model": {}})";
  std::ofstream(folder / "broken.json") << R"({"model": "broken"})";
  auto make = [&](const char* tokenizer, ot_text** notes) {
    const std::string options = R"({"data": ")" + (folder / "t.csv").string() +
                                R"(", "target": "y", "text": "text", "tokenizer": ")" +
                                (folder / tokenizer).string() + R"("})";
    ot_model* m = nullptr;
    const ot_status s = ot_model_new("gru", nullptr, options.c_str(), &m, notes);
    ot_model_free(m);
    return s;
  };
  ASSERT_EQ(ot_set_tokenizer(nullptr), OT_OK);
  EXPECT_NE(make("t.json", nullptr), OT_OK);
  EXPECT_STREQ(ot_last_error().code, "OT2220");
  int opened = 0;
  ot_tokenizer t{sizeof t, &opened, open_lengths, encode_lengths};
  ASSERT_EQ(ot_set_tokenizer(&t), OT_OK);
  ot_text* notes = nullptr;
  ASSERT_EQ(make("t.json", &notes), OT_OK) << ot_last_error().message;
  EXPECT_NE(std::string(ot_text_data(notes), ot_text_size(notes)).find("at most 3 tokens of 20"),
            std::string::npos);
  ot_text_free(notes);
  EXPECT_GT(opened, 0);
  EXPECT_NE(make("broken.json", nullptr), OT_OK);
  EXPECT_STREQ(ot_last_error().code, "OT2222");
  t.encode = nullptr;
  EXPECT_NE(ot_set_tokenizer(&t), OT_OK);
  ASSERT_EQ(ot_set_tokenizer(nullptr), OT_OK);
  std::filesystem::remove_all(folder);
}

}  // namespace
