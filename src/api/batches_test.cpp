// Batches that a caller of the C API makes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "onnxtrain/onnxtrain.h"

namespace {

constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
line (float[N,2] x) => (float[N,1] y) <float[2,1] w = {0.5, -0.5}> { y = MatMul (x, w) })";

// Three batches of two rows in every epoch.
struct Source {
  ~Source() {
    ot_value_free(values[0]);
    ot_value_free(values[1]);
  }
  static int begin(void* self, int64_t epoch) {
    static_cast<Source*>(self)->left = 3;
    static_cast<Source*>(self)->epochs.push_back(epoch);
    return 0;
  }
  static int next(void* self, ot_batch* out) {
    auto* s = static_cast<Source*>(self);
    if (s->fails && s->left == 1) return -1;
    if (s->left-- == 0) return 0;
    out->count = 2;
    out->names = s->names;
    out->values = s->values;
    return 1;
  }
  ot_batches functions() {
    ot_batches b{};
    b.size = sizeof b;
    b.context = this;
    b.begin = begin;
    b.next = next;
    return b;
  }
  void fill() {
    const int64_t x[] = {2, 2}, y[] = {2, 1};
    const float a[] = {1, 2, 3, 4}, b[] = {1, -1};
    ASSERT_EQ(ot_value_tensor_copy(1, 2, x, a, &values[0]), OT_OK);
    ASSERT_EQ(ot_value_tensor_copy(1, 2, y, b, &values[1]), OT_OK);
  }
  const char* names[2] = {"x", "label"};
  ot_value* values[2] = {nullptr, nullptr};
  int left = 0;
  bool fails = false;
  std::vector<int64_t> epochs;
};

class CallerBatches : public ::testing::Test {
 protected:
  void SetUp() override {
    source_.fill();
    ot_model *plain = nullptr, *model = nullptr;
    ASSERT_EQ(ot_model_parse(kModel, &plain), OT_OK);
    ASSERT_EQ(ot_prepare(plain, R"({"losses": [{"kind": "mse"}]})", &model), OT_OK);
    ASSERT_EQ(ot_trainer_create(model, nullptr, &trainer_), OT_OK);
    ot_model_free(plain);
    ot_model_free(model);
  }
  void TearDown() override {
    ot_dataset_free(data_);
    ot_trainer_free(trainer_);
  }
  ot_status fit(const char* options, std::string* result = nullptr) {
    const ot_batches functions = source_.functions();
    if (!data_ && ot_dataset_batches(&functions, &data_) != OT_OK) return OT_FAILED;
    ot_text* text = nullptr;
    const ot_status s =
        ot_trainer_fit_data(trainer_, data_, nullptr, options, nullptr, nullptr, &text);
    if (result && text) *result = std::string(ot_text_data(text), ot_text_size(text));
    ot_text_free(text);
    return s;
  }
  Source source_;
  ot_trainer* trainer_ = nullptr;
  ot_dataset* data_ = nullptr;
};

TEST_F(CallerBatches, Train) {
  std::string result;
  ASSERT_EQ(fit(R"({"epochs": 2})", &result), OT_OK);
  EXPECT_EQ(ot_trainer_step_count(trainer_), 6u);
  EXPECT_EQ(source_.epochs, (std::vector<int64_t>{0, 1}));
  EXPECT_NE(result.find(R"("steps":3)"), std::string::npos);
  ASSERT_EQ(fit(R"({"epochs": 1})", &result), OT_OK);  // one more
  EXPECT_EQ(source_.epochs.back(), 2);
}

TEST_F(CallerBatches, AFailureEndsTheFit) {
  source_.fails = true;
  ASSERT_EQ(fit(R"({"epochs": 2})"), OT_DATA);
  EXPECT_STREQ(ot_last_error().code, "OT2154");
  EXPECT_EQ(ot_trainer_step_count(trainer_), 2u);
}

TEST_F(CallerBatches, HaveNoRowsToChooseFrom) {
  ASSERT_EQ(fit(R"({"epochs": 1, "valid": 0.5})"), OT_USAGE);
  EXPECT_STREQ(ot_last_error().code, "OT1157");
  ot_text* text = nullptr;
  EXPECT_EQ(ot_trainer_evaluate_data(trainer_, data_, 8, &text), OT_USAGE);
}

TEST_F(CallerBatches, WithoutAFunctionAreRefused) {
  ot_batches functions = source_.functions();
  functions.next = nullptr;
  ot_dataset* none = nullptr;
  EXPECT_EQ(ot_dataset_batches(&functions, &none), OT_USAGE);
  EXPECT_STREQ(ot_last_error().code, "OT1129");
}

}  // namespace
