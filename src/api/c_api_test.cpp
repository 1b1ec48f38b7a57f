// The C API: error paths, NULL handles among them, and a session and a trainer from end to end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "onnxtrain/onnxtrain.h"

namespace onnxtrain::testing {

namespace {

constexpr const char* kText = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = MatMul(x, w) })";

ot_model* parsed() {
  ot_model* m = nullptr;
  EXPECT_EQ(ot_model_parse(kText, &m), OT_OK) << ot_last_error().message;
  return m;
}

ot_value* rows_of_x(const std::vector<float>& v, int64_t columns = 3) {
  const int64_t dims[2] = {int64_t(v.size()) / columns, columns};
  ot_value* out = nullptr;
  EXPECT_EQ(ot_value_tensor_copy(1, 2, dims, v.data(), &out), OT_OK);
  return out;
}

void expect_failed(ot_status got, ot_status want, const std::string& code,
                   const std::string& words) {
  EXPECT_EQ(got, want);
  ot_error_info e = ot_last_error();
  EXPECT_EQ(e.code, code);
  EXPECT_NE(std::string(e.message).find(words), std::string::npos) << e.message;
}

}  // namespace

TEST(CApi, NullArgumentsAreErrors) {
  ot_model* m = nullptr;
  ot_text* t = nullptr;
  ot_value* v = nullptr;
  ot_session* s = nullptr;
  ot_trainer* tr = nullptr;
  double loss = 0;
  expect_failed(ot_model_load(nullptr, &m), OT_USAGE, "OT1129", "'path' is NULL");
  expect_failed(ot_model_load("x", nullptr), OT_USAGE, "OT1129", "'out' is NULL");
  expect_failed(ot_model_parse(nullptr, &m), OT_USAGE, "OT1129", "NULL");
  expect_failed(ot_model_save(nullptr, "x"), OT_USAGE, "OT1129", "'m' is NULL");
  expect_failed(ot_model_info(nullptr, &t), OT_USAGE, "OT1129", "NULL");
  expect_failed(ot_model_bytes(nullptr, 0, &t), OT_USAGE, "OT1129", "NULL");
  expect_failed(ot_model_initializer(nullptr, "w", &v), OT_USAGE, "OT1129", "NULL");
  expect_failed(ot_prepare(nullptr, nullptr, &m), OT_USAGE, "OT1129", "NULL");
  expect_failed(ot_session_create(nullptr, nullptr, &s), OT_USAGE, "OT1129", "NULL");
  expect_failed(ot_session_run(nullptr, 0, nullptr, nullptr, 0, nullptr, &v), OT_USAGE, "OT1129",
                "NULL");
  expect_failed(ot_trainer_create(nullptr, nullptr, &tr), OT_USAGE, "OT1129", "NULL");
  expect_failed(ot_trainer_step(nullptr, 0, nullptr, nullptr, -1, &loss), OT_USAGE, "OT1129",
                "NULL");
  expect_failed(ot_trainer_get(nullptr, "w", &v), OT_USAGE, "OT1129", "NULL");
  expect_failed(ot_trainer_save(nullptr, "x"), OT_USAGE, "OT1129", "NULL");
  expect_failed(ot_trainer_resume(nullptr, nullptr, &tr), OT_USAGE, "OT1129", "NULL");
}

TEST(CApi, NullHandlesMayBeFreedAndLookedAt) {
  ot_model_free(nullptr);
  ot_session_free(nullptr);
  ot_trainer_free(nullptr);
  ot_value_free(nullptr);
  ot_text_free(nullptr);
  ot_dataset_free(nullptr);
  EXPECT_EQ(ot_text_data(nullptr), nullptr);
  EXPECT_EQ(ot_text_size(nullptr), 0u);
}

TEST(CApi, ErrorsOfModelsSayTheirCode) {
  ot_model* m = nullptr;
  expect_failed(ot_model_parse("no model", &m), OT_MODEL, "OT1004", "text syntax");
  EXPECT_EQ(m, nullptr);
  EXPECT_EQ(ot_model_load("/nowhere/x.onnx", &m), OT_MODEL);
  m = parsed();
  ot_value* v = nullptr;
  EXPECT_NE(ot_model_initializer(m, "none", &v), OT_OK);
  EXPECT_NE(std::string(ot_last_error().message).find("none"), std::string::npos);
  ot_trainer* t = nullptr;
  expect_failed(ot_trainer_create(m, nullptr, &t), OT_MODEL, "OT1210", "");
  ot_model* p = nullptr;
  EXPECT_NE(ot_prepare(m, "{\"losses\": [{\"kind\": \"nothing like it\"}]}", &p), OT_OK);
  EXPECT_NE(ot_prepare(m, "{not json", &p), OT_OK);
  ot_model_free(m);
}

