/* Calls with arguments that are missing or impossible: each is refused, none is fatal. */
#include <onnxtrain/onnxtrain.h>
#include <stdio.h>
#include <string.h>

static int wrong = 0;
static void refused(const char* call, ot_status s, const char* word) {
  const char* said = ot_last_error().message;
  if (s == OT_OK || !strstr(said, word)) {
    printf("%s: status %d, '%s'\n", call, s, said);
    ++wrong;
  }
}
#define REFUSED(call, word) refused(#call, call, word)
#define IS(what, value) \
  if ((what) != (value)) printf("%s\n", #what), ++wrong

/* NULL and numbers that cannot be, where nothing is open yet */
static void refuse_before_a_model(const char* path) {
  ot_model* m = NULL;
  ot_value* v = NULL;
  ot_trainer* t = NULL;
  ot_session* s = NULL;
  ot_text* text = NULL;
  ot_dataset* d = NULL;
  ot_graphs* g = NULL;
  double loss = 0;
  REFUSED(ot_model_load(NULL, &m), "path");
  REFUSED(ot_model_load(path, NULL), "out");
  REFUSED(ot_model_load_bytes(NULL, 10, NULL, &m), "data");
  REFUSED(ot_model_parse(NULL, &m), "onnx_text");
  REFUSED(ot_model_save(NULL, "x"), "'m'");
  REFUSED(ot_prepare(NULL, NULL, &m), "'m'");
  REFUSED(ot_prepare_for(NULL, NULL, NULL, &m), "'m'");
  REFUSED(ot_model_graphs(NULL, 0, NULL, &g), "'m'");
  REFUSED(ot_graphs_tensor(NULL, 0, &v), "'g'");
  REFUSED(ot_session_create(NULL, NULL, &s), "'m'");
  REFUSED(ot_trainer_create(NULL, NULL, &t), "'m'");
  REFUSED(ot_trainer_step(NULL, 0, NULL, NULL, -1, &loss), "'t'");
  REFUSED(ot_dataset_open(NULL, NULL, &d), "spec");
  REFUSED(ot_check_file(NULL, &text), "path");
  const int64_t negative[2] = {-1, 2}, huge[2] = {(int64_t)1 << 40, (int64_t)1 << 40}, two[1] = {2};
  float number = 0;
  REFUSED(ot_value_tensor(1, -1, NULL, NULL, NULL, NULL, &v), "rank");
  REFUSED(ot_value_tensor(1, 2, NULL, &number, NULL, NULL, &v), "sizes");
  REFUSED(ot_value_tensor_copy(1, 2, negative, &number, &v), "-1");
  REFUSED(ot_value_tensor_copy(1, 2, huge, &number, &v), "cannot be");
  REFUSED(ot_value_tensor_copy(1, 1, two, NULL, &v), "data");
  REFUSED(ot_value_tensor_copy(999, 0, NULL, &number, &v), "999");
  REFUSED(ot_value_tensor_copy(8, 0, NULL, &number, &v), "strings");
  REFUSED(ot_value_sequence(2, NULL, 1, &v), "items");
  IS(ot_value_kind(NULL), OT_NONE);
  IS(ot_value_rank(NULL), 0);
  IS(ot_value_data(NULL), NULL);
  IS(ot_value_count(NULL), 0);
  IS(ot_text_data(NULL), NULL);
  IS(ot_graphs_json(NULL, NULL), NULL);
  IS(ot_graphs_tensor_count(NULL), 0);
  IS(ot_trainer_input_count(NULL), 0);
  IS(ot_trainer_output_name(NULL, 0), NULL);
  IS(ot_session_output_name(NULL, 0), NULL);
  ot_value_free(NULL);
  ot_model_free(NULL);
  ot_graphs_free(NULL);
  ot_trainer_free(NULL);
}

int main(int argc, char** argv) {
  ot_model *m = NULL, *prepared = NULL;
  ot_value *v = NULL, *x = NULL, *y = NULL;
  ot_trainer* t = NULL;
  ot_session* s = NULL;
  ot_text* text = NULL;
  ot_graphs* g = NULL;
  double loss = 0;
  const char* path = argc > 1 ? argv[1] : "";
  refuse_before_a_model(path);
  if (ot_model_load(path, &m) || ot_prepare(m, NULL, &prepared)) return 2;
  const char* no_name[1] = {NULL};
  REFUSED(ot_model_graphs(m, 1, no_name, &g), "operator 0");
  if (ot_model_graphs(m, 0, NULL, &g)) return 2;
  REFUSED(ot_graphs_tensor(g, ot_graphs_tensor_count(g), &v), "no tensor");
  ot_graphs_free(g);
  ot_model* none = NULL;
  REFUSED(ot_prepare(m, "{bad", &none), "");
  const ot_options options = {sizeof options, 1, 0, 0};
  if (ot_trainer_create(prepared, &options, &t) || ot_session_create(m, &options, &s)) return 3;
  ot_model_free(m); /* before those who use it */
  ot_model_free(prepared);
  const int64_t rows[2] = {2, 4}, two[1] = {2};
  const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int64_t labels[2] = {0, 1};
  ot_value_tensor_copy(1, 2, rows, data, &x);
  ot_value_tensor_copy(7, 1, two, labels, &y);
  const char* names[2] = {"x", "label"};
  ot_value *both[2] = {x, y}, *half[2] = {x, NULL};
  if (ot_trainer_step(t, 2, names, both, -1, NULL)) return 4;
  REFUSED(ot_trainer_step(t, 2, names, half, -1, &loss), "label");
  REFUSED(ot_trainer_step(t, 2, NULL, both, -1, &loss), "names");
  REFUSED(ot_trainer_step(t, 1, names, both, -1, &loss), "label");
  REFUSED(ot_trainer_step_arrays(t, NULL, -1, 1, &loss), "inputs");
  REFUSED(ot_trainer_get(t, NULL, &v), "name");
  REFUSED(ot_trainer_set(t, "fc1.weight", NULL), "value");
  REFUSED(ot_trainer_output(t, 999, &v), "999");
  IS(ot_trainer_output_name(t, 999), NULL);
  IS(ot_trainer_input_name(t, 999), NULL);
  IS(ot_session_output_name(s, 999), NULL);
  IS(ot_value_string(x, 0, NULL), NULL);
  REFUSED(ot_session_run(s, 1, names, both, 0, NULL, NULL), "values");
  REFUSED(ot_trainer_fit(t, 2, names, half, 0, NULL, NULL, NULL, NULL, NULL, &text), "label");
  ot_value_free(x);
  ot_value_free(y);
  ot_session_free(s);
  ot_trainer_free(t);
  return wrong != 0;
}