TEST(CApi, SessionRunsAndRefuses) {
  ot_model* m = parsed();
  ot_session* s = nullptr;
  ot_options o = {sizeof o, 1, 0, 0, 0, 0};
  ASSERT_EQ(ot_session_create(m, &o, &s), OT_OK);
  ot_model_free(m);  // the session keeps what it needs
  ASSERT_EQ(ot_session_output_count(s), 1u);
  EXPECT_STREQ(ot_session_output_name(s, 0), "y");
  const char* name = "x";
  ot_value *x = rows_of_x({1, 0, 0, 0, 1, 1}), *y = nullptr;
  ASSERT_EQ(ot_session_run(s, 1, &name, &x, 0, nullptr, &y), OT_OK) << ot_last_error().message;
  ASSERT_EQ(ot_value_rank(y), 2);
  EXPECT_EQ(ot_value_dims(y)[0], 2);
  const float want[] = {1, 2, 8, 10};
  EXPECT_TRUE(
      std::equal(std::begin(want), std::end(want), static_cast<const float*>(ot_value_data(y))));
  ot_value_free(y);
  y = nullptr;
  const char* other = "z";
  EXPECT_EQ(ot_session_run(s, 1, &other, &x, 0, nullptr, &y), OT_DATA);
  EXPECT_EQ(ot_session_run(s, 0, nullptr, nullptr, 0, nullptr, &y), OT_DATA);
  EXPECT_EQ(ot_session_run(s, 1, &name, &x, 1, &other, &y), OT_USAGE);
  ot_value* wrong = rows_of_x({1, 2}, 2);
  EXPECT_EQ(ot_session_run(s, 1, &name, &wrong, 0, nullptr, &y), OT_DATA);
  ot_value* missing = nullptr;
  expect_failed(ot_session_run(s, 1, &name, &missing, 0, nullptr, &y), OT_USAGE, "OT1129",
                "the value of 'x' is NULL");
  EXPECT_EQ(y, nullptr);
  ot_value_free(x);
  ot_value_free(wrong);
  ot_session_free(s);
}

TEST(CApi, TrainerLearns) {
  ot_model *m = parsed(), *p = nullptr;
  ASSERT_EQ(
      ot_prepare(m, R"({"losses": [{"kind": "mse"}], "optimizer": {"kind": "sgd", "lr": 0.01}})",
                 &p),
      OT_OK)
      << ot_last_error().message;
  ot_trainer* t = nullptr;
  ASSERT_EQ(ot_trainer_create(p, nullptr, &t), OT_OK) << ot_last_error().message;
  ot_value *x = rows_of_x({1, 0, 0, 0, 1, 1}), *target = rows_of_x({0, 0, 0, 0}, 2);
  std::string second;
  for (size_t k = 0; k < ot_trainer_input_count(t); ++k)
    if (std::string(ot_trainer_input_name(t, k)) != "x") second = ot_trainer_input_name(t, k);
  const char* names[] = {"x", second.c_str()};
  ot_value* values[] = {x, target};
  double first = 0, last = 0;
  ASSERT_EQ(ot_trainer_step(t, 2, names, values, -1, &first), OT_OK) << ot_last_error().message;
  ASSERT_EQ(ot_trainer_steps(t, 2, names, values, 20, &last), OT_OK);
  EXPECT_LT(last, first);
  EXPECT_EQ(ot_trainer_step_count(t), 21u);
  double rate = 0;
  EXPECT_EQ(ot_trainer_rate(t, &rate), OT_OK);
  EXPECT_NEAR(rate, 0.01, 1e-9);
  EXPECT_NE(ot_trainer_step(t, 2, names, values, 7, &last), OT_OK);  // there is no section 7
  ot_value* none = nullptr;
  EXPECT_NE(ot_trainer_get(t, "no such variable", &none), OT_OK);
  for (ot_value* v : {x, target}) ot_value_free(v);
  ot_trainer_free(t);
  ot_model_free(p);
  ot_model_free(m);
}

}  // namespace onnxtrain::testing
